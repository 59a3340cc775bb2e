import { appFunctions, bundleFunction, type FunctionBundle } from '../tools/pack/function-bundle.ts';
import { type ImportTime, importTimes } from './bundles/import-time.ts';
import type { FigureTable, Part } from './part.ts';

/** The number of fresh processes in which each bundle is imported. */
const RUNS = 21;
const RUNS_QUICK = 3;

/** The number of a bundle's packages that the table names. */
const PACKAGES_SHOWN = 4;

/** The clients and commands of the relay's live path, bundled by esbuild; trimmed: with Mailroom's settings. */
const SDK_CLIENTS = { name: 'sdk-clients', entry: 'bench/bundles/sdk-clients.handler.ts' };

interface BundleFigure extends ImportTime {
  readonly bundle: FunctionBundle;
}

/** Measures the size, the contents and the import time of each function's code. */
export const bundles: Part = {
  name: 'bundles',
  title: 'size and import time of every function',
  run: async ({ say, quick }) => {
    const made = await Promise.all([
      bundleFunction(SDK_CLIENTS, { external: [] }),
      bundleFunction({ ...SDK_CLIENTS, name: 'sdk-clients-trimmed' }),
      ...appFunctions().map((entry) => bundleFunction(entry)),
    ]);
    const runs = quick ? RUNS_QUICK : RUNS;
    say(`importing ${made.length} bundles, each in ${runs} fresh processes`);
    const times = await importTimes(made, runs);
    const figures = made.map((bundle, index) => ({ bundle, ...(times[index] as ImportTime) }));
    return { json: { bundles: figures.map(figureRecord) }, tables: [bundleTable(figures)] };
  },
};

function figureRecord({ bundle: { name, bytes, gzipBytes, packages }, wallMs, cpuMs }: BundleFigure) {
  return { name, bytes, gzipBytes, importMs: round(wallMs), importCpuMs: round(cpuMs), packages };
}

function bundleTable(figures: readonly BundleFigure[]): FigureTable {
  const sdk = figures[0] as BundleFigure;
  const parts = ({ packages }: FunctionBundle) =>
    packages.slice(0, PACKAGES_SHOWN).map(({ name, bytes }) => `${name} ${kb(bytes)}`);
  return {
    name: 'bundles',
    title: `Bundles, and their import by Node.js ${process.versions.node} (medians). "× SDK" compares with sdk-clients.`,
    head: [
      ...['function', 'KB', '× SDK', 'KB gzip', 'import ms', '× SDK', 'CPU ms', '× SDK'],
      'largest parts, KB',
    ],
    rows: figures.map(({ bundle, wallMs, cpuMs }) => [
      bundle.name,
      kb(bundle.bytes),
      (bundle.bytes / sdk.bundle.bytes).toFixed(2),
      kb(bundle.gzipBytes),
      round(wallMs),
      (wallMs / sdk.wallMs).toFixed(2),
      round(cpuMs),
      (cpuMs / sdk.cpuMs).toFixed(2),
      parts(bundle).join(', '),
    ]),
  };
}

function kb(bytes: number): number {
  return Math.round(bytes / 1_000);
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
