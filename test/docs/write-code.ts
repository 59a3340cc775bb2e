import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CODE_FOLDER, pageCode } from './page-code.ts';
import { type Page, ROOT, readPages } from './pages.ts';

/**
 * Writes the TypeScript of every page below `.local/docs-code/`, where the compiler and the tests find it, and removes
 * what no page has any more. A file that is right already is left alone, so several processes may do it at a time.
 *
 * @returns the paths of the files, from the repository's folder
 * @example
 * await import(ROOT + '.local/docs-code/docs/testing.md/test/charge-order.test.ts');
 */
export function writeCode(pages: readonly Page[] = readPages()): readonly string[] {
  const path = 'docs/getting-started.md';
  const firstApp = pages.find((page) => page.path === path) ?? { path, blocks: [] };
  const files = new Map(pages.flatMap((page) => [...pageCode(page, firstApp)]));
  for (const [path, text] of files) if (contentOf(path) !== text) replace(path, text);
  for (const path of writtenFiles())
    if (path.endsWith('.ts') && !files.has(path)) rmSync(ROOT + path, { force: true });
  return [...files.keys()];
}

/** In one step: a reader meanwhile finds the old text or the new one. */
function replace(path: string, text: string): void {
  const draft = `${ROOT}${path}.${process.pid}-${process.hrtime.bigint()}`;
  mkdirSync(dirname(draft), { recursive: true });
  writeFileSync(draft, text);
  renameSync(draft, ROOT + path);
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(ROOT + path, 'utf8');
  } catch {
    return undefined;
  }
}

function writtenFiles(): string[] {
  try {
    return readdirSync(ROOT + CODE_FOLDER, { recursive: true, encoding: 'utf8' }).map(
      (path) => CODE_FOLDER + path,
    );
  } catch {
    return [];
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeCode();
