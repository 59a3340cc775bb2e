import { DATABASE_NAMES, type DatabaseEngine } from '../../../lambdas/runtime/base/database-engine.ts';
import { DAY_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { atHome, byInbox } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import {
  type DeadLetterQueue,
  deadLettersTo,
  depthOf,
  peekDeadLetters,
} from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { consumersOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { effectExecutions, type ReadExecution } from '../../deployment/executions.ts';
import { findResend, replacementOf } from '../../deployment/resent-event.ts';
import { eachOf, minutesOf, once, readMinutes } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { envelopeOf, storedEventId } from '../events/stored-envelope.ts';
import { isCaptured } from './captured-words.ts';
import { readSourceMessages } from './source-messages.ts';
import { bornAt, type FoundDeadLetter, type Trace, type TracedEvent, type TracedMessage } from './trace.ts';
import { type BusDeps, type OpenBus, openBus, type ReadRoom } from './traced-bus.ts';

/** Dependencies of {@link readTrace}. */
export interface TraceDeps extends BusDeps {
  /** The database whose rows are also read. @default none */
  readonly database?: { readonly engine: DatabaseEngine } | undefined;
  readonly queues: Queues;
  /** @default the states of executions are not read */
  readonly execution?: ReadExecution | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The state of reading a trace. It caches queues and minutes, so that none is read twice. */
interface TraceReading extends Omit<TraceDeps, keyof BusDeps>, OpenBus {
  readonly inboxes: ReturnType<typeof byInbox>;
  readonly deadLetters: (source: DeadLetterQueue) => ReturnType<typeof deadLettersOf>;
  readonly depth: (queue: string) => ReturnType<typeof depthOf>;
  readonly connectors: (table: string | undefined) => ReturnType<StoredRows['connectors']>;
  readonly written: (room: ReadRoom, minute: string, source: string) => ReturnType<typeof writtenBy>;
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
 * Reads events and, step by step, the events that they caused. A consumer creates its events between its claim
 * and its commit, so those minutes are read, for that consumer's service only.
 */
export async function readTrace(deps: TraceDeps, eventIds: readonly string[]): Promise<Trace> {
  const { queues } = deps;
  const bus = await openBus(deps);
  const deadLetters = new Map<string, ReturnType<typeof deadLettersOf>>();
  const depths = new Map<string, ReturnType<typeof depthOf>>();
  const written = new Map<string, ReturnType<typeof writtenBy>>();
  const connectors = new Map<string, ReturnType<StoredRows['connectors']>>();
  const reading: TraceReading = {
    ...deps,
    ...bus,
    inboxes: byInbox(bus.directory, deps.database?.engine),
    deadLetters: (source) => once(deadLetters, source.url, () => deadLettersOf(queues, source)),
    depth: (queue) => once(depths, queue, () => depthOf(queues, queue)),
    connectors: (table) => once(connectors, table ?? '', () => bus.room(table).stored.connectors()),
    written: (room, minute, source) =>
      once(written, `${room.table.name} ${source} ${minute}`, () => writtenBy(room, minute, source)),
  };
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

async function readEvent(reading: TraceReading, eventId: string): Promise<TracedEvent> {
  const { read: directory, unread } = reading.inboxes;
  const outbox = await reading.first(({ stored }) => stored.outbox.byId(eventId));
  const row = outbox.found;
  const event = readable(row);
  // Of an event that has expired or cannot be read, only the consumers that have a row of it are known.
  const envelope = event && envelopeOf(event.envelope);
  const consumers =
    event === undefined
      ? directory.consumers
      : consumersOf(directory, { ...event, data: () => envelope?.data });
  const until = lastResendOf(eventId, directory);
  const { found: resent, elsewhere: resentIn } =
    row === undefined ? await reading.first(({ stored }) => findResend(stored, eventId, until)) : {};
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
  for (const consumer of unread)
    if (hidden?.includes(consumer) !== false)
      reading.unread.add(
        `${consumer.name}, whose inbox is in ${DATABASE_NAMES[consumer.inbox]} (--database reads it)`,
      );
  const all = await Promise.all(
    consumers.map((consumer) => readMessage(reading, eventId, consumer, isExpected(consumer))),
  );
  const messages = all.filter(
    ({ row, consumer }) => event !== undefined || row !== undefined || isExpected(consumer),
  );
  const caused = await Promise.all(messages.map((message) => causedBy(reading, eventId, message)));
  const { elsewhere } = outbox;
  const { stored } = reading.room(undefined);
  const atSources = await readSourceMessages(stored.inbox, directory.sourceConsumers ?? [], eventId, event);
  const connectors = isCaptured({ row }) ? await reading.connectors(elsewhere) : undefined;
  const own = { eventId, elsewhere, row, envelope, resent, connectors };
  return { ...own, messages, atSources, caused: caused.flat() };
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
  const { inbox, deadLetters } = reading.room(consumer.elsewhere?.table).stored;
  const own = atHome(consumer);
  const row = await inbox.byEvent(own.name, eventId, true);
  const status = readable(row)?.status;
  const lost = row === undefined && isExpected;
  const isRowDeleted = lost && (await deadLetters.isRejected(own.name, eventId));
  const executions = await effectExecutions(row, reading.execution);
  const isSearched = lost || status === 'REJECTED';
  const found = isSearched ? await findDeadLetter(reading, eventId, row, own) : NOT_LOOKED_FOR;
  return {
    consumer,
    row,
    failedAt: status === 'FAILED' ? await inbox.failedAt(own.name, eventId) : undefined,
    queue: isSearched ? await reading.depth(consumer.queue) : undefined,
    ...found,
    ...(executions.length > 0 && { executions }),
    ...(isRowDeleted && { isRowDeleted }),
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
    const seen = await reading.deadLetters(source);
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
    source,
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
  { consumer, row, executions = [] }: TracedMessage,
): Promise<string[]> {
  const room = reading.room(consumer.elsewhere?.table);
  const replacement = replacementOf(row);
  if (replacement !== undefined) return [replacement];
  // The last step of an execution commits its result.
  const ended = executions.flatMap(({ state }) =>
    state?.endedAt === undefined ? [] : minutesOf(state.endedAt - MINTED_WITHIN_MS, state.endedAt),
  );
  const minutes = [...new Set([...committedIn(row), ...ended])];
  const found = await Promise.all(minutes.map((minute) => reading.written(room, minute, consumer.service)));
  return found.flat().flatMap((event) => (event.causationId === eventId ? [event.eventId] : []));
}

/** The minutes in which the handler of a message created the events of its commit. */
function committedIn(stored: TracedMessage['row']): string[] {
  const row = readable(stored);
  if (row?.status !== 'PROCESSED' || row.processedAt === undefined || row.resolvedBy !== undefined) return [];
  const until = row.processedAt;
  const claimedAt = row.claimedAt ?? until - MINTED_WITHIN_MS;
  return minutesOf(Math.max(Math.min(claimedAt, until), until - WORK_MAX_MS), until);
}

/** The events that a service wrote in a minute. */
async function writtenBy(
  { stored, shards }: ReadRoom,
  minute: string,
  source: string,
): Promise<{ readonly eventId: string; readonly causationId: string }[]> {
  const lists = await readMinutes(stored.outbox, { minutes: [minute], shards }, { source }, (row) => {
    const eventId = storedEventId(row);
    const causationId = envelopeOf(row.envelope)?.causationId;
    return eventId === undefined || causationId === undefined ? [] : [{ eventId, causationId }];
  });
  return lists.flatMap(({ items }) => items.flat());
}
