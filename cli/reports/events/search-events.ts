import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { minutesOf, PARTITIONS_AT_ONCE, readMinutes, readSweepState } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { containingId, envelopeOf, type StoredEnvelope, storedEventId } from './stored-envelope.ts';

/** The least number of minutes read between two reports of progress. */
const REPORTED_MINUTES = 30;

/** Dependencies of {@link searchEvents}. */
export interface SearchDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly stored: Pick<StoredRows, 'outbox'>;
  readonly signal: AbortSignal;
  /** Called now and then with the minutes read, their total, and the events found. */
  readonly onProgress: (read: number, of: number, found: number) => void;
}

/**
 * Finds the events of a range of time that match an id other than an event id: an order's, a customer's, a chain's. An event
 * matches if its `aggregateId` or `correlationId` is the id, or if `data` contains it as a value at any depth. Without an index
 * for this, it reads every minute, newest first; the table returns only the rows whose envelope contains the id or is compressed.
 *
 * @returns their ids, newest first
 */
export async function searchEvents(
  deps: SearchDeps,
  id: string,
  { since, until }: { readonly since: number; readonly until: number },
): Promise<string[]> {
  const { directory, table, stored, signal, onProgress } = deps;
  const { shards } = await readSweepState(directory, table);
  const minutes = minutesOf(since, until);
  const containing = containingId(id);
  const found: string[] = [];
  const atOnce = Math.max(REPORTED_MINUTES, Math.floor(PARTITIONS_AT_ONCE / shards.length));
  for (let read = 0; read < minutes.length; read += atOnce) {
    const some = minutes.slice(read, read + atOnce);
    const match = (row: StoredEventRow) => matchOf(row, id);
    const lists = await readMinutes(stored.outbox, { minutes: some, shards }, { containing, signal }, match);
    found.push(...lists.flatMap(({ items }) => items.flat()));
    onProgress(read + some.length, minutes.length, found.length);
  }
  return found;
}

/**
 * Adds the causes of events that match the id as well. An event id names its row, so these are found in any minute and any shard, also
 * where the search did not read.
 */
export async function withCauses(
  rooms: readonly Pick<SearchDeps, 'stored'>[],
  found: readonly string[],
  id: string,
): Promise<string[]> {
  const known = new Set(found);
  const seen = new Set(found);
  for (let next = found; next.length > 0; ) {
    const ids = next;
    const read = await Promise.all(
      rooms.map(({ stored }) =>
        stored.outbox.byIds(ids, (_eventId, row) => (row === undefined ? [] : matchWithCauses(row, id))),
      ),
    );
    const matches = read.flat(2);
    for (const { eventId } of matches) known.add(eventId);
    next = [...new Set(matches.flatMap(({ causes }) => causes))].filter((eventId) => !seen.has(eventId));
    for (const eventId of next) seen.add(eventId);
  }
  return [...known];
}

/** An event that matches, with the events that its row names as its cause and as the first of its chain. */
function matchWithCauses(row: StoredEventRow, id: string) {
  const { causationId, correlationId } = envelopeOf(row.envelope) ?? {};
  const causes = [causationId, correlationId].filter(isEventId);
  return matchOf(row, id).map((eventId) => ({ eventId, causes }));
}

/** The id of a stored event that matches an id other than its own, or nothing. */
function matchOf(row: StoredEventRow, id: string): string[] {
  const envelope = envelopeOf(row.envelope);
  const eventId = storedEventId(row);
  return eventId !== undefined && envelope !== undefined && belongsTo(envelope, id) ? [eventId] : [];
}

function belongsTo(envelope: StoredEnvelope, id: string): boolean {
  return isOf(envelope, id) || holds(envelope.data, id);
}

/** True for an envelope with the id as its aggregate or correlation id. */
export function isOf(envelope: unknown, id: string): boolean {
  const { aggregateId, correlationId } = Object(envelope) as Readonly<Record<string, unknown>>;
  return aggregateId === id || correlationId === id;
}

function holds(value: unknown, id: string): boolean {
  if (typeof value === 'string' || typeof value === 'number') return String(value) === id;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((inner) => holds(inner, id));
}
