import {
  type DeadLetterQueue,
  depthOf,
  peekDeadLetters,
  rejectedBy,
  undeliveredTo,
} from '../../lambdas/runtime/operations/dead-letters.ts';
import {
  type ConsumerEntry,
  consumersOf,
  type Directory,
} from '../../lambdas/runtime/operations/directory.ts';
import type { QueueDepth, Queues } from '../../lambdas/runtime/operations/queues.ts';
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
import type { Table } from '../../lambdas/runtime/store/table.ts';
import type { DeadLetter } from '../dead-letters/dead-letters.ts';
import {
  eachOf,
  minutesOf,
  once,
  partitionsOf,
  readPartition,
  readSweepState,
} from '../reading/rows-reader.ts';
import { envelopeOf, type StoredEnvelope, storedEventId } from './stored-envelope.ts';

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
  /** Its dead letter, where one was found: looked for only when there is no row, or it was rejected. */
  readonly deadLetter: FoundDeadLetter | undefined;
  /** Whether there are dead letters that were not looked at: its own may be among them. */
  readonly unseen: boolean;
}

/** A dead letter, and where it is. */
interface FoundDeadLetter extends Pick<DeadLetter, 'id' | 'eventId'> {
  readonly source: string;
  readonly kind: DeadLetterQueue['kind'];
  readonly sentAt: number;
  /** When SQS permanently deletes it, epoch milliseconds. */
  readonly expiresAt: number;
  /** Why EventBridge could not deliver it. */
  readonly refusal: string | undefined;
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

/** A trace that is being read, and what it has read already: no queue and no minute is read twice. */
interface Reading extends TraceDeps {
  readonly shards: readonly number[];
  readonly deadLetters: Map<string, ReturnType<typeof deadLettersOf>>;
  readonly depths: Map<string, ReturnType<typeof depthOf>>;
  readonly written: Map<string, ReturnType<typeof writtenBy>>;
}

/** The most events of one chain that are read. */
const EVENTS_MAX = 200;

/** The most dead letters of one source that are read. */
const DEAD_LETTERS_MAX = 300;

/** How long dead letters stay hidden if showing them again fails, seconds. */
const PEEK_HIDES_S = 15;

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
  const reading = { ...deps, shards, deadLetters: new Map(), depths: new Map(), written: new Map() };
  const read = new Map<string, TracedEvent>();
  let next: readonly string[] = [...new Set(eventIds)];
  while (next.length > 0 && read.size < EVENTS_MAX) {
    deps.signal?.throwIfAborted();
    const step = next.slice(0, EVENTS_MAX - read.size);
    const events = await eachOf(step, (eventId) => readEvent(reading, eventId));
    for (const event of events) read.set(event.eventId, event);
    const known = new Set([...next, ...events.flatMap(({ caused }) => caused)]);
    next = [...known].filter((eventId) => !read.has(eventId));
  }
  const events = [...read.values()].filter(({ row, messages }) => row !== undefined || messages.length > 0);
  return { events: events.sort((a, b) => bornAt(a) - bornAt(b)), more: next.length > 0 };
}

async function readEvent(reading: Reading, eventId: string): Promise<TracedEvent> {
  const { directory, table } = reading;
  const row = readOutboxRow(isEventId(eventId) ? await table.get(outboxKeyOf(eventId)) : undefined);
  const event = readable(row);
  // An event that has expired, or that cannot be read, was seen by the consumers that have a row of it.
  const consumers = event === undefined ? directory.consumers : consumersOf(directory, event);
  const all = await eachOf(consumers, (consumer) => readMessage(reading, eventId, event, consumer));
  const messages = all.filter((message) => event !== undefined || message.row !== undefined);
  const caused = await eachOf(messages, (message) => causedBy(reading, eventId, message));
  return { eventId, row, envelope: event && envelopeOf(event.envelope), messages, caused: caused.flat() };
}

