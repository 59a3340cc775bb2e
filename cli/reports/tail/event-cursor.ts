import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import { eventIdOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { OutboxReaderDeps } from '../../deployment/published-events.ts';
import { isNotDue, minutesOf, readMinutes } from '../../deployment/rows-reader.ts';
import { BEHIND_MAX_MS } from '../../terminal/aws-clock.ts';

/** A commit may become visible this much later than one with a younger id: the range is read again for as long. */
const OVERLAP_MS = 5_000;

/**
 * The most rows of a minute that are read in one step, an equal share of each shard: 100 events a second for the overlap and an interval of two
 * seconds are 700 rows, and the shards are not filled evenly.
 */
const ROWS_MAX = 1_000;

/** An outbox row and the id of its event. */
export interface NewRow {
  readonly eventId: string;
  readonly row: StoredEventRow;
}

/** The result of one step. */
export interface NewEvents {
  /** In order of commit. */
  readonly rows: readonly NewRow[];
  /** There were more rows than were read. */
  readonly more: boolean;
}

/**
 * Follows the outbox: each call returns the events that were committed since the call before. Event ids begin with their time, so
 * a call reads one query for each shard, and one more around the turn of a minute.
 *
 * @param since - the first call begins here, epoch milliseconds
 * @returns the function to call; its second argument is the most rows of a minute to read @default 1,000
 */
export function createEventCursor(
  { stored, shards }: OutboxReaderDeps,
  since: number,
): (now: number, rowsMax?: number) => Promise<NewEvents> {
  let from = since;
  let seen = new Set<string>();
  return async (now, rowsMax = ROWS_MAX) => {
    const limit = Math.ceil(rowsMax / shards.length);
    const until = now + BEHIND_MAX_MS;
    const pages = await readMinutes(
      stored.outbox,
      { minutes: minutesOf(from, until), shards },
      { after: idsFrom(from), max: limit },
      (row) => (isNotDue(row, until) ? [] : (newRow(row) ?? [])),
    );
    const read = pages.flatMap(({ items }) => items.flat());
    const rows = read.filter(({ eventId }) => !seen.has(eventId));
    from = Math.max(from, now - OVERLAP_MS);
    // Older ids are not read again.
    const kept = idsFrom(from);
    seen = new Set([...seen, ...read.map(({ eventId }) => eventId)].filter((eventId) => eventId > kept));
    return {
      rows: rows.sort((a, b) => (a.eventId < b.eventId ? -1 : 1)),
      more: pages.some(({ more }) => more),
    };
  };
}

/** The row with the id of its event; `undefined` if its key is not that of an event. */
export function newRow(row: StoredEventRow): NewRow | undefined {
  const eventId = eventIdOf(row);
  return eventId === undefined ? undefined : { eventId, row };
}

/** A text before every event id of a time or later, and after every earlier one. */
function idsFrom(time: number): string {
  const hex = Math.max(0, Math.floor(time)).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
