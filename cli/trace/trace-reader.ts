import { isTime } from '../../lambdas/runtime/clock.ts';
import type { Envelope } from '../../lambdas/runtime/event.ts';
import { parseJson } from '../../lambdas/runtime/json-depth.ts';
import { depthOf } from '../../lambdas/runtime/operations/dead-letters.ts';
import { deliveredEventId } from '../../lambdas/runtime/operations/delivered-event.ts';
import {
  type ConsumerEntry,
  consumersOf,
  type Directory,
} from '../../lambdas/runtime/operations/directory.ts';
import type { Letter, QueueDepth, Queues } from '../../lambdas/runtime/operations/queues.ts';
import { MINUTE_MS } from '../../lambdas/runtime/relay/sweep-minutes.ts';
import { eventIdTime, isEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import {
  type EffectRow,
  failedKey,
  type InboxRow,
  inboxKey,
  type OutboxRow,
} from '../../lambdas/runtime/store/rows.ts';
import {
  readable,
  readEffectRow,
  readFailedHint,
  readInboxRow,
  readOutboxRow,
  type UnreadableRow,
} from '../../lambdas/runtime/store/stored-rows.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { consumerPlace, peek, type QueuePlace, rulePlace } from '../reading/place.ts';
import { eachOf, minutesOf, partitionsOf, readPartition, readSweepState } from '../reading/rows-reader.ts';

/** Everything that is stored of an event, and of what each consumer made of it. */
export interface TracedEvent {
  readonly eventId: string;
  /** Absent when it was never written here, or was published and has expired. */
  readonly row: OutboxRow | UnreadableRow | undefined;
  /** Absent when it cannot be read. */
  readonly envelope: StoredEnvelope | undefined;
  /** One for each consumer that must see it. */
  readonly messages: readonly TracedMessage[];
  /** The events that its consumers' commits wrote. */
  readonly caused: readonly string[];
}

/** An event as one consumer has, or has not, seen it. */
export interface TracedMessage {
  readonly consumer: ConsumerEntry;
  /** Absent when the consumer has not claimed it. */
  readonly row: InboxRow | UnreadableRow | undefined;
  readonly effects: readonly (EffectRow | UnreadableRow)[];
  /** When its last attempt failed, epoch milliseconds, where that is known. */
  readonly failedAt: number | undefined;
  /** The consumer's queue, where the message might be: read only when there is no row, and where it exists. */
  readonly queue: QueueDepth | undefined;
  /** Its letter, where one was found: looked for only when there is no row, or it was rejected. */
  readonly letter: FoundLetter | undefined;
  /** Whether there are letters that were not looked at: its own may be among them. */
  readonly unseen: boolean;
}

/** A letter, and where it is. */
interface FoundLetter {
  readonly place: QueuePlace;
  readonly letter: Letter;
  /** When SQS deletes it for ever, epoch milliseconds. */
  readonly expiresAt: number;
}

/** The letters of a place that could be looked at. */
interface SeenLetters {
  readonly letters: readonly FoundLetter[];
  /** Whether there are more: beyond the most that are looked through, or hidden by somebody else. */
  readonly more: boolean;
}

/** What a trace is read from. */
export interface TraceDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly queues: Queues;
  readonly signal?: AbortSignal | undefined;
}

/** A chain of events. */
export interface Trace {
  /** In the order of their commits. */
  readonly events: readonly TracedEvent[];
  /** Whether there are more than were read. */
  readonly more: boolean;
}

/** The most events of one chain that are read. */
const EVENTS_MAX = 200;

/** The most letters of one place that are looked through. */
const LETTERS_MAX = 300;

/** A transactional handler's claim is not stored: its commit mints its events just before it, within this. */
const MINTED_WITHIN_MS = MINUTE_MS;

/** No function works on a message for longer: Lambda's longest timeout. */
const WORK_MAX_MS = 15 * MINUTE_MS;

