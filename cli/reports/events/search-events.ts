import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { EVENT_PREFIX } from '../../../lambdas/runtime/store/keys.ts';
import type { Item, Table } from '../../../lambdas/runtime/store/table.ts';
import {
  eachOf,
  minutesOf,
  partitionsOf,
  readPartition,
  readSweepState,
} from '../../deployment/rows-reader.ts';
import { containingId, type StoredEnvelope, storedEnvelopeOf, storedEventId } from './stored-envelope.ts';

/** Minutes read between two reports of progress. */
const REPORTED_MINUTES = 30;

/** Dependencies of {@link searchEvents}. */
export interface SearchDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly signal: AbortSignal;
  /** Called now and then with the minutes read, their total, and the events found. */
  readonly onProgress: (read: number, of: number, found: number) => void;
}

/**
 * Finds the events of a range of time that match an id other than an event id: an order's, a customer's, a chain's. An event
 * matches if its `aggregateId` or `correlationId` is the id, or if `data` contains it as a value at any depth. There is no index,
 * so every minute is read, newest first; the table returns only the rows whose envelope contains the id or is compressed.
 *
 * @returns their ids, newest first
 */
export async function searchEvents(
  deps: SearchDeps,
  id: string,
  { since, until }: { readonly since: number; readonly until: number },
): Promise<string[]> {
  const { directory, table, signal, onProgress } = deps;
  const { shards } = await readSweepState(directory, table);
  const minutes = minutesOf(since, until);
  const partitions = minutes.flatMap((minute) => partitionsOf(minute, shards));
  const containing = containingId(id);
  let read = 0;
  let found = 0;
  const matches = await eachOf(
    partitions,
    async (pk) => {
      const query = { pk, skPrefix: EVENT_PREFIX, containing };
      const { items } = await readPartition(table, query, Number.POSITIVE_INFINITY);
      const ids = items.flatMap((row) => matchOf(row, id));
      read += 1;
      found += ids.length;
      const isStep = read % (REPORTED_MINUTES * shards.length) === 0 || read === partitions.length;
      if (isStep) onProgress(read / shards.length, minutes.length, found);
      return ids;
    },
    signal,
  );
  return matches.flat();
}

/** The id of a stored event that matches an id other than its own, or nothing. */
export function matchOf(row: Item, id: string): string[] {
  const envelope = storedEnvelopeOf(row);
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
