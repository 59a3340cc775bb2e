import { isObject, jsonObject } from '../base/json.ts';
import { poison } from '../base/poison.ts';
import { isEventId } from '../store/event-id.ts';

/** A message that change data capture sent, as it is read. */
export type ChangeRecord = ChangeContent & {
  /** Never an external event, whatever its ids: it is about a table of Mailroom, or bounds a transaction. */
  readonly isOwn?: boolean | undefined;
  /** The JSON in Kafka Connect's schema. @default undefined without one */
  readonly payload?: string | undefined;
};

/** The text of an event, the reason to skip a message or to reject it. */
type ChangeContent =
  | {
      readonly text: string;
      /** Members of the row that name its event. */
      readonly headers?: Readonly<Record<string, unknown>> | undefined;
    }
  | { readonly skip: string }
  | { readonly problem: Error };

/** Members of Debezium's forms. Most messages have none of them, and are parsed once. */
const HINT = /"(payload|op|ts_ms|ddl|event_count)"/;

/** The tables of events, in PostgreSQL and in MySQL. */
const TABLES = ['mailroom.event', 'event', 'mailroom.captured'];

/** Debezium's value of a large column that an update left as it was. */
const UNAVAILABLE = '__debezium_unavailable_value';

/**
 * Reads the forms of Debezium: a change of a row of `mailroom.event` or `mailroom.captured`, the value of Kafka Connect's JsonConverter with its schema, heartbeats, changes of a schema
 * and the boundaries of transactions. The event router's form is the envelope itself.
 *
 * An update is read as its row: a changed event has the same id, so an inbox absorbs it.
 *
 * @returns undefined for a body of another form
 */
export function changeRecordIn(body: string): ChangeRecord | undefined {
  if (!HINT.test(body)) return undefined;
  const value = jsonObject(body);
  if (value === undefined) return undefined;
  if (!isConnectValue(value)) return formIn(value);
  if (value.payload === null) return { skip: 'a tombstone' };
  if (typeof value.payload === 'string') return { text: value.payload };
  if (!isObject(value.payload)) return undefined;
  const payload = JSON.stringify(value.payload);
  return { ...(formIn(value.payload) ?? { text: payload }), payload };
}

/** A value of the JsonConverter has these two members only, and its schema is an object, or null for a value without one. */
function isConnectValue(value: Readonly<Record<string, unknown>>): boolean {
  const isSchema = value.schema === null || (isObject(value.schema) && typeof value.schema.type === 'string');
  return 'payload' in value && 'schema' in value && isSchema && Object.keys(value).length === 2;
}

function formIn(value: Readonly<Record<string, unknown>>): ChangeRecord | undefined {
  if (
    typeof value.op === 'string' &&
    isObject(value.source) &&
    ('after' in value || 'before' in value || 'message' in value)
  ) {
    const table = tableOf(value.source);
    return { ...changeIn(value.op, value.after, table), isOwn: TABLES.includes(table) };
  }
  if (Object.keys(value).join() === 'ts_ms' && typeof value.ts_ms === 'number')
    return { skip: 'a heartbeat' };
  if (isObject(value.source) && 'ddl' in value && 'tableChanges' in value)
    return { skip: 'a change of a schema' };
  const isBoundary =
    (value.status === 'BEGIN' || value.status === 'END') &&
    typeof value.id === 'string' &&
    'event_count' in value &&
    'data_collections' in value;
  return isBoundary ? { skip: 'the boundary of a transaction', isOwn: true } : undefined;
}

/** The table of a change, with its schema. MySQL calls a schema a database. */
function tableOf({ schema, db, table }: Readonly<Record<string, unknown>>): string {
  return [schema ?? db, table].filter((part) => typeof part === 'string').join('.');
}

function changeIn(op: string, after: unknown, name: string): ChangeContent {
  if (op === 'd' || op === 't') return { skip: op === 'd' ? 'a deleted row' : 'a truncated table' };
  if (op === 'm') return { skip: 'a message in the log' };
  if (!['c', 'r', 'u'].includes(op))
    return unreadable(`its op is ${shown(op)}`, 'Debezium writes c, r, u, d, t or m');
  if (!TABLES.includes(name))
    return unreadable(
      `it is a change of a row of ${shown(name)}`,
      'a consumer reads rows of mailroom.event or, in MySQL, of mailroom.captured: remove the other table from `table.include.list`, or read it with `decode`',
    );
  if (!isObject(after))
    return unreadable(
      'it has no row after the change',
      'send the whole value: no `after.state.only` and no projection',
    );
  const { event_id: id, envelope, type, source: service } = after;
  if (envelope === UNAVAILABLE)
    return unreadable(
      'an update left its envelope out',
      'set `publish` of the publication to insert: events are not updated',
    );
  if (typeof envelope !== 'string' || !isEventId(id))
    return unreadable(
      'its row has no event_id or no envelope',
      'do not exclude, rename or mask columns of mailroom.event',
    );
  if (jsonObject(envelope)?.eventId !== id)
    return unreadable('the envelope is not that of its row', 'find who wrote the row');
  return { text: envelope, headers: { eventId: id, type, source: service } };
}

function unreadable(what: string, remedy: string): ChangeContent {
  return {
    problem: poison(
      'UNREADABLE_MESSAGE',
      `The message is a change of a row, from Debezium, and ${what}. The remedy: ${remedy}.`,
    ),
  };
}

/** A name from a message, short. */
function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}
