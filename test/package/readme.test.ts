import { expect, test } from 'vitest';
import { readmeFiles } from '../docs/code-blocks.ts';

/** The lines of a file that are neither blank nor only a comment. */
function codeLines(file: string): string[] {
  const text = readmeFiles().get(file);
  if (text === undefined) throw new Error(`README.md has no block file=${file}`);
  const lines = text.replace(/\/\*[\s\S]*?\*\//g, '').split('\n');
  return lines.filter((line) => line.trim() !== '' && !line.trim().startsWith('//'));
}

test.each([
  ['producer', 'src/place-order.ts', 10],
  ['consumer', 'src/payments.ts', 8],
])('the %s of README.md, %s, is at most %i lines of code, imports and all', (_, file, most) => {
  const lines = codeLines(file);
  expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(most);
});
