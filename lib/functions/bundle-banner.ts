import type { ICommandHooks } from 'aws-cdk-lib/aws-lambda-nodejs';

/**
 * Maps the stack traces of a bundle to its source files when a stack is read, by the `.map` file beside the bundle.
 * `--enable-source-maps` does the same, but reads the map of the whole bundle, libraries included, whenever a process starts: the
 * stream relay's import then takes 1.28 times the CPU time (docs/adr/0032). If that option is set, Node.js maps.
 *
 * A frame has the name of the function that was called in the source, which the map holds at the place of the call, i.e. in
 * the next frame. The text is one line without double quotes, dollars, percent signs, backticks and backslashes, because esbuild
 * gets it through a shell.
 */
const STACKS = [
  'if (!process.sourceMapsEnabled) {',
  'const file = import.meta.url;',
  'let map;',
  'const read = () => {',
  "try { map ??= new BundleMap(JSON.parse(bundleRead(new URL(file + '.map'), 'utf8'))); } catch { map = null; }",
  'return map;',
  '};',
  'const originOf = (call) => {',
  'if (call.getFileName() !== file || map === null) return {};',
  'return read()?.findEntry(call.getLineNumber() - 1, call.getColumnNumber() - 1) ?? {};',
  '};',
  'const shown = (call, origin, called) => {',
  'const text = String(call);',
  'if (!origin.originalSource) return text;',
  "const at = [file, call.getLineNumber(), call.getColumnNumber()].join(':');",
  "const from = [origin.originalSource, origin.originalLine + 1, origin.originalColumn + 1].join(':');",
  "const own = call.getFunctionName() + ' (';",
  "const prefix = ['', 'async ', 'new '].find((word) => called && text.startsWith(word + own));",
  "const named = prefix === undefined ? text : prefix + called + ' (' + text.slice(prefix.length + own.length);",
  'return named.replace(at, () => from);',
  '};',
  'Error.prepareStackTrace = (error, calls) => {',
  "let head = '<error>';",
  'try { head = String(error); } catch {}',
  'const origins = calls.map(originOf);',
  "const lines = calls.map((call, i) => '    at ' + shown(call, origins[i], origins[i + 1]?.name));",
  'return [head, ...lines].join(String.fromCharCode(10));',
  '};',
  '}',
].join(' ');

/**
 * Node.js ESM lacks these names, but bundled CommonJS packages need them. esbuild renames a `require` that bundled code declares, and declares
 * a `__dirname` of bundled code with `var`, so that a second declaration is valid.
 */
const COMMONJS =
  'const require = bundleRequire(import.meta.url); var __filename = import.meta.filename, __dirname = import.meta.dirname;';

/** The code before a bundle's own: `require`, `__filename` and `__dirname`, and stack traces that refer to source files. */
export const BUNDLE_BANNER = [
  "import { createRequire as bundleRequire, SourceMap as BundleMap } from 'node:module';",
  "import { readFileSync as bundleRead } from 'node:fs';",
  COMMONJS,
  STACKS,
].join(' ');

/**
 * Rewrites the paths in the source maps of a bundle. esbuild names each source by its path from the output folder, so the same
 * code would have a different hash, and be deployed again, for every depth of `--output`. Paths from the project root avoid that.
 */
const SCRIPT = [
  "const { readdirSync, readFileSync, writeFileSync } = require('node:fs');",
  "const { join, relative, resolve, sep } = require('node:path');",
  'const [root, output] = process.argv.slice(1);',
  "const fromRoot = (source) => relative(root, resolve(output, source)).split(sep).join('/');",
  "for (const name of readdirSync(output).filter((name) => name.endsWith('.map'))) {",
  "  const map = JSON.parse(readFileSync(join(output, name), 'utf8'));",
  "  map.sources = map.sources.map((source) => source.startsWith('..') ? fromRoot(source) : source);",
  '  writeFileSync(join(output, name), JSON.stringify(map));',
  '}',
].join(' ');

/** Bundling hooks that make source maps name the sources by their path from the project root. */
export function sourceMapPaths(hooks?: ICommandHooks): ICommandHooks {
  return {
    beforeBundling: (inputDir, outputDir) => hooks?.beforeBundling(inputDir, outputDir) ?? [],
    beforeInstall: (inputDir, outputDir) => hooks?.beforeInstall(inputDir, outputDir) ?? [],
    afterBundling: (inputDir, outputDir) => [
      `node -e "${SCRIPT}" "${inputDir}" "${outputDir}"`,
      ...(hooks?.afterBundling(inputDir, outputDir) ?? []),
    ],
  };
}
