import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type CodeBlock, codeBlocks } from './code-blocks.ts';

/** The folder of the repository, with `/` at its end. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** One text of the documentation. */
export interface Page {
  /** Its path from the repository's folder, such as `docs/testing.md`. */
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly CodeBlock[];
}

/** Made by commands, or by others. Folders that begin with a dot are passed over, too. */
const NOT_OURS = new Set(['node_modules', 'dist', 'cdk.out', 'coverage']);

/** What `npm run docs:build` writes from the sources, whose own tests cover it. */
const API_REFERENCE = 'docs/api';

/** What API Extractor writes: signatures, for a test to compare. */
const REPORT = '.api.md';

/**
 * Every page of the repository: all Markdown files but the reports of the package's API, and llms.txt.
 *
 * @throws Error If the blocks of a page cannot be read; it names the page.
 */
export function readPages(): Page[] {
  return pathsIn('').map((path) => {
    const text = readFileSync(ROOT + path, 'utf8');
    try {
      return { path, text, blocks: codeBlocks(text) };
    } catch (error) {
      throw new Error(`${path}: ${(error as Error).message}`);
    }
  });
}

function pathsIn(folder: string): string[] {
  return readdirSync(ROOT + folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith('.') || NOT_OURS.has(entry.name)) return [];
    if (folder + entry.name === API_REFERENCE) return [];
    if (entry.isDirectory()) return pathsIn(`${folder}${entry.name}/`);
    if (entry.name.endsWith(REPORT)) return [];
    return entry.name.endsWith('.md') || entry.name === 'llms.txt' ? [folder + entry.name] : [];
  });
}
