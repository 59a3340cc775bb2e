import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { codeBlocks, firstAppFiles } from '../docs/code-blocks.ts';

/** The lines of a file that are neither blank nor only a comment. */
function codeLines(file: string): string[] {
  const text = firstAppFiles().get(file);
  if (text === undefined) throw new Error(`docs/getting-started.md has no block file=${file}`);
  const lines = text.replace(/\/\*[\s\S]*?\*\//g, '').split('\n');
  return lines.filter((line) => line.trim() !== '' && !line.trim().startsWith('//'));
}

test.each([
  ['producer', 'src/place-order.ts', 10],
  ['consumer', 'src/payments.ts', 8],
])('the %s of the first app, %s, is at most %i lines of code, imports and all', (_, file, most) => {
  const lines = codeLines(file);
  expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(most);
});

test('README.md shows a producer and a consumer in one sample of at most 12 lines, two of them comments', () => {
  const readme = codeBlocks(readFileSync(new URL('../../README.md', import.meta.url), 'utf8'));
  const [sample, ...others] = readme.filter(({ language }) => language === 'ts');
  expect(others).toEqual([]);
  expect(sample?.code.trim().split('\n').length).toBeLessThanOrEqual(12);
  for (const call of ['outbox.commit(', 'ctx.once(', 'ctx.commit(']) expect(sample?.code).toContain(call);
});
