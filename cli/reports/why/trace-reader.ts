import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { DAY_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import {
  atHome,
  brokenNeighbors,
  byInbox,
  withNeighbors,
} from '../../../lambdas/runtime/operations/bus-consumers.ts';
import type { BusDirectory } from '../../../lambdas/runtime/operations/bus-directory.ts';
import {
  type DeadLetterQueue,
  deadLettersTo,
  depthOf,
  peekDeadLetters,
} from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { BrokenDirectory } from '../../../lambdas/runtime/operations/directory-reader.ts';
import type { QueueDepth, QueueMessage, Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { consumersOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { eventIdTime, isEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { isExternalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import { failedKey, inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import type { InboxRow, OutboxRow } from '../../../lambdas/runtime/store/rows.ts';
import {
  readable,
  readFailedHint,
  readInboxRow,
  readOutboxRow,
  type UnreadableRow,
} from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { findResend, type ResentEvent, replacementOf } from '../../deployment/resent-event.ts';
import {
  eachOf,
  minutesOf,
  once,
  partitionsOf,
  readPartition,
  readSweepState,
} from '../../deployment/rows-reader.ts';
import type { DeadLetter } from '../dead-letters/dead-letters.ts';
import { type MessageAtSource, readSourceMessages } from './source-messages.ts';
import { envelopeOf, type StoredEnvelope, storedEnvelopeOf, storedEventId } from './stored-envelope.ts';

/** All stored rows of an event, in the outbox and at each consumer. */
export interface TracedEvent {
  readonly eventId: string;
  /** The table of its outbox row, if that is of another Mailroom on the bus. */
  readonly elsewhere?: string | undefined;
  /** Absent if it was never committed here, or was published and has expired. */
  readonly row: OutboxRow | UnreadableRow | undefined;
  /** Absent if it cannot be read. */
  readonly envelope: StoredEnvelope | undefined;
  /** Its resend, if an operator sent it in place of another event. Searched only if there is no outbox row. */
  readonly resent?: ResentEvent | undefined;
  /** One for each consumer that must receive it. */
  readonly messages: readonly TracedMessage[];
  /** One for each consumer of another source that has a row of it, or handles it. @default none */
  readonly atSources?: readonly MessageAtSource[] | undefined;
  /** The ids of the events that its consumers' commits wrote, or that an operator sent in its place. */
  readonly caused: readonly string[];
}

/** An event at one consumer. */
export interface TracedMessage {
  readonly consumer: ConsumerEntry;
  /** Absent if the consumer has not claimed it. */
  readonly row: InboxRow | UnreadableRow | undefined;
  /** When its last attempt failed, epoch milliseconds, if known. */
  readonly failedAt: number | undefined;
  /** The consumer's queue, in which the message may be. Read only if the row does not exist, or the message was rejected; absent if the queue does not exist. */
  readonly queue: QueueDepth | undefined;
  /** Its dead letter, if found. Searched only if the row does not exist, or the message was rejected. */
  readonly deadLetter: FoundDeadLetter | undefined;
  /** Some dead letters were not read, and its own may be among them. */
  readonly unseen: boolean;
  /** It was rejected, and its row was deleted by hand: its pointer is there. @default false */
  readonly isRowDeleted?: boolean | undefined;
}

/** A dead letter and its source. */
interface FoundDeadLetter extends Pick<DeadLetter, 'id' | 'eventId'> {
  readonly source: string;
  readonly kind: DeadLetterQueue['kind'];
  readonly sentAt: number;
  /** When SQS permanently deletes it, epoch milliseconds. */
  readonly expiresAt: number;
  /** EventBridge's error, if it could not deliver the event. */
  readonly refusal: string | undefined;
  /** As received from SQS. */
  readonly received: QueueMessage;
}

/** A Mailroom whose rows a trace reads. */
interface TracedMailroom {
  readonly directory: Directory;
  readonly table: Table;
}

/** Dependencies of {@link readTrace}. */
export interface TraceDeps extends TracedMailroom {
  /** The other Mailrooms on its bus. @default none */
  readonly neighbors?: readonly TracedMailroom[] | undefined;
  /** The Mailrooms of the region whose entry cannot be used. @default none */
  readonly broken?: readonly BrokenDirectory[] | undefined;
  /** Reads the claims on its bus. @default they are not read */
  readonly claims?: (() => Promise<BusDirectory | undefined>) | undefined;
  /** The database whose rows the table port also reads. @default none */
  readonly postgres?: unknown;
  readonly queues: Queues;
  readonly signal?: AbortSignal | undefined;
}

/** A chain of events. */
export interface Trace {
  /** In order of commit. */
  readonly events: readonly TracedEvent[];
  /** There are more than were read. */
  readonly more: boolean;
  /** The consumers on the bus that were not read and must, or may, receive one of the events, each with the reason. @default none */
  readonly unread?: readonly string[] | undefined;
  /** The end of the range that was searched, epoch milliseconds: scheduled events that are due later were not. Absent without a search. */
  readonly searchedTo?: number | undefined;
  /** The events of the aggregate that was searched for whose numbers were not found. @default none */
  readonly unfound?: readonly UnfoundNumbers[] | undefined;
}

/** The first numbers of an aggregate's events that a search did not find, although it found a higher one. */
export interface UnfoundNumbers {
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly first: number;
  readonly last: number;
}

/** The state of reading a trace. It caches queues and minutes, so that none is read twice. */
interface TraceReading extends TraceDeps {
  /** The Mailrooms that can be read, by their tables; the first is the selected one. */
  readonly rooms: ReadonlyMap<string, ReadRoom>;
  /** The others. */
  readonly closed: readonly ClosedRoom[];
  readonly unread: Set<string>;
  readonly deadLetters: Map<string, ReturnType<typeof deadLettersOf>>;
  readonly depths: Map<string, ReturnType<typeof depthOf>>;
  readonly written: Map<string, ReturnType<typeof writtenBy>>;
}

interface ReadRoom extends TracedMailroom {
  readonly shards: readonly number[];
}

/** A Mailroom whose table could not be read. */
interface ClosedRoom {
  readonly directory: Directory;
  readonly why: string;
}

/** The most events of one chain that are read. */
const EVENTS_MAX = 200;

/** The most dead letters of one source that are read. They reappear after 15 seconds if showing them again fails. */
export const PEEK = { limit: 300, hideS: 15 };

/** A transactional handler stores no claim. It creates its events at most this long before its commit. */
const MINTED_WITHIN_MS = MINUTE_MS;

/** Lambda's longest timeout: no function works on a message for longer. */
const WORK_MAX_MS = 15 * MINUTE_MS;

/**
 * Reads events and, step by step, the events that they caused. There is no index: a consumer creates its events between its
 * claim and its commit, so those minutes are read, for that consumer's service only.
 */
export async function readTrace(deps: TraceDeps, eventIds: readonly string[]): Promise<Trace> {
  const reading = await openReading(deps);
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
  const found = [...read.values()].filter(
    ({ row, messages, atSources = [] }) => row !== undefined || messages.length + atSources.length > 0,
  );
  // A scheduled event is in its due minute, where its cause is not followed to.
  const causedBy = (eventId: string) =>
    found.flatMap((event) => (event.envelope?.causationId === eventId ? [event.eventId] : []));
  const events = found.map((event) => ({
    ...event,
    caused: [...new Set([...event.caused, ...causedBy(event.eventId)])],
  }));
  return {
    events: events.sort((a, b) => bornAt(a) - bornAt(b)),
    more: next.length > 0,
    ...(reading.unread.size > 0 && { unread: [...reading.unread] }),
  };
}

/** Opens the Mailrooms of the bus. One that cannot be read is left out, and named. */
async function openReading(deps: TraceDeps): Promise<TraceReading> {
  const { neighbors = [], claims } = deps;
  const open = async ({ directory, table }: TracedMailroom): Promise<ReadRoom> => ({
    directory,
    table,
    shards: (await readSweepState(directory, table)).shards,
  });
  const closed: ClosedRoom[] = [];
  const rooms = [await open(deps)];
  for (const room of neighbors) {
    try {
      rooms.push(await open(room));
    } catch (error) {
      closed.push({ directory: room.directory, why: `${errorCode(error)}: ${errorMessage(error)}` });
    }
  }
  const directories = neighbors.map(({ directory }) => directory);
  const onBus = await claims?.();
  const { unlisted = [] } = withNeighbors(deps.directory, directories, onBus);
  // Those of the selected Mailroom are a finding of its wiring.
  const own = new Set(deps.directory.unlisted?.map(({ name }) => name));
  const foreign = unlisted.filter(({ name }) => !own.has(name));
  return {
    ...deps,
    directory: withNeighbors(
      deps.directory,
      rooms.slice(1).map(({ directory }) => directory),
    ),
    rooms: new Map(rooms.map((room) => [room.directory.mailroom.table, room])),
    closed,
    unread: new Set([
      ...foreign.map(
        ({ name, parameter, fault }) =>
          `${name}, whose entry ${parameter} ${fault === undefined ? 'does not exist' : 'cannot be used'}`,
      ),
      ...brokenNeighbors(deps, onBus).map(
        ({ table, parameter }) => `the consumers of ${table}, whose entry ${parameter} cannot be used`,
      ),
    ]),
    ...{ deadLetters: new Map(), depths: new Map(), written: new Map() },
  };
}

/** The Mailroom of a consumer, or that of an event's outbox row. @param table - absent: the selected one */
function roomOf({ rooms }: TraceReading, table: string | undefined): ReadRoom {
  const [own] = rooms.values();
  const room = table === undefined ? own : rooms.get(table);
  if (room === undefined) throw new Error(`No Mailroom with the table ${table} was read`);
  return room;
}

/** Finds what only one Mailroom of the bus has, the selected one first. */
async function firstOf<T>(
  { rooms, directory }: TraceReading,
  read: (room: ReadRoom) => Promise<T | undefined>,
): Promise<{ readonly found?: T; readonly elsewhere?: string }> {
  for (const [name, room] of rooms) {
    const found = await read(room);
    if (found !== undefined) return { found, ...(name !== directory.mailroom.table && { elsewhere: name }) };
  }
  return {};
}

async function readEvent(reading: TraceReading, eventId: string): Promise<TracedEvent> {
  const { read: directory, unread } = byInbox(reading.directory, reading.postgres !== undefined);
  const outbox = await firstOf(reading, ({ table }) =>
    isEventId(eventId) ? table.get(outboxKeyOf(eventId)) : Promise.resolve(undefined),
  );
  const row = readOutboxRow(outbox.found);
  const event = readable(row);
  // Of an event that has expired or cannot be read, only the consumers that have a row of it are known.
  const envelope = event && envelopeOf(event.envelope);
  const consumers =
    event === undefined
      ? directory.consumers
      : consumersOf(directory, { ...event, data: () => envelope?.data });
  const until = lastResendOf(eventId, directory);
  const { found: resent, elsewhere: resentIn } =
    row === undefined ? await firstOf(reading, ({ table }) => findResend(table, eventId, until)) : {};
  const isExpected = (consumer: ConsumerEntry) =>
    event?.status === 'PUBLISHED' ||
    (resent?.consumer === atHome(consumer).name && consumer.elsewhere?.table === resentIn);
  for (const { directory, why } of reading.closed) {
    const missed = event && consumersOf(directory, { ...event, data: () => envelope?.data });
    for (const { name } of missed ?? directory.consumers)
      reading.unread.add(`${directory.mailroom.stack}/${name}, whose table cannot be read (${why})`);
  }
  const hidden =
    event && consumersOf({ ...directory, consumers: unread }, { ...event, data: () => envelope?.data });
  for (const { name } of hidden ?? unread)
    reading.unread.add(`${name}, whose inbox is in PostgreSQL (--database reads it)`);
  const all = await eachOf(consumers, (consumer) =>
    readMessage(reading, eventId, consumer, isExpected(consumer)),
  );
  const messages = all.filter(
    ({ row, consumer }) => event !== undefined || row !== undefined || isExpected(consumer),
  );
  const caused = await eachOf(messages, (message) => causedBy(reading, eventId, message));
  const { elsewhere } = outbox;
  const { table } = roomOf(reading, undefined);
  const atSources = await readSourceMessages(table, directory.sourceConsumers ?? [], eventId, event);
  return { eventId, elsewhere, row, envelope, resent, messages, atSources, caused: caused.flat() };
}

/** The latest time of a resend, epoch milliseconds: after it, no inbox accepts an event with this id. */
function lastResendOf(eventId: string, { consumers }: Directory): number {
  const days = Math.max(0, ...consumers.map(({ inboxRetentionDays }) => inboxRetentionDays));
  return isEventId(eventId) ? eventIdTime(eventId) + days * DAY_MS : 0;
}

async function readMessage(
  reading: TraceReading,
  eventId: string,
  consumer: ConsumerEntry,
  isExpected: boolean,
): Promise<TracedMessage> {
  const { queues, depths } = reading;
  const { table } = roomOf(reading, consumer.elsewhere?.table);
  const own = atHome(consumer);
  const row = readInboxRow(await table.get(inboxKey(own.name, eventId), { consistent: true }));
  const status = readable(row)?.status;
  const lost = row === undefined && isExpected;
  const pointer = lost ? await table.get(rejectedKey(own.name, eventId), { consistent: true }) : undefined;
  const hint = status === 'FAILED' ? await table.get(failedKey(own.name, eventId)) : undefined;
  const isSearched = lost || status === 'REJECTED';
  const found = isSearched ? await findDeadLetter(reading, eventId, row, own) : NOT_LOOKED_FOR;
  return {
    consumer,
    row,
    failedAt: hint && readable(readFailedHint(hint))?.failedAt,
    queue: isSearched ? await once(depths, consumer.queue, () => depthOf(queues, consumer.queue)) : undefined,
    ...found,
    ...(pointer !== undefined && { isRowDeleted: true }),
  };
}

const NOT_LOOKED_FOR = { deadLetter: undefined, unseen: false };

/** An unreadable dead letter has no event id: the inbox row stores the SQS message ids that were rejected. */
async function findDeadLetter(
  reading: TraceReading,
  ofEvent: string,
  row: TracedMessage['row'],
  consumer: ConsumerEntry,
): Promise<Pick<TracedMessage, 'deadLetter' | 'unseen'>> {
  const rejectedIds = readable(row)?.rejectedIds;
  let unseen = false;
  for (const source of deadLettersTo(consumer)) {
    const seen = await once(reading.deadLetters, source.url, () => deadLettersOf(reading.queues, source));
    unseen ||= seen.more;
    const deadLetter = seen.deadLetters.find(
      ({ id, eventId }) => eventId === ofEvent || rejectedIds?.has(id) === true,
    );
    if (deadLetter !== undefined) return { deadLetter, unseen: false };
  }
  return { deadLetter: undefined, unseen };
}

/** The dead letters that were received; `more`: others were beyond the limit or hidden by another command. */
async function deadLettersOf(
  queues: Queues,
  source: DeadLetterQueue,
): Promise<{ readonly deadLetters: readonly FoundDeadLetter[]; readonly more: boolean }> {
  const seen = await peekDeadLetters(queues, source, PEEK);
  const deadLetters = seen.deadLetters.map(({ received, eventId, expiresAt, cause }) => ({
    source: source.name,
    kind: source.kind,
    id: received.messageId,
    eventId,
    sentAt: received.sentAt,
    expiresAt,
    refusal: cause,
    received,
  }));
  return { deadLetters, more: deadLetters.length < seen.total };
}

async function causedBy(
  reading: TraceReading,
  eventId: string,
  { consumer, ...message }: TracedMessage,
): Promise<string[]> {
  const { table, shards } = roomOf(reading, consumer.elsewhere?.table);
  const replacement = replacementOf(message.row);
  if (replacement !== undefined) return [replacement];
  const row = readable(message.row);
  if (row?.status !== 'PROCESSED' || row.processedAt === undefined || row.resolvedBy !== undefined) return [];
  const until = row.processedAt;
  const claimedAt = row.claimedAt ?? until - MINTED_WITHIN_MS;
  const minutes = minutesOf(Math.max(Math.min(claimedAt, until), until - WORK_MAX_MS), until);
  const partitions = minutes.flatMap((minute) => partitionsOf(minute, shards));
  const found = await eachOf(partitions, (pk) =>
    once(reading.written, `${table.name} ${consumer.service} ${pk}`, () =>
      writtenBy(table, pk, consumer.service),
    ),
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
    const causationId = storedEnvelopeOf(item)?.causationId;
    return eventId === undefined || causationId === undefined ? [] : [{ eventId, causationId }];
  });
}

/**
 * Returns the time of an event's commit, epoch milliseconds, from its id; for an external event, the earliest time in its inbox rows. 0 if
 * neither is known.
 */
export function bornAt({ eventId, messages }: Pick<TracedEvent, 'eventId' | 'messages'>): number {
  if (isEventId(eventId)) return eventIdTime(eventId);
  if (!isExternalEventId(eventId)) return 0;
  const times = messages.flatMap(({ row }) => {
    const known = readable(row);
    if (known === undefined) return [];
    const { processedAt } = known.status === 'PROCESSED' ? known : {};
    const { rejectedAt } = known.status === 'REJECTED' ? known : {};
    return [known.claimedAt, processedAt, rejectedAt].filter((at) => at !== undefined);
  });
  return times.length === 0 ? 0 : Math.min(...times);
}
