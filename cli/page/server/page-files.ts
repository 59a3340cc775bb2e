import { existsSync, statSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** A file of the built page. */
export interface PageFile {
  readonly contentType: string;
  readonly body: Buffer<ArrayBuffer>;
}

/** The files of the page by their paths. Nothing else is served. */
const FILES = {
  '/': { name: 'index.html', contentType: 'text/html; charset=utf-8' },
  '/page.js': { name: 'page.js', contentType: 'text/javascript; charset=utf-8' },
  '/page.css': { name: 'page.css', contentType: 'text/css; charset=utf-8' },
} as const;

/** The root of the repository, or the folder `dist` of the package. */
const ROOT = new URL('../../../', import.meta.url);

/** Builds the page. It exists among the sources, and not in the package. */
const BUILDER = new URL('tools/pack/page.ts', ROOT);

/**
 * Reads the built page into memory. Among the sources it is built first, if it is older than they are.
 *
 * @returns the files by their paths: `/`, `/page.js`, `/page.css`
 */
export async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const isSource = existsSync(BUILDER);
  const folder = fileURLToPath(new URL(isSource ? 'cli/dist/ui/' : 'ui/', ROOT));
  if (isSource && (await isStale(folder))) {
    const { buildPage } = (await import(/* @vite-ignore */ BUILDER.href)) as {
      buildPage(folder: string): Promise<void>;
    };
    await buildPage(folder);
  }
  const files = Object.entries(FILES).map(
    async ([path, { name, contentType }]) =>
      [path, { contentType, body: await readFile(`${folder}${name}`) }] as const,
  );
  return new Map(await Promise.all(files));
}

/** The page's sources, and the rest of the command: which of its files the page imports, only its build knows. */
const SOURCES = 'cli/';

/** Built or installed files below them. */
const NO_SOURCES = /^(?:dist|node_modules)\b/;

/** True if a file of the page was built before its sources were changed, or never. */
async function isStale(folder: string): Promise<boolean> {
  const built = Object.values(FILES).map(({ name }) => changedAt(`${folder}${name}`));
  const path = fileURLToPath(new URL(SOURCES, ROOT));
  const files = (await readdir(path, { recursive: true })).filter((file) => !NO_SOURCES.test(file));
  const sources = files.map((file) => changedAt(`${path}${file}`));
  return Math.min(...built) < Math.max(changedAt(fileURLToPath(BUILDER)), ...sources);
}

/** The time of a file's last change; 0 if it does not exist. */
function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
