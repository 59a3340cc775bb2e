import { expect, it } from 'vitest';
import { ALTERNATIVES } from '../../../bench/alternatives/systems.ts';
import { MAILROOM } from '../../../bench/cost/mailroom.ts';
import { total } from '../../../bench/cost/measure.ts';
import { priceTable, servicesTable } from '../../../bench/cost/tables.ts';
import { plainRuns } from '../../../bench/cost.ts';
import { costPage, line } from './cost-page.ts';

/** Those that keep the promises that Mailroom keeps. */
const PEERS = ALTERNATIVES.filter(
  ({ promise }) => promise.publishes === 'at least once' && promise.effects === 'exactly once',
);

it('docs/cost.md shows what an event costs today, and it is less than in what promises as much', async () => {
  expect(PEERS).not.toEqual([]);
  const runs = await plainRuns([MAILROOM.transactional, ...PEERS]);
  for (const { rows } of [priceTable(runs), servicesTable(runs)]) {
    for (const row of rows)
      expect(costPage(), 'Renew it with: npm run bench -- cost --docs').toContain(line(row));
  }
  for (const own of runs.filter(({ system }) => system === MAILROOM.transactional)) {
    for (const peer of runs.filter(({ workload }) => workload.payloadBytes === own.workload.payloadBytes)) {
      if (peer !== own) expect(total(own.usd)).toBeLessThan(total(peer.usd));
    }
  }
});
