import type { ICommandHooks } from 'aws-cdk-lib/aws-lambda-nodejs';

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
