import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { costPage } from './cost-page.ts';

const page = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

/** What a million events of a system cost with payloads of 200, 1,024 and 4,096 bytes, as docs/cost.md says. */
function priced(system: string): string[] {
  const row = costPage()
    .split('\n')
    .find(
      (line) =>
        line.startsWith(`| ${system} | `) &&
        /(?:at least once|may lose) \| (?:exactly once|may duplicate)/.test(line),
    );
  if (row === undefined) throw new Error(`docs/cost.md has no price of ${system}`);
  return row.split(' | ').slice(3, 6);
}

test.each([
  ['README.md', ['mailroom (transactional)', 'mailroom (leased, ctx.once)', 'direct']],
  [
    'docs/comparison.md',
    ['mailroom (transactional)', 'mailroom (leased, ctx.once)', 'direct', 'status-index+transactional-inbox'],
  ],
])('%s has the prices of docs/cost.md for events of 1 KB', (path, systems) => {
  const prices = systems.map((system) => priced(system)[1]);
  for (const price of prices) expect(page(path)).toContain(` ${price}`);
});
