import { errorCode, errorMessage, MailroomError } from '../base/errors.ts';
import { xrayHeaderOf } from '../observe/trace-context.ts';
import { isEventId, outboxKeyOf } from '../store/event-id.ts';
import { readable, readOutboxRow } from '../store/stored-rows.ts';
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
 * Publishes a PUBLISHED event once more, under its own id, and leaves its row as it is: the call is repeated by whoever does not get an
 * answer. Only a relay can do this, because the bus refuses every other principal.
 *
 * @throws `NOT_PUBLISHED` if the event's row is missing, unreadable or not PUBLISHED, or its source is not declared
 */
export async function republish(
  { table, bus, config, telemetry }: Pick<RelayContext, 'table' | 'bus' | 'config' | 'telemetry'>,
  eventId: string,
): Promise<RepublishReport> {
  const item = isEventId(eventId) ? await table.get(outboxKeyOf(eventId), { consistent: true }) : undefined;
  const row = readable(readOutboxRow(item));
  const isDeclared = row !== undefined && (config.sources?.includes(row.source) ?? true);
  if (row?.status !== 'PUBLISHED' || !isDeclared) {
    const state =
      row === undefined ? 'has no row that can be read' : `is ${row.status} with source ${row.source}`;
    throw new MailroomError(
      'NOT_PUBLISHED',
      `Event ${eventId} ${state}; only PUBLISHED events of declared sources are published again.`,
    );
  }
  const { source, type: detailType, envelope: detail } = row;
  const entry = { source, detailType, detail, traceHeader: xrayHeaderOf(row.traceId) };
  try {
    const [result] = await bus.put([entry], config.publishTimeoutMs);
    telemetry.log.info('Published an event again', { eventId, published: result?.ok === true });
    if (result?.ok) return { republish: eventId };
    return {
      republish: eventId,
      refusal: result ?? { code: 'NoAnswer', message: 'PutEvents returned no result' },
    };
  } catch (error) {
    return { republish: eventId, refusal: { code: errorCode(error), message: errorMessage(error) } };
  }
}
