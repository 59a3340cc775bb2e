import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { costPage } from './cost-page.ts';

const page = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

/** What a million events of a system cost with payloads of 200, 1,024 and 4,096 bytes, as docs/cost.md says. */
function priced(system: string): string[] {
  const row = costPage()
    .split('\n')
    .find((line) => line.startsWith(`| ${system} | `) && line.includes('at least once | exactly once'));
  if (row === undefined) throw new Error(`docs/cost.md has no price of ${system}`);
  return row.split(' | ').slice(3, 6);
}

test.each([
  ['transactional handler', 'mailroom (transactional)'],
  ['leased handler', 'mailroom (leased)'],
  ['leased handler with one `ctx.once`', 'mailroom (leased, ctx.once)'],
])('README.md says of a %s what docs/cost.md says', (handler, system) => {
  expect(page('README.md')).toContain(`| ${[handler, ...priced(system)].join(' | ')} |`);
});

test.each(['README.md', 'docs/comparison.md'])('%s compares with the prices of docs/cost.md', (path) => {
  const [, transactional] = priced('mailroom (transactional)');
  const [, once] = priced('mailroom (leased, ctx.once)');
  const [, peer] = priced('status-index+transactional-inbox');
  for (const price of [transactional, once, peer]) expect(page(path)).toContain(price);
});
