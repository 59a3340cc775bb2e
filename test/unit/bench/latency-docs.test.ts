import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { atOnceCosts, atOnceTable, latencySteps, latencyTable } from '../../../bench/latency.ts';
import { line } from './cost-page.ts';

const read = (page: string) => readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8');

test('bench/README.md shows the computed latency on AWS', () => {
  for (const row of latencyTable().rows) expect(read('bench/README.md')).toContain(line(row));
});

test('bench/README.md shows the price of publishing at once', async () => {
  for (const row of atOnceTable(await atOnceCosts(100)).rows)
    expect(read('bench/README.md')).toContain(line(row));
});

test('docs/scaling.md states the sums of the steps', () => {
  const all = latencySteps().at(-1);
  const page = read('docs/scaling.md');
  expect(page).toContain(`about ${all?.relay} ms after the commit`);
  expect(page).toContain(`saves** about ${Number(all?.relay) - Number(all?.atOnce)} ms`);
});

test('reading whether a producer has published is the cheapest way to learn it', async () => {
  for (const { atOnce, strongRead, refusedClaim, again } of await atOnceCosts(5)) {
    expect(atOnce).toBeLessThan(Math.min(strongRead, refusedClaim, again));
  }
});
