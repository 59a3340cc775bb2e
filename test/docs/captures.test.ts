import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { withCaptures } from './captures.ts';
import { ROOT, readPages } from './pages.ts';

const CAPTURES = 'test/unit/cli/captures/';
const read = (name: string) => readFileSync(`${ROOT}${CAPTURES}${name}.txt`, 'utf8');
const pages = readPages().filter(({ text }) => text.includes('<!-- capture: '));

test.each(pages.map(({ path, text }) => [path, text] as const))(
  '%s shows the reviewed output of the command',
  async (path, text) => {
    await expect(withCaptures(text, read)).toMatchFileSnapshot(ROOT + path);
  },
);

test('docs/cli.md shows outputs', () => {
  expect(pages.map(({ path }) => path)).toContain('docs/cli.md');
});

describe('a capture in a page', () => {
  const reviewed = () => '$ mailroom status    (80 and 120 columns)\n\n1 problem\n  a\nexit code 1\n';
  const shown = (marker: string) => withCaptures(`${marker}\n\nText\n`, reviewed);

  test('is written below its marker, and again over what is there', () => {
    const marker = '<!-- capture: status -->';
    const page = `${marker}\n\`\`\`text\n$ npx cdk-mailroom status\n\n1 problem\n  a\n(exit code 1)\n\`\`\`\n\nText\n`;
    expect(shown(marker)).toBe(page);
    expect(withCaptures(page.replace('1 problem', '2 problems'), reviewed)).toBe(page);
  });

  test('is shortened with a mark', () => {
    expect(shown('<!-- capture: status, first 3 -->')).toContain('\n1 problem\n…\n```');
    expect(shown('<!-- capture: status, from "  a" -->')).toContain('```text\n  a\n```');
  });

  test('must exist', () => {
    expect(() => shown('<!-- capture: status, from "nothing" -->')).toThrow('has no line "nothing"');
    expect(() => shown('<!-- capture: status, last 3 -->')).toThrow('is not a capture');
  });
});
