import { itemBytes } from '../lambdas/runtime/store/item-size.ts';
import { BUS_DELIVERY_MS, CALL_MS, PRICES, QUEUE_POLL_MS, STREAM_POLLS_PER_SECOND } from './assumptions.ts';
import { readUnits, writeUnits } from './aws/billing.ts';
import { AT_ONCE, AT_ONCE_AGAIN, MAILROOM, publishedRow } from './cost/mailroom.ts';
import { total } from './cost/measure.ts';
import { PAYLOADS } from './cost/tables.ts';
import { plainRuns } from './cost.ts';
import type { FigureTable, Part } from './part.ts';

/** Computes the time from commit to handler on AWS, and what an earlier one costs. */
export const latency: Part = {
  name: 'latency',
  title: 'commit to handler on AWS, computed, and the price of publishing at once',
  run: async ({ quick }) => {
    const costs = await atOnceCosts(quick ? 5 : 100);
    return {
      json: { latencyOnAws: latencySteps(), publishAtOnce: costs.map(costRecord) },
      tables: [latencyTable(), atOnceTable(costs)],
    };
  },
};

/** One step between the commit and the start of the handler, in milliseconds. */
interface LatencyStep {
  readonly step: string;
  /** If the stream relay publishes. */
  readonly relay: number;
  /** The same, if the event just misses a poll. */
  readonly relayWorst: number;
  /** If the producer publishes at once. */
  readonly atOnce: number;
}

const POLL_MS = 1_000 / STREAM_POLLS_PER_SECOND;

/**
 * The steps, and their sum as the last one, from documented polling and delivery; a call or an invocation of a warm function takes
 * {@link CALL_MS}. Cold starts and batching windows come on top.
 */
export function latencySteps(): readonly LatencyStep[] {
  const always = (step: string, ms: number) => ({ step, relay: ms, relayWorst: ms, atOnce: ms });
  const steps: readonly LatencyStep[] = [
    { step: 'the stream is polled', relay: POLL_MS / 2, relayWorst: POLL_MS, atOnce: 0 },
    { step: 'the stream relay is invoked', relay: CALL_MS, relayWorst: CALL_MS, atOnce: 0 },
    always('PutEvents', CALL_MS),
    always('the bus delivers to the queue (p90)', BUS_DELIVERY_MS),
    always('the queue is polled', QUEUE_POLL_MS),
    always('the consumer is invoked', CALL_MS),
  ];
  const sum = (of: (step: LatencyStep) => number) => steps.reduce((ms, step) => ms + of(step), 0);
  const all = {
    step: 'commit to handler',
    relay: sum(({ relay }) => relay),
    relayWorst: sum(({ relayWorst }) => relayWorst),
    atOnce: sum(({ atOnce }) => atOnce),
  };
  return [...steps, all];
}

export function latencyTable(): FigureTable {
  return {
    name: 'latency-aws',
    title: 'Latency on AWS, computed, ms',
    head: ['step', 'stream relay, mean', 'stream relay, worst poll', 'publish at once'],
    rows: latencySteps().map(({ step, relay, relayWorst, atOnce }) => [step, relay, relayWorst, atOnce]),
  };
}

/** US dollars per million events with one transactional consumer, by how the stream relay learns that a producer has published. */
interface AtOnceCost {
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

export async function atOnceCosts(events: number): Promise<AtOnceCost[]> {
  const batch = { events, payloadBytes: 0, consumers: 1, retries: 0, batchSize: events };
  const runs = await plainRuns([MAILROOM.transactional, AT_ONCE, AT_ONCE_AGAIN], batch);
  return Promise.all(
    PAYLOADS.map(async (payloadBytes) => {
      const [relay = NaN, atOnce = NaN, again = NaN] = runs
        .filter(({ workload }) => workload.payloadBytes === payloadBytes)
        .map(({ usd }) => total(usd));
      const bytes = itemBytes(await publishedRow(payloadBytes));
      const read = (how: 'eventual' | 'strong') => readUnits(bytes, how) * PRICES.readUnitsPerMillion;
      const claim = writeUnits({ before: bytes, after: bytes }) * PRICES.writeUnitsPerMillion;
      const strongRead = atOnce - read('eventual') + read('strong');
      return {
        payloadBytes,
        relay,
        atOnce,
        strongRead,
        refusedClaim: atOnce - read('eventual') + claim,
        again,
      };
    }),
  );
}

export function atOnceTable(costs: readonly AtOnceCost[]): FigureTable {
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

function costRecord({ payloadBytes, ...usd }: AtOnceCost) {
  const rounded = Object.entries(usd).map(([way, each]) => [`${way}Usd`, Math.round(each * 100) / 100]);
  return { payloadBytes, ...Object.fromEntries(rounded) };
}
