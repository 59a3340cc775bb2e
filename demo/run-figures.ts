import { eventIdTime } from '../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../lambdas/runtime/store/inbox-row.ts';
import { CONSUMERS, type Readings } from './readings.ts';

/** Percentiles in milliseconds, by nearest rank; 0 without a measurement. */
export interface Latency {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** Counts in each second of a run. All lists have the same length. */
interface RunSeconds {
  /** The commit of the first order, epoch milliseconds. */
  readonly from: number;
  /** Orders placed. */
  readonly placed: readonly number[];
  /** Events published. */
  readonly published: readonly number[];
  /** Messages processed, by all consumers. */
  readonly processed: readonly number[];
}

/** The times of a run, from the rows. */
export interface RunFigures {
  readonly commitToPublishedMs: Latency;
  readonly commitToProcessedMs: Latency;
  /** To the first charge of an order. */
  readonly commitToChargedMs: Latency;
  readonly perSecond: RunSeconds;
}

/**
 * Reads the times of a run from its rows. A scheduled event waits from its commit until it is due, and a message whose handler asked for
 * a wait was not processed sooner on purpose: neither has a latency.
 */
export function runFigures({ events, inbox, charges }: Readings): RunFigures {
  const times = events.map(({ row, envelope: { eventId, type, aggregateId } }) => ({
    committedAt: eventIdTime(eventId),
    isScheduled: row.dueAt !== undefined,
    isOrder: type === 'OrderPlaced',
    published: row.publishedAt === undefined ? [] : [row.publishedAt],
    ...processedOf(CONSUMERS.map((consumer) => inbox[consumer].get(eventId))),
    charged: type === 'OrderPlaced' ? (charges.get(aggregateId) ?? []).slice(0, 1).map(({ at }) => at) : [],
  }));
  const latencyTo = (of: 'published' | 'processedAtOnce' | 'charged') =>
    latency(
      times.flatMap((event) => (event.isScheduled ? [] : event[of].map((at) => at - event.committedAt))),
    );
  return {
    commitToPublishedMs: latencyTo('published'),
    commitToProcessedMs: latencyTo('processedAtOnce'),
    commitToChargedMs: latencyTo('charged'),
    perSecond: perSecond(
      times.flatMap(({ isOrder, committedAt }) => (isOrder ? [committedAt] : [])),
      times.flatMap(({ published }) => published),
      times.flatMap(({ processed }) => processed),
    ),
  };
}

/** The times at which messages were processed, and those of the messages whose handlers asked for no wait. */
function processedOf(rows: readonly (InboxRow | undefined)[]) {
  const done = rows.flatMap((row) => {
    if (row?.status !== 'PROCESSED' || row.processedAt === undefined) return [];
    return [
      { at: row.processedAt, waited: row.pastAttempts?.some(({ ended }) => ended === 'waited') ?? false },
    ];
  });
  return {
    processed: done.map(({ at }) => at),
    processedAtOnce: done.filter(({ waited }) => !waited).map(({ at }) => at),
  };
}

function latency(times: readonly number[]): Latency {
  const sorted = times.toSorted((a, b) => a - b);
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { p50: rank(0.5), p90: rank(0.9), p99: rank(0.99) };
}

function perSecond(
  placed: readonly number[],
  published: readonly number[],
  processed: readonly number[],
): RunSeconds {
  const from = placed.reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY);
  if (placed.length === 0) return { from: 0, placed: [], published: [], processed: [] };
  const secondOf = (at: number) => Math.max(0, Math.floor((at - from) / 1_000)); // clocks may differ
  const last = [placed, published, processed].flat().reduce((max, at) => Math.max(max, secondOf(at)), 0);
  const counted = (times: readonly number[]) => {
    const counts = Array.from({ length: last + 1 }, () => 0);
    for (const at of times) counts[secondOf(at)] = (counts[secondOf(at)] ?? 0) + 1;
    return counts;
  };
  return { from, placed: counted(placed), published: counted(published), processed: counted(processed) };
}