async function readMessage(
  reading: Reading,
  eventId: string,
  event: OutboxRow | undefined,
  consumer: ConsumerEntry,
): Promise<TracedMessage> {
  const { table, queues, depths } = reading;
  const { PK } = inboxKey(consumer.name, eventId);
  const { items } = await readPartition(table, { pk: PK, consistent: true }, 1_000);
  const row = readInboxRow(items.find(({ SK }) => SK === 'MESSAGE'));
  const status = readable(row)?.status;
  const lost = row === undefined && event?.status === 'PUBLISHED';
  const hint = status === 'FAILED' ? await table.get(failedKey(consumer.name, eventId)) : undefined;
  const found =
    lost || status === 'REJECTED' ? await findDeadLetter(reading, eventId, row, consumer) : NOT_LOOKED_FOR;
  return {
    consumer,
    row,
    effects: items.filter(({ SK }) => String(SK).startsWith('EFFECT#')).map(readEffectRow),
    failedAt: hint && readable(readFailedHint(hint))?.failedAt,
    queue: lost ? await once(depths, consumer.queue, () => depthOf(queues, consumer.queue)) : undefined,
    ...found,
  };
}

const NOT_LOOKED_FOR = { deadLetter: undefined, unseen: false };

/** A dead letter that cannot be read has no event id: the row holds the SQS message ids under which it was rejected. */
async function findDeadLetter(
  reading: Reading,
  ofEvent: string,
  row: TracedMessage['row'],
  consumer: ConsumerEntry,
): Promise<Pick<TracedMessage, 'deadLetter' | 'unseen'>> {
  const rejectedIds = readable(row)?.rejectedIds;
  let unseen = false;
  for (const source of [rejectedBy(consumer), undeliveredTo(consumer)]) {
    const seen = await once(reading.deadLetters, source.url, () => deadLettersOf(reading.queues, source));
    unseen ||= seen.more;
    const deadLetter = seen.deadLetters.find(
      ({ id, eventId }) => eventId === ofEvent || rejectedIds?.has(id) === true,
    );
    if (deadLetter !== undefined) return { deadLetter, unseen: false };
  }
  return { deadLetter: undefined, unseen };
}

/** The dead letters that could be looked at; `more`: there are others, beyond the most that are read, or hidden by another command. */
async function deadLettersOf(
  queues: Queues,
  source: DeadLetterQueue,
): Promise<{ readonly deadLetters: readonly FoundDeadLetter[]; readonly more: boolean }> {
  const seen = await peekDeadLetters(queues, source, { limit: DEAD_LETTERS_MAX, hideS: PEEK_HIDES_S });
  const deadLetters = seen.deadLetters.map(({ received, eventId, expiresAt, cause }) => ({
    source: source.name,
    kind: source.kind,
    id: received.messageId,
    eventId,
    sentAt: received.sentAt,
    expiresAt,
    refusal: cause,
  }));
  return { deadLetters, more: deadLetters.length < seen.total };
}

async function causedBy(
  { table, shards, written }: Reading,
  eventId: string,
  { consumer, ...message }: TracedMessage,
): Promise<string[]> {
  const row = readable(message.row);
  if (row?.processedAt === undefined || row.resolvedBy !== undefined) return [];
  const until = row.processedAt;
  const claimedAt = row.claimedAt ?? until - MINTED_WITHIN_MS;
  const minutes = minutesOf(Math.max(Math.min(claimedAt, until), until - WORK_MAX_MS), until);
  const partitions = minutes.flatMap((minute) => partitionsOf(minute, shards));
  const found = await eachOf(partitions, (pk) =>
    once(written, `${consumer.service} ${pk}`, () => writtenBy(table, pk, consumer.service)),
  );
  return found.flat().flatMap((event) => (event.causationId === eventId ? [event.eventId] : []));
}

/** The events that a service wrote into a partition. */
async function writtenBy(
  table: Table,
  pk: string,
  source: string,
): Promise<{ readonly eventId: string; readonly causationId: string }[]> {
  const query = { pk, skPrefix: 'EVENT#', where: { source } };
  const { items } = await readPartition(table, query, Number.POSITIVE_INFINITY);
  return items.flatMap((item) => {
    const eventId = storedEventId(item);
    const causationId = envelopeOf(item.envelope)?.causationId;
    return eventId === undefined || causationId === undefined ? [] : [{ eventId, causationId }];
  });
}

/** When an event was committed, epoch milliseconds: its id holds the time. One that cannot be read has none. */
export function bornAt({ eventId }: Pick<TracedEvent, 'eventId'>): number {
  return isEventId(eventId) ? eventIdTime(eventId) : 0;
}
