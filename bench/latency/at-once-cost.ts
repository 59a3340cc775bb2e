import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { PRICES } from '../assumptions.ts';
import { readUnits, writeUnits } from '../aws/billing.ts';
import { AT_ONCE, AT_ONCE_AGAIN, MAILROOM, publishedRow } from '../cost/mailroom.ts';
import { total } from '../cost/measure.ts';
import { PAYLOADS } from '../cost/tables.ts';
import { plainRuns } from '../cost.ts';
import type { FigureTable } from '../part.ts';

/** US dollars per million events, with one transactional consumer. */
export interface AtOnceCost {
  readonly payloadBytes: number;
  /** The relay publishes. */
  readonly relay: number;
  /** The producer publishes at once, and the stream relay reads each row. */
  readonly atOnce: number;
  /** If the stream relay read strongly consistently. */
  readonly strongRead: number;
  /** If the stream relay tried a claim instead, which the mark refuses. */
  readonly refusedClaim: number;
  /** If the stream relay published every event again. */
  readonly again: number;
}

/** Prices each way in which the stream relay can learn that a producer has published. */
export async function atOnceCosts(events: number): Promise<AtOnceCost[]> {
  const batch = { events, payloadBytes: 0, consumers: 1, retries: 0, batchSize: events };
  const runs = await plainRuns([MAILROOM.transactional, AT_ONCE, AT_ONCE_AGAIN], batch);
  return Promise.all(
    PAYLOADS.map(async (payloadBytes) => {
      const usd = (name: string) => {
        const run = runs.find(
          ({ system, workload }) => system.name === name && workload.payloadBytes === payloadBytes,
        );
        return run === undefined ? Number.NaN : total(run.usd);
      };
      const bytes = itemBytes(await publishedRow(payloadBytes));
      const read = (how: 'eventual' | 'strong') => readUnits(bytes, how) * PRICES.readUnitsPerMillion;
      const claim = writeUnits({ before: bytes, after: bytes }) * PRICES.writeUnitsPerMillion;
      const atOnce = usd(AT_ONCE.name);
      return {
        payloadBytes,
        relay: usd(MAILROOM.transactional.name),
        atOnce,
        strongRead: atOnce - read('eventual') + read('strong'),
        refusedClaim: atOnce - read('eventual') + claim,
        again: usd(AT_ONCE_AGAIN.name),
      };
    }),
  );
}

/** The table of {@link atOnceCosts}. */
export function atOnceCostTable(costs: readonly AtOnceCost[]): FigureTable {
  return {
    name: 'latency-cost',
    title: 'Publish at once: US dollars per million events, one transactional consumer',
    head: [
      'payload',
      'stream relay',
      'at once',
      'at once, strongly consistent read',
      'at once, refused claim',
      'at once, published again',
    ],
    rows: costs.map(({ payloadBytes, ...usd }) => [
      `${payloadBytes.toLocaleString('en-US')} B`,
      ...[usd.relay, usd.atOnce, usd.strongRead, usd.refusedClaim, usd.again].map((each) => each.toFixed(2)),
    ]),
  };
}
