import { errorCode, errorMessage, MailroomError } from '../base/errors.ts';
import { entryError } from '../outbox/entry-error.ts';
import { pendingRow } from '../outbox/pending-row.ts';
import { isEventId, outboxKeyOf } from '../store/event-id.ts';
import type { Item, Table } from '../store/table.ts';
import { declaredSources } from './declared-sources.ts';
import type { RelayContext } from './relay-context.ts';

/** An operator's request to publish a PUBLISHED event again. */
export interface RepublishRequest {
  /** The id of the event. */
  readonly republish: string;
}

/** The outcome of a {@link RepublishRequest}. */
export interface RepublishReport {
  /** The id of the event. */
  readonly republish: string;
  /** The reason why the bus did not accept it; absent if it did. */
  readonly refusal?: { readonly code: string; readonly message: string } | undefined;
}

/**
 * Reads the event to republish from an invocation of the sweep.
 *
 * @returns `undefined` if the invocation does not ask for it
 */
export function eventToRepublish(event: unknown): string | undefined {
  const { republish } = Object(event) as Partial<RepublishRequest>;
  return typeof republish === 'string' ? republish : undefined;
}

/**
 * Publishes a PUBLISHED event once more, under its own id, and leaves its row as it is: a caller without an answer repeats the call.
 * Only a relay can do this, because the bus refuses every other principal.
 *
 * @throws `NOT_PUBLISHED` if the event has no PUBLISHED row that this version can read, or its source is not declared
 */
export async function republish(
  { table, bus, config, telemetry }: Pick<RelayContext, 'table' | 'bus' | 'config' | 'telemetry'>,
  eventId: string,
): Promise<RepublishReport> {
  const item = isEventId(eventId) ? await readOutboxItem(table, eventId) : undefined;
  // Its entry is that of the PENDING row that it was.
  const row = item?.status === 'PUBLISHED' ? pendingRow({ ...item, status: 'PENDING' }) : undefined;
  if (row === undefined || !declaredSources(config, telemetry).has(row)) {
    const state = item === undefined ? 'has no row' : `is ${item.status}, with source ${item.source}`;
    throw new MailroomError(
      'NOT_PUBLISHED',
      `Event ${eventId} ${state}; only PUBLISHED events of declared sources are published again.`,
    );
  }
  try {
    const [result] = await bus.put([row.entry], config.publishTimeoutMs);
    telemetry.log.info('Published an event again', { eventId, published: result?.ok === true });
    if (result?.ok) return { republish: eventId };
    const { code, message } = entryError(row, result);
    return { republish: eventId, refusal: { code, message } };
  } catch (error) {
    return { republish: eventId, refusal: { code: errorCode(error), message: errorMessage(error) } };
  }
}

/** Reads an outbox row by a query: the sweep's role may not get one. */
async function readOutboxItem(table: Pick<Table, 'query'>, eventId: string): Promise<Item | undefined> {
  const { PK: pk, SK: skPrefix } = outboxKeyOf(eventId);
  const { items } = await table.query({ pk, skPrefix, consistent: true });
  return items[0];
}