/**
 * Reads events and, step by step, the events that they caused. There is no index: a consumer mints what it writes between
 * its claim and its commit, so those minutes are read, of that consumer's service only.
 */
export async function readTrace(deps: TraceDeps, eventIds: readonly string[]): Promise<Trace> {
  const { shards } = await readSweepState(deps.directory, deps.table);
  const readEvent = createEventReader(deps, shards);
  const read = new Map<string, TracedEvent>();
  let next: readonly string[] = [...new Set(eventIds)];
  while (next.length > 0 && read.size < EVENTS_MAX) {
    deps.signal?.throwIfAborted();
    const step = next.slice(0, EVENTS_MAX - read.size);
    for (const event of await eachOf(step, readEvent)) read.set(event.eventId, event);
    const known = [...next, ...step.flatMap((eventId) => read.get(eventId)?.caused ?? [])];
    next = [...new Set(known)].filter((eventId) => !read.has(eventId));
  }
  const events = [...read.values()].filter(({ row, messages }) => row !== undefined || messages.length > 0);
  return { events: events.sort((a, b) => bornAt(a) - bornAt(b)), more: next.length > 0 };
}

/** Makes what reads one event after the other; what it has read of the queues and of a minute it does not read again. */
function createEventReader({ directory, table, queues }: TraceDeps, shards: readonly number[]) {
  const letters = new Map<string, Promise<SeenLetters>>();
  const depths = new Map<string, Promise<QueueDepth | undefined>>();
  const written = new Map<string, Promise<readonly Pick<Envelope, 'eventId' | 'causationId'>[]>>();

  async function readEvent(eventId: string): Promise<TracedEvent> {
    const item = isEventId(eventId) ? await table.get(outboxKeyOf(eventId)) : undefined;
    const row = readOutboxRow(item);
    const event = readable(row);
    // Of an event that has expired, or that cannot be read, whoever has a row of it has seen it.
    const consumers = event === undefined ? directory.consumers : consumersOf(directory, event);
    const all = await eachOf(consumers, (consumer) => readMessage(eventId, event, consumer));
    const messages = all.filter((message) => event !== undefined || message.row !== undefined);
    const caused = await eachOf(messages, (message) => causedBy(eventId, message));
    return { eventId, row, envelope: event && envelopeOf(event.envelope), messages, caused: caused.flat() };
  }

  async function readMessage(
    eventId: string,
    event: OutboxRow | undefined,
    consumer: ConsumerEntry,
  ): Promise<TracedMessage> {
    const pk = inboxKey(consumer.name, eventId).PK;
    const { items } = await readPartition(table, { pk, consistent: true }, 1_000);
    const row = readInboxRow(items.find(({ SK }) => SK === 'MESSAGE'));
    const status = readable(row)?.status;
    const lost = row === undefined && event?.status === 'PUBLISHED';
    const dead = lost || status === 'REJECTED';
    return {
      consumer,
      row,
      effects: items.filter(({ SK }) => String(SK).startsWith('EFFECT#')).map(readEffectRow),
      failedAt: status === 'FAILED' ? await failedAt(eventId, consumer) : undefined,
      queue: lost ? await once(depths, consumer.queue, () => depthOf(queues, consumer.queue)) : undefined,
      ...(dead ? await findLetter(eventId, row, consumer) : { letter: undefined, unseen: false }),
    };
  }

  async function failedAt(eventId: string, consumer: ConsumerEntry): Promise<number | undefined> {
    const item = await table.get(failedKey(consumer.name, eventId));
    return item && readable(readFailedHint(item))?.failedAt;
  }

  /** A letter that cannot be read has no event id: the row knows the SQS message ids under which it was rejected. */
  async function findLetter(eventId: string, row: TracedMessage['row'], consumer: ConsumerEntry) {
    const rejectedIds = readable(row)?.rejectedIds;
    let unseen = false;
    for (const place of [consumerPlace(consumer), rulePlace(consumer)]) {
      const seen = await once(letters, place.url, () => lettersOf(place));
      unseen ||= seen.more;
      const letter = seen.letters.find(
        ({ letter }) =>
          deliveredEventId(letter.body) === eventId || rejectedIds?.has(letter.messageId) === true,
      );
      if (letter !== undefined) return { letter, unseen: false };
    }
    return { letter: undefined, unseen };
  }

  async function lettersOf(place: QueuePlace): Promise<SeenLetters> {
    const { retentionMs = 0, waiting = 0, inFlight = 0 } = (await depthOf(queues, place.url)) ?? {};
    const seen = waiting === 0 ? [] : await peek(queues, place.url, LETTERS_MAX);
    return {
      letters: seen.map((letter) => ({ place, letter, expiresAt: letter.sentAt + retentionMs })),
      more: seen.length < waiting + inFlight,
    };
  }

  async function causedBy(eventId: string, { consumer, ...message }: TracedMessage): Promise<string[]> {
    const row = readable(message.row);
    if (row?.processedAt === undefined || row.resolvedBy !== undefined) return [];
    const until = row.processedAt;
    const claimedAt = row.claimedAt ?? until - MINTED_WITHIN_MS;
    const minutes = minutesOf(Math.max(Math.min(claimedAt, until), until - WORK_MAX_MS), until);
    const partitions = minutes.flatMap((minute) => partitionsOf(minute, shards));
    const rows = await eachOf(partitions, (pk) =>
      once(written, `${consumer.service} ${pk}`, async () => {
        const query = { pk, skPrefix: 'EVENT#', where: { source: consumer.service } };
        const { items } = await readPartition(table, query, Number.POSITIVE_INFINITY);
        return items.flatMap((other) => {
          const id = storedEventId(other);
          const causationId = envelopeOf(other.envelope)?.causationId;
          return id === undefined || causationId === undefined ? [] : [{ eventId: id, causationId }];
        });
      }),
    );
    return rows.flat().flatMap((other) => (other.causationId === eventId ? [other.eventId] : []));
  }

  return readEvent;
}

