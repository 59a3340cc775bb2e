import { readdirSync } from 'node:fs';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build, type Metafile } from 'esbuild';
import { BUNDLING, RUNTIME } from '../../lib/functions/service-function.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A function's code, before it is bundled. */
export interface FunctionEntry {
  /** Its folder under `lambdas/`, with the function's name if the folder has several, e.g. `relay-stream` or `orders-api`. */
  readonly name: string;
  /** The file that exports `handler`, relative to the root of the repository. */
  readonly entry: string;
}

/** An npm package, or a folder of the repository, in a bundle. */
interface PackageShare {
  readonly name: string;
  readonly bytes: number;
}

/** A function's code as deployed. */
export interface FunctionBundle {
  readonly name: string;
  readonly bytes: number;
  readonly gzipBytes: number;
  /** Its packages and folders, largest first. */
  readonly packages: readonly PackageShare[];
  /** Every source file, relative to the root of the repository. */
  readonly inputs: readonly string[];
  /** Packages that it loads at run time and that are not bundled. */
  readonly lazyImports: readonly string[];
  readonly code: Uint8Array;
  readonly sourceMap: Uint8Array;
}

/** Every function of the app: each `handler.ts` and `*.handler.ts` under `lambdas/`, except in the library. */
export function appFunctions(): FunctionEntry[] {
  return readdirSync(`${ROOT}lambdas`, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(sep))
    .filter(([folder, ...path]) => folder !== 'runtime' && /^(?:.+\.)?handler\.ts$/.test(path.at(-1) ?? ''))
    .map((path) => ({ name: nameOf(path), entry: `lambdas/${path.join('/')}` }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/**
 * Bundles a function exactly as `ServiceFunction` does; a test compares the two.
 *
 * @param options - settings of esbuild that replace those of `ServiceFunction`, e.g. `{ external: [] }` for the whole SDK
 */
export async function bundleFunction(
  { name, entry }: FunctionEntry,
  options: BuildOptions = {},
): Promise<FunctionBundle> {
  const outfile = `${name}.mjs`;
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: RUNTIME.name.replace('nodejs', 'node').replace('.x', ''),
    format: BUNDLING.format,
    mainFields: [...BUNDLING.mainFields],
    external: [...BUNDLING.externalModules],
    minify: BUNDLING.minify,
    sourcemap: BUNDLING.sourceMap,
    sourcesContent: BUNDLING.sourcesContent,
    banner: { js: BUNDLING.banner },
    logLevel: BUNDLING.logLevel,
    ...options,
    metafile: true,
    write: false,
  });
  const [sourceMap, code] = ['.mjs.map', '.mjs'].map(
    (end) => outputFiles.find(({ path }) => path.endsWith(end))?.contents ?? new Uint8Array(),
  ) as [Uint8Array, Uint8Array];
  const output = metafile.outputs[outfile];
  if (output === undefined) throw new Error(`esbuild made no ${outfile}`);
  return {
    name,
    bytes: code.byteLength,
    gzipBytes: gzipSync(code).byteLength,
    packages: sharesOf(output),
    inputs: Object.keys(metafile.inputs),
    lazyImports: output.imports
      .filter(
        ({ external, path, kind }) => external && kind === 'dynamic-import' && !path.startsWith('node:'),
      )
      .map(({ path }) => path),
    code,
    sourceMap,
  };
}

function nameOf(path: readonly string[]): string {
  const file = path.at(-1) ?? '';
  return [path.at(-2), ...file.split('.').slice(0, -2)].join('-');
}

function sharesOf({ inputs }: Metafile['outputs'][string]): PackageShare[] {
  const bytes = new Map<string, number>();
  for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
    const name = packageOf(file);
    bytes.set(name, (bytes.get(name) ?? 0) + bytesInOutput);
  }
  return [...bytes]
    .map(([name, bytes]) => ({ name, bytes }))
    .filter((share) => share.bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
}

/** The innermost package of a file, e.g. `@aws-sdk/core`; the folder for the repository's own files, e.g. `lambdas/runtime`. */
function packageOf(file: string): string {
  const [, installed] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file) ?? [];
  return installed ?? relative('.', file).split(sep).slice(0, 2).join('/');
}
