import { eventIdTime } from '../../store/event-id.ts';
import type { InboxRow } from '../../store/inbox-row.ts';
import { type Directory, sloOf } from '../directory.ts';
import type { Standing } from './audit-ledger.ts';

/**
 * The deliveries of one consumer, of events that were committed in one period. An event that is not processed counts once it is
 * late: later than the SLO's latency after its commit or, without an SLO, than the grace period. An unproven or unreadable event
 * does not count, nor, without an SLO, one that may still arrive (pending, waiting or inconclusive). Heartbeats never count.
 *
 * A redriven or resolved message was processed at that time. A rejected or discarded one was not processed.
 */
export interface PeriodDeliveries {
  readonly consumer: string;
  /** The start of the period, epoch milliseconds. */
  readonly from: number;
  /** The events that count. */
  readonly published: number;
  /** Of these, the processed ones, however late. */
  readonly processed: number;
  /** Of these, the ones processed within the SLO's latency after their commit; `null` without an SLO. */
  readonly withinSlo: number | null;
}

/** The misses that a consumer's SLO allows in the range of an audit, and those left. */
export interface ErrorBudget {
  readonly consumer: string;
  readonly latencyMs: number;
  /** The share of events that must meet the latency, in percent. */
  readonly percentile: number;
  /** The events that count. */
  readonly published: number;
  /** The number of these that may miss the latency, rounded down. */
  readonly allowed: number;
  /** The number that missed it. */
  readonly missed: number;
  /** `allowed - missed`; negative if the SLO is missed. */
  readonly left: number;
}

/** The deliveries of one audit. */
export interface Deliveries {
  /** Counts an event at a consumer. @param row - its inbox row, if it was read */
  add(consumer: string, eventId: string, standing: Standing, row?: InboxRow): void;
  /** Leaves an event out, at every consumer. */
  leaveOut(eventId: string): void;
  /** Returns the counts, by period and consumer; a period without events that count is left out. */
  found(): PeriodDeliveries[];
}

/** Options of {@link createDeliveries}. */
interface DeliveryOptions {
  readonly directory: Directory;
  /** The length of a period, milliseconds; periods begin at its multiples since 1970. */
  readonly periodMs: number;
  /** The time at which an event is late without an SLO, milliseconds after its commit. */
  readonly graceMs: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Starts to count deliveries. */
export function createDeliveries({ directory, periodMs, graceMs, now }: DeliveryOptions): Deliveries {
  const slos = new Map(directory.consumers.map((consumer) => [consumer.name, sloOf(consumer)]));
  const leftOut = new Set<string>();
  const counted = new Map<string, { -readonly [K in keyof PeriodDeliveries]: PeriodDeliveries[K] }>();

  function countsOf(consumer: string, committedAt: number) {
    const from = Math.floor(committedAt / periodMs) * periodMs;
    const key = `${from} ${consumer}`;
    const withinSlo = slos.get(consumer) === undefined ? null : 0;
    const counts = counted.get(key) ?? { consumer, from, published: 0, processed: 0, withinSlo };
    counted.set(key, counts);
    return counts;
  }

  return {
    add: (consumer, eventId, standing, row) => {
      const slo = slos.get(consumer);
      if (leftOut.has(eventId) || UNKNOWN.has(standing)) return;
      if (slo === undefined && ON_ITS_WAY.has(standing)) return;
      const committedAt = eventIdTime(eventId);
      const isProcessed = standing === 'processed';
      if (!isProcessed && committedAt + (slo?.latencyMs ?? graceMs) >= now) return;
      const counts = countsOf(consumer, committedAt);
      counts.published += 1;
      if (!isProcessed) return;
      counts.processed += 1;
      const { processedAt = Number.POSITIVE_INFINITY } = row?.status === 'PROCESSED' ? row : {};
      const tookMs = processedAt - committedAt;
      if (slo !== undefined && tookMs <= slo.latencyMs) counts.withinSlo = (counts.withinSlo ?? 0) + 1;
    },
    leaveOut: (eventId) => {
      leftOut.add(eventId);
    },
    found: () =>
      [...counted.values()].sort((a, b) => a.from - b.from || a.consumer.localeCompare(b.consumer)),
  };
}

/** Returns the error budget of each consumer with an SLO and events that count. */
export function errorBudgets(directory: Directory, deliveries: readonly PeriodDeliveries[]): ErrorBudget[] {
  return directory.consumers.flatMap((consumer) => {
    const slo = sloOf(consumer);
    const own = deliveries.filter((delivery) => delivery.consumer === consumer.name);
    if (slo === undefined || own.length === 0) return [];
    const published = own.reduce((sum, delivery) => sum + delivery.published, 0);
    const within = own.reduce((sum, { withinSlo }) => sum + (withinSlo ?? 0), 0);
    // 1 % of 300 is 3, not the 2.9999999999999996 of binary fractions.
    const allowed = Math.floor(Number(((published * (100 - slo.percentile)) / 100).toPrecision(12)));
    const missed = published - within;
    return [{ consumer: consumer.name, ...slo, published, allowed, missed, left: allowed - missed }];
  });
}

const UNKNOWN: ReadonlySet<Standing> = new Set(['unproven', 'unreadable']);

const ON_ITS_WAY: ReadonlySet<Standing> = new Set(['waiting', 'inconclusive']);
