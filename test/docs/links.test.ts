import { expect, test } from 'vitest';
import { headingIds, linksOf } from './links.ts';

test('links of a page are found anywhere except in code', () => {
  const page = [
    'See [a\nlong text](b.md#c "title"), [`code`](../lib) and [home](https://example.com).',
    '`[no](no.md)`',
    '```sh',
    'echo [no](no.md)',
    '```',
    '[defined]: f.md',
    '[mail]: mailto:a@example.com',
  ].join('\n');
  expect(linksOf(page)).toEqual(['b.md#c', '../lib', 'f.md']);
});

test('headings are named as GitHub names them', () => {
  const page =
    "# What is `why`?\n## Turn-off, [again](a.md)\n```sh\n# no heading\n```\n## Why\n## Why\n## AWS's own_name ##\n";
  expect(headingIds(page)).toEqual(['what-is-why', 'turn-off-again', 'why', 'why-1', 'awss-own_name']);
});
