import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import type { CodeBlock } from './code-blocks.ts';
import { ROOT } from './pages.ts';

/** Below this folder each page's code is its own small project. It begins with a dot, so git and linters pass over it. */
export const CODE_FOLDER = '.local/docs-code/';

/** What {@link pageCode} needs of a page. */
interface PageText {
  readonly path: string;
  readonly blocks: readonly CodeBlock[];
}

/**
 * The TypeScript files that the blocks of a page come to: a file for each block, and those files of docs/getting-started.md that a
 * block of this page imports and the page does not have. Line N of a file is line N of the page that its block is from,
 * so the compiler's complaint leads to the page.
 *
 * @param firstApp - docs/getting-started.md, which supplies missing files
 * @returns texts by their path from the repository's folder
 * @throws Error If two blocks of the page name the same file.
 * @example
 * pageCode(page, firstApp).get('.local/docs-code/docs/testing.md/src/line-18.ts');
 */
export function pageCode(page: PageText, firstApp: PageText): ReadonlyMap<string, string> {
  const folder = `${CODE_FOLDER}${page.path}/`;
  const own = filesOf(page);
  const offered = page.path === firstApp.path ? own : filesOf(firstApp);
  const files = new Map<string, string>();
  const take = (file: string, block: CodeBlock) => {
    const written = posix.join(folder, file);
    if (files.has(written)) return;
    const text = linedUp(block);
    const whole = withExtensions(file.startsWith('test/') ? withTestNames(text) : text);
    files.set(written, withSources(whole, posix.dirname(written)));
    for (const wanted of wantedBy(text, posix.dirname(file))) {
      const found = own.get(wanted) ?? offered.get(wanted);
      if (found !== undefined) take(wanted, found);
    }
  };
  for (const [file, block] of own) take(file, block);
  return files;
}

/** The `ts` blocks by the file that they are; a block without a name is a file named after its line. */
function filesOf({ path, blocks }: PageText): Map<string, CodeBlock> {
  const files = new Map<string, CodeBlock>();
  for (const block of blocks) {
    if (block.language !== 'ts') continue;
    const file = block.file ?? `src/line-${block.line}.ts`;
    const other = files.get(file);
    if (other !== undefined) {
      throw new Error(
        `${path}:${block.line}: the block is file=${file}, and so is the one in line ${other.line}. Give one of them another name, or none.`,
      );
    }
    files.set(file, block);
  }
  return files;
}

/** A block with its prelude, each on the lines that they have in the page. */
function linedUp({ prelude, code, line }: CodeBlock): string {
  const before = prelude === undefined ? '' : '\n'.repeat(prelude.line - 1) + prelude.code;
  return before + '\n'.repeat(line - before.split('\n').length) + code;
}

/** The files that a file imports, and those that a construct is told to bundle, from the page's folder. */
function wantedBy(text: string, folder: string): string[] {
  const imports = text.matchAll(/(?:\bfrom|\bimport)[ (]+'(?<path>\.\.?\/[^']+)'/g);
  const entries = text.matchAll(/\bentry: '(?<path>[^']+)'/g);
  return [
    ...[...imports].map(({ groups }) => `${posix.join(folder, groups?.path ?? '').replace(/\.js$/, '')}.ts`),
    ...[...entries].map(({ groups }) => groups?.path ?? ''),
  ];
}

/**
 * Lets what imports the package find the TypeScript that the package is built of: nothing has to be built before, and
 * neither the compiler nor the tests need an alias that could reach further than these files.
 */
function withSources(text: string, folder: string): string {
  return text.replace(
    /(?<=(?:\bfrom|\bimport)[ (]+)'cdk-mailroom(?<entry>(?:\/\w+)?)'/g,
    (specifier, entry: string) => {
      const source = SOURCES.get(`.${entry}`);
      return source === undefined ? specifier : `'${posix.relative(folder, source)}'`;
    },
  );
}

/** The pages import files as the CommonJS modules of `cdk init` do, without an extension; ES modules, as here, need one. */
function withExtensions(text: string): string {
  return text.replace(/(?<=(?:\bfrom|\bimport)[ (]+)'(?<path>\.\.?\/[^'.]+)'/g, "'$<path>.ts'");
}

/** Jest gives its tests `expect` and `test`, and so the pages import neither. Here Vitest runs them; the first line is still free. */
function withTestNames(text: string): string {
  return `import { expect, test } from 'vitest';${text}`;
}

/** The source file of each entry of the package, by its name in package.json's `exports`. */
const SOURCES: ReadonlyMap<string, string> = sourcesOf(
  JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { exports: Record<string, unknown> },
);

function sourcesOf({ exports }: { readonly exports: Record<string, unknown> }): Map<string, string> {
  return new Map(
    Object.entries(exports).flatMap(([entry, target]) => {
      const built = (target as { readonly module?: string }).module;
      return built === undefined ? [] : [[entry, built.replace(/^\.\/dist\/(.*)\.js$/, '$1.ts')] as const];
    }),
  );
}
