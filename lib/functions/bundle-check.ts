import { existsSync, readFileSync } from 'node:fs';
import { createRequire, SourceMap } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AssetStaging, Stack } from 'aws-cdk-lib';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { refuse } from '../checks/refusal.ts';
import { moduleUrl } from './module-url.ts';

const require = createRequire(moduleUrl);

/** esbuild's id of its warning about `exports` or `module.exports` in an ES module, which has neither. */
const COMMONJS_IN_ESM = 'commonjs-variable-in-esm';

/** The problems of bundles, by their hash: one process may synthesize an app more than once. */
const found = new Map<string, readonly string[]>();

/**
 * Refuses a bundle in ESM with which Lambda could not start: it exports no `handler`, or it assigns to CommonJS's `exports`.
 * esbuild parses the bundle; none of its code runs. The exports of a bundle in CommonJS are known only once its code has run.
 *
 * @param entry - the file that was bundled
 * @throws `BAD_SETTINGS`
 */
export function checkBundle(lambda: IFunction, entry: string): void {
  const bundle = bundleOf(lambda);
  if (bundle === undefined || !bundle.endsWith('.mjs')) return;
  const key = `${basename(dirname(bundle))} ${entry}`;
  const problems = found.get(key) ?? problemsOf(bundle, entry);
  found.set(key, problems);
  refuse(`The function ${lambda.node.path}`, problems);
}

/** Returns the bundled file; `undefined` if nothing was bundled. */
export function bundleOf(lambda: IFunction): string | undefined {
  if (!Stack.of(lambda).bundlingRequired) return undefined;
  const staging = lambda.node.tryFindChild('Code')?.node.tryFindChild('Stage');
  if (!(staging instanceof AssetStaging)) return undefined;
  return ['index.mjs', 'index.cjs', 'index.js']
    .map((name) => join(staging.absoluteStagedPath, name))
    .find((path) => existsSync(path));
}

/** Describes an entry without a handler. @param exported - the names that it exports */
export function noHandlerProblem(entry: string, exported: readonly string[]): string {
  return (
    `entry is "${entry}", which does not export handler, which Lambda calls (exported: ${exported.join(', ') || 'nothing'}). Export it by ` +
    'that name: export const handler = …. Lambda does not look into a default export, and exports.handler = … becomes one in an ES module.'
  );
}

function problemsOf(bundle: string, entry: string): string[] {
  const esbuild = loadEsbuild();
  if (esbuild === undefined) return [];
  const contents = readFileSync(bundle, 'utf8');
  const parse = (options: object = {}) =>
    esbuild.buildSync({
      stdin: { contents, sourcefile: 'index.mjs' }, // as a file, its places would be those of its source map
      outfile: 'index.mjs',
      format: 'esm',
      metafile: true,
      write: false,
      logLevel: 'silent',
      ...options,
    });
  const { metafile, warnings, outputFiles } = parse({ logOverride: { [COMMONJS_IN_ESM]: 'warning' } });
  const places = warnings
    .filter(({ id }) => id === COMMONJS_IN_ESM)
    .flatMap(({ location }) => (location ? placeOf(location) : []));
  // In an ES module, `typeof exports` is 'undefined': what remains after such a guard is folded away is evaluated.
  const evaluated = () =>
    undefinedObjects(
      parse({
        define: { module: 'undefined', exports: 'undefined' },
        minify: true,
        sourcemap: 'external',
      }).outputFiles,
    );
  const assigned =
    places.length === 0 ? [] : evaluated().filter((at) => places.some((place) => isSame(place, at)));
  const at = ownSource(bundle, assigned);
  if (at !== undefined) return [commonJsProblem(entry, at)];
  const exported = Object.values(metafile.outputs).flatMap(({ exports }) => exports);
  // A package that is not bundled may export anything.
  const isOpen = outputFiles.some(({ text }) => text.includes('export * from'));
  return exported.includes('handler') || isOpen ? [] : [noHandlerProblem(entry, exported)];
}

/** A position in a bundle, from 0, as source maps count. */
interface BundlePosition {
  readonly line: number;
  readonly column: number;
}

function isSame(one: BundlePosition, other: BundlePosition): boolean {
  return one.line === other.line && one.column === other.column;
}

/** Converts a position of esbuild, which counts lines from 1 and columns in bytes. */
function placeOf({ line, column, lineText }: BundlePosition & { readonly lineText: string }): BundlePosition {
  return { line: line - 1, column: Buffer.from(lineText).subarray(0, column).toString().length };
}

/** Returns the positions in the bundle where a member of `undefined` is read or set. @param files - the minified bundle and its map */
function undefinedObjects(
  files: readonly { readonly path: string; readonly text: string }[],
): BundlePosition[] {
  const [code = '', map = '{}'] = ['.mjs', '.map'].map(
    (end) => files.find(({ path }) => path.endsWith(end))?.text,
  );
  const origins = new SourceMap(JSON.parse(map));
  return code
    .split('\n')
    .flatMap((minified, at) =>
      [...minified.matchAll(/\(void 0\)[.[]/g)].map(({ index }) => origins.findEntry(at, index)),
    )
    .flatMap((found) =>
      'originalSource' in found ? { line: found.originalLine, column: found.originalColumn } : [],
    );
}

/** Returns esbuild, of which the CDK may have another installation, or an image. */
function loadEsbuild(): typeof import('esbuild') | undefined {
  try {
    return require(require.resolve('esbuild', { paths: [fileURLToPath(moduleUrl), process.cwd()] }));
  } catch {
    return undefined;
  }
}

/** Returns the first position in the app's own files, e.g. `src/payments.ts:3`. A package may contain code that never runs. */
function ownSource(bundle: string, places: readonly BundlePosition[]): string | undefined {
  if (!existsSync(`${bundle}.map`)) return undefined;
  const map = new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, 'utf8')));
  return places
    .map(({ line, column }) => map.findEntry(line, column))
    .flatMap((found) => ('originalSource' in found ? found : []))
    .filter(({ originalSource }) => !originalSource.split('/').includes('node_modules'))
    .map(({ originalSource, originalLine }) => `${originalSource}:${originalLine + 1}`)[0];
}

function commonJsProblem(entry: string, at: string): string {
  return (
    `entry is "${entry}", but ${at} assigns to exports or module.exports in an ES module, which has neither: the function could not start. ` +
    'Write export in place of it, e.g. export const handler = …. A file is an ES module by export, import.meta, .mts, .mjs or "type": "module".'
  );
}