/** When an event was committed, epoch milliseconds: its id says so. One that cannot be read has no time of its own. */
export function bornAt({ eventId }: Pick<TracedEvent, 'eventId'>): number {
  return isEventId(eventId) ? eventIdTime(eventId) : 0;
}

/** The id of the event whose outbox row an item is; `undefined` when it is none that its id leads to. */
export function storedEventId({ PK, SK }: Item): string | undefined {
  const eventId = String(SK).slice('EVENT#'.length);
  return isEventId(eventId) && outboxKeyOf(eventId).PK === PK ? eventId : undefined;
}

/** The members of an envelope that are shown. A stored one may lack any of them. */
type StoredEnvelope = Partial<
  Pick<Envelope, 'aggregateType' | 'aggregateId' | 'occurredAt' | 'correlationId' | 'causationId' | 'data'>
>;

/** The envelope of an outbox row, without what is not as it should be; `undefined` when it is none. */
export function envelopeOf(stored: unknown): StoredEnvelope | undefined {
  let envelope: unknown;
  try {
    envelope = typeof stored === 'string' ? parseJson(stored) : undefined;
  } catch {
    return undefined;
  }
  if (typeof envelope !== 'object' || envelope === null) return undefined;
  const { occurredAt, data, ...texts } = envelope as Record<string, unknown>;
  return {
    aggregateType: textOf(texts.aggregateType),
    aggregateId: textOf(texts.aggregateId),
    occurredAt: isTime(occurredAt) ? occurredAt : undefined,
    correlationId: textOf(texts.correlationId),
    causationId: textOf(texts.causationId),
    data,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Reads what is under a key the first time only. */
function once<T>(known: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  const found = known.get(key) ?? read();
  known.set(key, found);
  return found;
}
