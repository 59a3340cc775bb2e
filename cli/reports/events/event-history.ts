import { EVENT_PREFIX } from '../../../lambdas/runtime/store/parsed-keys.ts';
import { readable, readOutboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import {
  eachOf,
  minutesOf,
  type PartialList,
  partitionsOf,
  readPartition,
  readSweepState,
} from '../../deployment/rows-reader.ts';
import { many } from '../../terminal/output.ts';
import type { TimeWindow } from '../../terminal/window.ts';
import { containingId, envelopeOf, storedEventId } from '../why/stored-envelope.ts';

/** A published event, as in the JSON document of docs/cli.md. Times are epoch milliseconds. */
export interface HistoryEvent {
  readonly eventId: string;
  readonly type: string;
  readonly source: string;
  readonly aggregateType: string | null;
  readonly aggregateId: string | null;
  readonly correlationId: string | null;
  readonly causationId: string | null;
  readonly occurredAt: number | null;
  readonly publishedAt: number | null;
  /** `producer`, `stream` or `sweep`. */
  readonly publishedBy: string | null;
}

/** The published events to list. */
export interface HistoryChoice {
  readonly type?: string | undefined;
  /** An aggregate id. */
  readonly aggregate?: string | undefined;
  readonly limit: number;
}

/** The most minutes that are read at a time. */
const MINUTES_MAX = 64;

/**
 * Reads the published events of a range of time, newest commit first. It reads minute after minute, more at a time while it
 * finds nothing, and stops at the limit.
 */
export async function readHistory(
  { directory, table, terminal }: Pick<Deployment, 'directory' | 'table' | 'terminal'>,
  { since, until }: Pick<TimeWindow, 'since' | 'until'>,
  { type, aggregate, limit }: HistoryChoice,
): Promise<PartialList<HistoryEvent>> {
  const { shards } = await readSweepState(directory, table);
  const minutes = minutesOf(since, until);
  const where = { status: 'PUBLISHED', ...(type !== undefined && { type }) };
  const containing = aggregate === undefined ? undefined : containingId(aggregate);
  const found: HistoryEvent[] = [];
  let read = 0;
  for (let step = 1; read < minutes.length && found.length <= limit; step = Math.min(step * 2, MINUTES_MAX)) {
    const partitions = minutes.slice(read, read + step).flatMap((minute) => partitionsOf(minute, shards));
    const pages = await eachOf(
      partitions,
      (pk) => {
        const query = { pk, skPrefix: EVENT_PREFIX, where, containing };
        return readPartition(table, query, Number.POSITIVE_INFINITY);
      },
      terminal.signal,
    );
    const events = pages.flatMap(({ items }) => items.flatMap(historyEvent));
    found.push(...events.filter(({ aggregateId }) => aggregate === undefined || aggregateId === aggregate));
    read = Math.min(read + step, minutes.length);
    terminal.progress(
      `Reading: ${read} of ${many(minutes.length, 'minute')}, ${many(found.length, 'event')} found`,
    );
  }
  const items = found.sort((a, b) => (a.eventId < b.eventId ? 1 : -1)).slice(0, limit);
  return { items, more: found.length > limit || read < minutes.length };
}

function historyEvent(item: Item): HistoryEvent[] {
  const row = readable(readOutboxRow(item));
  const eventId = storedEventId(item);
  if (row === undefined || eventId === undefined) return [];
  const { type, source, publishedAt = null, publishedBy = null } = row;
  const envelope = envelopeOf(row.envelope);
  const {
    aggregateType = null,
    aggregateId = null,
    correlationId = null,
    causationId = null,
    occurredAt = null,
  } = envelope ?? {};
  return [
    {
      eventId,
      type,
      source,
      aggregateType,
      aggregateId,
      correlationId,
      causationId,
      occurredAt,
      publishedAt,
      publishedBy,
    },
  ];
}
