import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { EVENT_PREFIX } from '../../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import {
  eachOf,
  minutesOf,
  partitionsOf,
  readPartition,
  readSweepState,
} from '../../deployment/rows-reader.ts';
import { storedEnvelopeOf, storedEventId } from './stored-envelope.ts';

/** Minutes read between two reports of progress and checks of the signal. */
const MINUTES_AT_ONCE = 30;

/** Dependencies of {@link searchEvents}. */
export interface SearchDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly signal: AbortSignal;
  /** Called after each step with the minutes read, their total, and the events found. */
  readonly onProgress: (read: number, of: number, found: number) => void;
}

/**
 * Finds the events of a range of time that match an id other than an event id: an order's, a customer's, a chain's. An event
 * matches if its `aggregateId` or `correlationId` is the id, or if `data` contains it as a value at any depth. There is no index,
 * so every minute is read, newest first.
 *
 * @returns their ids, newest first
 */
export async function searchEvents(
  deps: SearchDeps,
  id: string,
  { since, until }: { readonly since: number; readonly until: number },
) {
  const { directory, table, signal, onProgress } = deps;
  const { shards } = await readSweepState(directory, table);
  const minutes = minutesOf(since, until);
  const found: string[] = [];
  for (let read = 0; read < minutes.length; read += MINUTES_AT_ONCE) {
    signal.throwIfAborted();
    const step = minutes.slice(read, read + MINUTES_AT_ONCE);
    const partitions = step.flatMap((minute) => partitionsOf(minute, shards));
    const matches = await eachOf(partitions, (pk) => eventsOf(table, pk, id));
    found.push(...matches.flat());
    onProgress(read + step.length, minutes.length, found.length);
  }
  return found;
}

async function eventsOf(table: Table, pk: string, id: string): Promise<string[]> {
  const query = { pk, skPrefix: EVENT_PREFIX };
  const { items } = await readPartition(table, query, Number.POSITIVE_INFINITY);
  return items.flatMap((row) => {
    const envelope = storedEnvelopeOf(row);
    return envelope !== undefined && belongsTo(envelope, id) ? (storedEventId(row) ?? []) : [];
  });
}

function belongsTo(
  envelope: { readonly aggregateId?: unknown; readonly correlationId?: unknown; readonly data?: unknown },
  id: string,
): boolean {
  return envelope.aggregateId === id || envelope.correlationId === id || holds(envelope.data, id);
}

function holds(value: unknown, id: string): boolean {
  if (typeof value === 'string' || typeof value === 'number') return String(value) === id;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((inner) => holds(inner, id));
}
