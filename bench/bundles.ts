import { appFunctions, bundleFunction, type FunctionBundle } from '../tools/pack/function-bundle.ts';
import { type ImportTime, importRuns, medians } from './bundles/import-time.ts';
import { measureVariants, variantsTable } from './bundles/variants.ts';
import type { FigureTable, Part } from './part.ts';

/** The number of fresh processes in which each bundle is imported. */
const RUNS = 21;
const RUNS_QUICK = 3;

/** The number of a bundle's packages that the table names. */
const PACKAGES_SHOWN = 4;

/** The clients and commands of the relay's live path, bundled by esbuild; trimmed: with Mailroom's settings. */
const SDK_CLIENTS = { name: 'sdk-clients', entry: 'bench/bundles/sdk-clients.handler.ts' };

interface BundleFigure {
  readonly bundle: FunctionBundle;
  readonly time: ImportTime;
}

/** Measures the size, the contents and the import time of each function's code. */
export const bundles: Part = {
  name: 'bundles',
  title: 'size and import time of every function',
  run: async ({ say, quick }) => {
    const made = await Promise.all([
      bundleFunction({ name: 'empty', entry: 'bench/bundles/empty.handler.ts' }),
      bundleFunction(SDK_CLIENTS, { external: [] }),
      bundleFunction({ ...SDK_CLIENTS, name: 'sdk-clients-trimmed' }),
      ...appFunctions().map((entry) => bundleFunction(entry)),
    ]);
    const runs = quick ? RUNS_QUICK : RUNS;
    say(`importing ${made.length} bundles, each in ${runs} fresh processes`);
    const times = await importRuns(made, runs);
    const figures = made.map((bundle) => ({ bundle, time: medians(times.get(bundle.name) ?? []) }));
    say(`importing variants of one bundle, each in ${2 * runs} fresh processes`);
    const variants = await measureVariants(2 * runs);
    return {
      json: { bundles: figures.map(asJson), bundleVariants: variants },
      tables: [tableOf(figures), variantsTable(variants)],
    };
  },
};

function asJson({ bundle, time }: BundleFigure) {
  const { name, bytes, gzipBytes, packages } = bundle;
  return { name, bytes, gzipBytes, importMs: round(time.wallMs), importCpuMs: round(time.cpuMs), packages };
}

function tableOf(figures: readonly BundleFigure[]): FigureTable {
  const sdk = figures.find(({ bundle }) => bundle.name === 'sdk-clients') as BundleFigure;
  return {
    name: 'bundles',
    title: `Bundles, and their import by Node.js ${process.versions.node} (medians). "× SDK" compares with sdk-clients.`,
    head: [
      'function',
      'KB',
      '× SDK',
      'KB gzip',
      'import ms',
      '× SDK',
      'CPU ms',
      '× SDK',
      'largest parts, KB',
    ],
    rows: figures.map(({ bundle, time }) => [
      bundle.name,
      kb(bundle.bytes),
      (bundle.bytes / sdk.bundle.bytes).toFixed(2),
      kb(bundle.gzipBytes),
      round(time.wallMs),
      (time.wallMs / sdk.time.wallMs).toFixed(2),
      round(time.cpuMs),
      (time.cpuMs / sdk.time.cpuMs).toFixed(2),
      bundle.packages
        .slice(0, PACKAGES_SHOWN)
        .map(({ name, bytes }) => `${name} ${kb(bytes)}`)
        .join(', '),
    ]),
  };
}

function kb(bytes: number): number {
  return Math.round(bytes / 1_000);
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
