import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BuildOptions } from 'esbuild';
import { BUNDLING } from '../../lib/service-function.ts';
import { bundleFunction } from '../../tools/pack/function-bundle.ts';
import type { FigureTable } from '../part.ts';
import { importRuns, median } from './import-time.ts';

/** The bundle whose variants are compared. */
const RELAY = 'lambdas/relay-stream/handler.ts';

/** A different way to bundle or to start a function. */
interface Variant {
  readonly name: string;
  readonly options?: BuildOptions;
  readonly env?: NodeJS.ProcessEnv;
}

/** The figures of a variant, compared run by run with the bundle as deployed. */
export interface VariantFigure {
  readonly name: string;
  readonly bytes: number;
  readonly importShare: number;
  readonly cpuShare: number;
}

const DEPLOYED = 'as deployed';

/**
 * The variants. The first one after the bundle as deployed is the same again: its shares show the noise of a run.
 *
 * @param cacheFolder - where Node.js 22.1 and later keep compiled code
 */
function variantsOf(cacheFolder: string): readonly Variant[] {
  const external = [...BUNDLING.externalModules];
  return [
    { name: DEPLOYED },
    { name: 'the same again' },
    { name: '`--enable-source-maps`', env: { NODE_OPTIONS: '--enable-source-maps' } },
    {
      name: 'without `@smithy/core/event-streams`',
      options: { external: [...external, '@smithy/core/event-streams'] },
    },
    { name: "with the SDK's other credential sources", options: { external: [] } },
    { name: 'names kept at run time (`keepNames`)', options: { keepNames: true } },
    {
      name: 'identifiers not minified',
      options: { minify: false, minifyWhitespace: true, minifySyntax: true },
    },
    { name: 'not minified', options: { minify: false } },
    { name: "CommonJS code of the SDK (`mainFields: ['main']`)", options: { mainFields: ['main'] } },
    { name: 'with the compile cache of an earlier process', env: { NODE_COMPILE_CACHE: cacheFolder } },
  ];
}

/** Measures the variants, one after the other, `runs` times. */
export async function measureVariants(runs: number): Promise<VariantFigure[]> {
  const cacheFolder = await mkdtemp(join(tmpdir(), 'mailroom-compile-cache-'));
  try {
    const variants = variantsOf(cacheFolder);
    // A bundle's name is also its file's.
    const files = variants.map((_, index) => `variant-${index}`);
    const bundles = await Promise.all(
      variants.map(({ options }, index) =>
        bundleFunction({ name: files[index] ?? '', entry: RELAY }, options),
      ),
    );
    const environments = Object.fromEntries(variants.map(({ env = {} }, index) => [files[index], env]));
    const times = [...(await importRuns(bundles, runs, environments)).values()];
    const [deployed = []] = times;
    const share = (index: number, of: 'wallMs' | 'cpuMs') =>
      median(times[index]?.map((time, run) => time[of] / (deployed[run]?.[of] ?? Number.NaN)) ?? []);
    return variants.map(({ name }, index) => ({
      name,
      bytes: bundles[index]?.bytes ?? 0,
      importShare: Number(share(index, 'wallMs').toFixed(3)),
      cpuShare: Number(share(index, 'cpuMs').toFixed(3)),
    }));
  } finally {
    await rm(cacheFolder, { recursive: true, force: true });
  }
}

/** Formats the variants. */
export function variantsTable(figures: readonly VariantFigure[]): FigureTable {
  return {
    name: 'variants',
    title: `relay-stream bundled or started differently, by Node.js ${process.versions.node}: medians of the ratios of each run.`,
    head: ['relay-stream', 'KB', '× import', '× CPU'],
    rows: figures.map(({ name, bytes, importShare, cpuShare }) => [
      name,
      Math.round(bytes / 1_000),
      importShare.toFixed(2),
      cpuShare.toFixed(2),
    ]),
  };
}
