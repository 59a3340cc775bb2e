import type { DatabaseEngine } from '../../../lambdas/runtime/base/database-engine.ts';
import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { byInbox } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { deadLetterQueues, depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import type { QueueDepth, Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { readSourceConsumers } from '../../../lambdas/runtime/operations/source-consumers.ts';
import { eventIdOf, eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { readRejected, readWaiting } from '../../deployment/message-reader.ts';
import { eachOf, readSweepState, type SweepReading } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import type { CheckDeps, Checked } from '../checks/check.ts';
import { committedSince, oldestMs, waitingSince } from '../events/pending-events.ts';
import { judged, waitGroups } from '../events/waits.ts';
import type { CommandLines } from '../findings/findings.ts';
import { createWarnings, type WarningDeps } from './consumer-warnings.ts';
import { readHeartbeatStatus } from './heartbeat-status.ts';
import { type Keep, keepNothing } from './kept-readings.ts';
import { isUnprocessed, type RecentMessage, type RecentSample, readRecent } from './recent-messages.ts';
import { DUE_TIMES_KEPT_MS, readDueTimes, scheduledStatus } from './scheduled-events.ts';
import { deadEventsStatus, held, readSourceStatus } from './source-status.ts';
import { stateOf, statusFindings } from './status-findings.ts';
import type { ConsumerStatus, StatusFacts, StatusReport } from './status-report.ts';
import { isLimited, waitingKeys } from './waiting-keys.ts';

/** Dependencies of {@link readStatus}. */
export interface StatusDeps {
  readonly directory: Directory;
  readonly region: string;
  readonly table: Table;
  readonly stored: StoredRows;
  /** The kind of database whose rows `stored` also reads. @default none */
  readonly readsDatabase?: DatabaseEngine | undefined;
  readonly queues: Queues;
  /** Makes the checks of the flow: see `flowChecks`. */
  readonly wiring: (sweep: Pick<CheckDeps, 'now' | 'sweptAt'>) => Promise<Checked>;
  /** Reads the history of a queue. @default none is known */
  readonly backlog?: WarningDeps['backlog'];
  /** Keeps the PENDING events and samples of events for a next status. @default they are read */
  readonly keep?: Keep;
  /** The kept readings are used by a next status. @default false */
  readonly isRepeated?: boolean;
  readonly now: number;
}

/** The time for which a reading is kept that shows no problem, milliseconds: the interval of the sweep. */
export const KEPT_MS = 60_000;

/** The same for the wiring: a rule or mapping that was disabled by hand shows within a minute, with 10 seconds between two readings. */
export const WIRING_KEPT_MS = 48_000;

/** The same for one that shows a problem, which may just be repaired. */
export const BROKEN_KEPT_MS = 10_000;

/** The most pointers of one kind that are counted. */
const POINTERS_MAX = 10_000;

/** The most hints at failed messages whose rows are read. */
const FAILED_MAX = 1_000;

/** The state does not depend on the options in the commands of its findings. */
const AS_TYPED: CommandLines = { commandLine: (command) => command, awsLine: (command) => command };

/** Reads the status of the whole Mailroom. It changes nothing and receives only from dead-letter queues. */
export async function readStatus(deps: StatusDeps): Promise<StatusReport> {
  const { directory, region, readsDatabase, queues, now } = deps;
  const { read: inTable } = byInbox(directory, readsDatabase);
  const parts = await readParts(deps, inTable);
  const { sweep, sweptAt, pending, dead, recent, dueTimes, consumers, others, depths, wiring, heartbeat } =
    parts;
  const recentOf = ({ name }: ConsumerEntry) => recent.messages.filter(({ consumer }) => consumer === name);
  const look = createWarnings({ ...deps, directory: inTable, shards: sweep.shards });
  const looking = eachOf(consumers, ({ consumer, waiting }) => {
    const { name, queue, deadLetterQueue, undeliveredQueue = '' } = consumer;
    const isCut = wiring.problems.some(({ part, level }) => part === name && level === 'flow');
    const hasDeadLetters = held(depths.get(deadLetterQueue)) + held(depths.get(undeliveredQueue)) > 0;
    const recent = recentOf(consumer);
    return look({
      consumer,
      depth: depths.get(queue),
      failed: waiting.items.filter((one) => !isLimited(one, now)),
      recent,
      isCut,
      hasDeadLetters,
    });
  });
  const atSources = eachOf(deadLetterQueues(directory), (source) => {
    const own = consumers.find(({ consumer }) => source.url === consumer.deadLetterQueue);
    const pointers = own?.rejected.items.flatMap((pointer) => readable(pointer) ?? []) ?? [];
    return readSourceStatus({ queues, now }, source, depths.get(source.url), pointers);
  });
  const [looks, sources] = await Promise.all([looking, atSources]);
  const facts: StatusFacts = {
    wiring,
    looks: looks.flatMap((found) => found ?? []),
    heartbeat,
    stack: directory.mailroom.stack,
    region,
    at: now,
    outbox: {
      ...outboxStatus(deps, sweep, sweptAt, pending.items, dead.items.length, recent),
      scheduled: scheduledStatus(dueTimes.items, pending.items, now),
    },
    consumers: Object.fromEntries(
      consumers.map((reading) => [
        reading.consumer.name,
        consumerStatus(reading, depths, recentOf(reading.consumer), now),
      ]),
    ),
    sourceConsumers: Object.fromEntries(
      others.map((reading) => {
        const { name, from, seenAt } = reading.consumer;
        const { failed, rejected, unreadable } = countsOf(reading, now);
        return [name, { from, seenAt, failed, rejected, unreadable: unreadable.length }];
      }),
    ),
    limits: consumers.flatMap(({ consumer: { name }, waiting }) => waitingKeys(name, waiting.items, now)),
    deadLetterSources: [deadEventsStatus(dead.items), ...sources],
    gone: [...depths].flatMap(([url, depth]) => (depth === undefined ? [url] : [])),
    atLeast: [
      ...(pending.more ? ['outbox.pending'] : []),
      ...(dead.more ? ['outbox.dead'] : []),
      ...(dueTimes.more ? ['outbox.scheduled.due'] : []),
      ...consumers.flatMap(({ consumer: { name }, waiting, rejected }) => [
        ...(waiting.more ? [`consumers.${name}.failed`] : []),
        ...(rejected.more ? [`consumers.${name}.rejected`] : []),
      ]),
    ],
  };
  const state = stateOf(statusFindings(facts, AS_TYPED));
  return { ...facts, state, ok: state === 'ok' };
}

/** Reads at the same time all that does not depend on another part. @param inTable - the consumers whose inbox is read */
async function readParts(deps: StatusDeps, inTable: Directory) {
  const { directory, stored, queues, keep = keepNothing, isRepeated = false, now } = deps;
  const reading = readSweep(deps);
  const inShards = async () => {
    const { sweep, sweptAt } = await reading;
    const { shards } = sweep;
    return Promise.all([
      keep(
        'pending',
        ({ items }) => (oldestMs(items, now, waitingSince) > STUCK_MS ? BROKEN_KEPT_MS : KEPT_MS),
        () => stored.outbox.pending({ ...sweep, sweptAt }, now),
      ),
      stored.deadLetters.dead(shards, POINTERS_MAX),
      readRecent({ stored, directory: inTable, shards, keep, now }),
      keep('scheduled', DUE_TIMES_KEPT_MS, () =>
        readDueTimes({ stored, shards }, now, isRepeated ? DUE_TIMES_KEPT_MS : 0),
      ),
    ]);
  };
  const [swept, outbox, consumers, others, depths, wiring, heartbeat] = await Promise.all([
    reading,
    inShards(),
    eachOf(directory.consumers, (consumer) => readConsumer(stored, consumer, now)),
    readAtSources(deps),
    readDepths(queues, directory),
    deps.wiring({ now, sweptAt: async () => (await reading).sweptAt }),
    readHeartbeatStatus(deps),
  ]);
  const [pending, dead, recent, dueTimes] = outbox;
  return { ...swept, pending, dead, recent, dueTimes, consumers, others, depths, wiring, heartbeat };
}

/** The state of the sweep. The time of the table's creation matters only before the first complete pass. */
async function readSweep({ directory, table, stored, keep = keepNothing }: StatusDeps) {
  const sweep = await readSweepState(directory, table);
  const sweptAt = sweep.sweptTo ?? (await keep('creation', KEPT_MS, () => stored.createdAt()));
  return { sweep, sweptAt };
}

function outboxStatus(
  { directory, now }: StatusDeps,
  { sweptTo, shards }: SweepReading,
  sweptAt: number,
  pending: readonly StoredEventRow[],
  dead: number,
  recent: RecentSample,
): Omit<StatusReport['outbox'], 'scheduled'> {
  const { sources } = directory.mailroom;
  const isUndeclared = ({ source }: StoredEventRow) =>
    source !== undefined && sources?.includes(source) === false;
  const undeclared = pending.filter(isUndeclared);
  const declared = pending.filter((item) => !isUndeclared(item));
  const waits = judged(pending, { now, sources, sweptShards: shards.length });
  const unreadable = pending.flatMap((row) => (isUnreadable(row) ? [row.SK] : []));
  const inDatabase = declared.filter(({ store }) => store !== undefined);
  const swept = declared.filter(({ store }) => store === undefined);
  const [oldest] = inDatabase.toSorted((a, b) => (waitingSince(a) ?? now) - (waitingSince(b) ?? now));
  return {
    pending: pending.length,
    oldestPendingMs: oldestMs(swept, now, waitingSince),
    oldestCommittedMs: oldestMs(swept, now, committedSince),
    inDatabase: {
      pending: inDatabase.length,
      oldestPendingMs: oldestMs(inDatabase, now, waitingSince),
      oldest: (oldest && eventIdOf(oldest)) ?? null,
    },
    dead,
    unreadable: new Set([...unreadable, ...recent.unreadable]).size,
    undeclared: undeclared.length,
    firstUndeclared: undeclared.flatMap((item) => eventIdOf(item) ?? [])[0] ?? null,
    stuck: waitGroups(waits.filter(({ isStuck }) => isStuck)),
    sweptAgoMs: sweptTo === undefined ? null : Math.max(0, now - sweptTo),
    unsweptMs: Math.max(0, now - sweptAt),
  };
}

type Depths = ReadonlyMap<string, QueueDepth | undefined>;

/** The depths of every queue, by its URL; `undefined` where the queue does not exist. */
async function readDepths(queues: Queues, directory: Directory): Promise<Depths> {
  const urls = [
    ...directory.consumers.map(({ queue }) => queue),
    ...deadLetterQueues(directory).map(({ url }) => url),
  ];
  return new Map(await eachOf(urls, async (url) => [url, await depthOf(queues, url)] as const));
}

async function readConsumer<C extends Pick<ConsumerEntry, 'name'>>(
  stored: StoredRows,
  consumer: C,
  now: number,
) {
  const [waiting, rejected] = await Promise.all([
    readWaiting(stored, consumer.name, FAILED_MAX, now),
    readRejected(stored, consumer.name, POINTERS_MAX, now),
  ]);
  return { consumer, waiting, rejected };
}

/** The consumers of other sources. They enter themselves at any time, also while a status is watched. */
async function readAtSources({ table, stored, directory, keep = keepNothing, now }: StatusDeps) {
  const entered = await keep('source consumers', KEPT_MS, () => readSourceConsumers(table, directory, now));
  return eachOf(entered, (consumer) => readConsumer(stored, consumer, now));
}

/** The counts of the rows of a consumer's inbox, and the ids of those that cannot be read. */
function countsOf(
  { waiting, rejected }: Pick<Awaited<ReturnType<typeof readConsumer>>, 'waiting' | 'rejected'>,
  now: number,
) {
  return {
    failed: waiting.items.filter((one) => one.state.is !== 'unreadable' && !isLimited(one, now)).length,
    rejected: rejected.items.filter((pointer) => !isUnreadable(pointer)).length,
    unreadable: [
      ...waiting.items.filter(({ state }) => state.is === 'unreadable').map(({ eventId }) => eventId),
      ...rejected.items.filter(isUnreadable).map(({ SK }) => SK),
    ],
  };
}

function consumerStatus(
  reading: Awaited<ReturnType<typeof readConsumer<ConsumerEntry>>>,
  depths: Depths,
  recent: readonly RecentMessage[],
  now: number,
): ConsumerStatus {
  const { consumer, waiting } = reading;
  const { failed, rejected, unreadable } = countsOf(reading, now);
  const { waiting: queued = 0, inFlight = 0 } = depths.get(consumer.queue) ?? {};
  const unseen = recent.filter(({ is, eventId }) => is === 'unreadable' && !unreadable.includes(eventId));
  const births = [
    ...recent.filter(isUnprocessed).map(({ committedAt }) => committedAt),
    ...waiting.items.flatMap(({ eventId }) => (isEventId(eventId) ? [eventIdTime(eventId)] : [])),
  ];
  return {
    forwardsTo: consumer.forwardsTo?.name ?? null,
    queued,
    inFlight,
    backlog: queued + inFlight,
    oldestUnprocessedMs: births.reduce((age, birth) => Math.max(age, now - birth), 0),
    failed,
    rejected,
    unreadable: unreadable.length + unseen.length,
    stale: recent.filter(({ isStale }) => isStale).length,
    deadLetters: held(depths.get(consumer.deadLetterQueue)),
  };
}
