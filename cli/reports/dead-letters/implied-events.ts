import { isObject, parseJson } from '../../../lambdas/runtime/base/json.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import type { MissingEvent } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import { consumersOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { isUnreadable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { eachOf, minutesOf, readMinutes, readSweepState } from '../../deployment/rows-reader.ts';
import type { DeadLetter } from './dead-letters.ts';

/** The events of the outbox that an unreadable message stands for: a rule that changes events has sent a part of them. */
export interface ImpliedEvents {
  /** Those that its consumer has never received. */
  readonly missing: readonly MissingEvent[];
  /** The ids of those that it has received in another message. */
  readonly received: readonly string[];
}

/** Dependencies of {@link impliedEvents}. */
export type ImpliedDeps = Pick<Deployment, 'directory' | 'table' | 'stored'>;

/** The most ids in one body that are looked up. */
const IDS_MAX = 20;

/** The most time between the commit of an event and the first send of its message in which its data is looked for. */
const COMMITTED_BEFORE_MS = 5 * MINUTE_MS;

/** The most minutes of the outbox that are read for one run, however many messages have no id. */
const MINUTES_MAX = 60;

/**
 * Finds the published events that unreadable messages stand for: by the event ids in a body or, in one without ids, by a body that is the
 * event's data or an object in it, among the events of the minutes before its first send.
 *
 * @returns the events of each message, in order
 */
export async function impliedEvents(
  deps: ImpliedDeps,
  consumer: ConsumerEntry,
  messages: readonly Pick<DeadLetter, 'received'>[],
): Promise<readonly ImpliedEvents[]> {
  const bodies = messages.map(({ received }) => received?.body ?? '');
  const byIds = await eachOf(bodies, (body) =>
    eachOf(idsIn(body), async (id) =>
      publishedEvent(deps, consumer, await deps.stored.outbox.byId(id, true)),
    ),
  );
  const named = byIds.map((found) => found.flatMap((event) => event?.missing ?? []));
  const byData = await eventsByData(
    deps,
    consumer,
    messages.filter((_, index) => named[index]?.length === 0),
  );
  const implied = bodies.map((body, index) =>
    named[index]?.length ? named[index] : (byData.get(comparable(body) ?? '') ?? []),
  );
  return eachOf(implied, async (events) => {
    const rows = await eachOf(events, ({ eventId }) =>
      deps.stored.inbox.byEvent(consumer.name, eventId, true),
    );
    return {
      missing: events.filter((_, at) => rows[at] === undefined),
      received: events.flatMap(({ eventId }, at) => (rows[at] === undefined ? [] : [eventId])),
    };
  });
}

/** The event ids in a body, whatever its form. */
function idsIn(body: string): string[] {
  const found = body.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? [];
  return [...new Set(found)].filter(isEventId).slice(0, IDS_MAX);
}

/** Reads an outbox row as an event that a consumer must have received; `undefined` if it need not. */
function publishedEvent(
  { directory }: Pick<ImpliedDeps, 'directory'>,
  consumer: ConsumerEntry,
  row: StoredEventRow | undefined,
): { readonly missing: MissingEvent; readonly data: unknown } | undefined {
  if (row === undefined || isUnreadable(row) || row.status !== 'PUBLISHED') return undefined;
  const { source, type, resentAt = null } = row;
  const { eventId, data } = parseJson(row.envelope) as Envelope;
  const own = { ...directory, consumers: [consumer] };
  if (consumersOf(own, { source, type, data: () => data }).length === 0) return undefined;
  const publishedAt = row.publishedAt ?? eventIdTime(eventId);
  return { missing: { eventId, consumer: consumer.name, type, publishedAt, resentAt, row: null }, data };
}

/** The events of the minutes before messages were sent whose data has the body of a message in it, by that body as {@link comparable} text. */
async function eventsByData(
  deps: ImpliedDeps,
  consumer: ConsumerEntry,
  messages: readonly Pick<DeadLetter, 'received'>[],
): Promise<ReadonlyMap<string, readonly MissingEvent[]>> {
  const found = new Map<string, MissingEvent[]>();
  const minutes = new Set<string>();
  for (const { received } of messages) {
    const text = comparable(received?.body);
    if (text === undefined || received === undefined) continue;
    found.set(text, []);
    for (const minute of minutesOf(received.sentAt - COMMITTED_BEFORE_MS, received.sentAt))
      minutes.add(minute);
  }
  if (minutes.size === 0) return found;
  const { shards } = await readSweepState(deps.directory, deps.table);
  const range = { minutes: [...minutes].slice(0, MINUTES_MAX), shards };
  await readMinutes(deps.stored.outbox, range, {}, (row) => {
    const event = publishedEvent(deps, consumer, row);
    if (event !== undefined)
      for (const part of new Set(partsOf(event.data))) found.get(part)?.push(event.missing);
  });
  return found;
}

/** A body as text that does not depend on the order of members; `undefined` unless it is an object or a list with members: a single value would be in many events. */
function comparable(body = ''): string | undefined {
  try {
    return partsOf(parseJson(body)).at(-1);
  } catch {
    return undefined;
  }
}

/** The objects and lists in a value that have members, as text, innermost first. */
function partsOf(value: unknown): string[] {
  const parts: string[] = [];
  const textOf = (inner: unknown): string => {
    if (!isObject(inner)) return JSON.stringify(inner);
    const members = Array.isArray(inner)
      ? inner.map(textOf)
      : Object.entries(inner)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`);
    const text = Array.isArray(inner) ? `[${members}]` : `{${members}}`;
    if (members.length > 0) parts.push(text);
    return text;
  };
  textOf(value);
  return parts;
}
