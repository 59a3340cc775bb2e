import { stripVTControlCharacters } from 'node:util';
import { expect } from 'vitest';
import { COLUMNS, columnsOf } from '../../../../cli/terminal/prose.ts';
import type { MemoryMailroom } from './memory-deployment.ts';
import { type MemoryRun, runInMemory } from './run-in-memory.ts';

/** Counted bytes in place of random ones, so that ids and delays are the same in every run. */
export function countedBytes(): (count: number) => Uint8Array {
  let next = 0;
  return (count) => {
    next += 1;
    return Uint8Array.from({ length: count }, (_, index) => (next * 37 + index * 11) % 256);
  };
}

/** The output at both widths; as one text if it is the same. */
export async function captured(mailroom: MemoryMailroom, argv: readonly string[]): Promise<string> {
  return capturedRuns(argv, (columns) => runInMemory(mailroom, argv, { size: { rows: 50, columns } }));
}

/** The output of a command that changes something, so that each width needs its own Mailroom. */
export async function capturedRuns(
  argv: readonly string[],
  run: (columns: number) => Promise<MemoryRun>,
): Promise<string> {
  const runs = [];
  for (const columns of [COLUMNS, 120]) {
    const { code, out, err } = await run(columns);
    runs.push({ columns, text: `${out}${err === '' ? '' : `stderr:\n${err}`}exit code ${code}\n` });
  }
  const [narrow, wide] = runs.map(({ text }) => text);
  const command = `$ mailroom ${argv.join(' ')}`;
  if (narrow === wide) return `${command}    (80 and 120 columns)\n\n${narrow}`;
  return runs.map(({ columns, text }) => `${command}    (${columns} columns)\n\n${text}`).join('\n');
}

/** Lines that are too wide, but for what is copied as a whole: a command, a link, a word. */
export function tooWide(text: string): string[] {
  return text
    .split('\n')
    .slice(1)
    .filter((line) => columnsOf(line) > COLUMNS && !/^\s*(npx |aws |https:|\S+$)/.test(line));
}

/** Compares an output with its reviewed text, `captures/<name>.txt`. */
export async function review(name: string, styled: string): Promise<void> {
  const text = stripVTControlCharacters(styled);
  expect(tooWide(text)).toEqual([]);
  await expect(text).toMatchFileSnapshot(`captures/${name}.txt`);
}
