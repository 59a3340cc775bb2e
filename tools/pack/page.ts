// Builds the page of `mailroom ui` into `cli/dist/ui`: docs/adr/0038.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { LICENSES, licensesOf } from './licenses.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The most bytes of the page, compressed. The server sends it over loopback as it is; the limit keeps the page simple. */
const PAGE_MAX_GZIP_BYTES = 100_000;

/**
 * Builds the page: one script, one style sheet, and the document that loads them. The names are fixed, because nothing caches them.
 *
 * @param folder - the output folder
 * @throws if the page is too large
 *
 * @example
 * ```ts
 * await buildPage('cli/dist/ui');
 * ```
 */
export async function buildPage(folder: string): Promise<void> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [
      { in: 'cli/page/client/main.tsx', out: 'page' },
      { in: 'cli/page/client/page.css', out: 'page' },
    ],
    outdir: folder,
    write: false,
    metafile: true,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    charset: 'utf8',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
  });
  const textOf = (name: string): string =>
    outputFiles.find(({ path }) => basename(path) === name)?.text ?? '';
  const texts = {
    'index.html': await readFile(join(ROOT, 'cli/page/client/index.html'), 'utf8'),
    'page.js': textOf('page.js'),
    'page.css': textOf('page.css'),
  };
  const bytes = gzippedBytes(Object.values(texts));
  if (bytes > PAGE_MAX_GZIP_BYTES)
    throw new Error(`The page has ${bytes} bytes compressed; at most ${PAGE_MAX_GZIP_BYTES} are allowed.`);
  await mkdir(folder, { recursive: true });
  // Several processes may build it at the same time, and read it: a file is whole or old.
  const files = { [LICENSES]: await licensesOf(Object.keys(metafile.inputs)), ...texts };
  for (const [name, text] of Object.entries(files)) {
    const part = join(folder, `${name}.${process.pid}.part`);
    await writeFile(part, text);
    await rename(part, join(folder, name));
  }
}

/** The size of texts after compression, each by itself, bytes. */
function gzippedBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPage(join(ROOT, 'cli/dist/ui'));
