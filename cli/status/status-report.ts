import { depthOf } from '../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { Queues } from '../../lambdas/runtime/operations/queues.ts';
import {
  MINUTE_MS,
  minutesToSweep,
  SWEEP_AGE_MAX_MS,
  youngestMinutes,
} from '../../lambdas/runtime/relay/sweep-minutes.ts';
import { EVENT_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { pendingSince } from '../../lambdas/runtime/store/pending-row.ts';
import { outboxPartition, unsettledKey } from '../../lambdas/runtime/store/rows.ts';
import { isUnreadable, readable, readOutboxRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { readDeadPointers } from '../reading/dead-reader.ts';
import { readRejected, readWaiting } from '../reading/message-reader.ts';
import { queuePlaces } from '../reading/place.ts';
import { held, type PlaceStatus, placeOfDead, readPlace } from '../reading/place-status.ts';
import {
  eachOf,
  partitionsOf,
  readPartition,
  readSweepState,
  type SweepReading,
} from '../reading/rows-reader.ts';

/** What `mailroom status --json` prints. Times are epoch milliseconds; what is not there is `null`. */
export interface StatusReport {
  readonly stack: string;
  readonly region: string;
  readonly at: number;
  /** Whether nobody is needed. */
  readonly ok: boolean;
  readonly outbox: {
    readonly pending: number;
    /** The age of the oldest PENDING event, milliseconds; 0 when there is none. */
    readonly oldestPendingMs: number;
    readonly dead: number;
    /** PENDING rows that cannot be read. They are counted in `pending`, and in `oldestPendingMs`. */
    readonly unreadable: number;
    /** How long ago the last whole pass of the sweep began, milliseconds; `null` before the first. */
    readonly sweptAgoMs: number | null;
    /** How long no whole pass has begun, milliseconds: since the last one, and before the first since the table was created. */
    readonly unsweptMs: number;
  };
  readonly consumers: Readonly<Record<string, ConsumerStatus>>;
  readonly places: readonly PlaceStatus[];
  /** The URLs of queues that the directory names and that do not exist: they count as empty. */
  readonly gone: readonly string[];
  /** Which counts are lower bounds, because there is more than is worth counting: e.g. `consumers.payments.failed`. */
  readonly atLeast: readonly string[];
}

/** What waits for one consumer, and what it could not do. */
interface ConsumerStatus {
  /** Messages in its queue that a receive could return now. */
  readonly queued: number;
  /** Messages that are being worked on, or hidden until their next attempt. */
  readonly inFlight: number;
  /** Messages whose last attempt failed, and that are tried again. */
  readonly failed: number;
  /** Messages that are not tried again. */
  readonly rejected: number;
  /** Messages whose row, or whose pointer or hint, cannot be read. */
  readonly unreadable: number;
  /** Letters in its dead-letter queue. */
  readonly dlq: number;
}

/** What a status is read from. */
export interface StatusDeps {
  readonly directory: Directory;
  readonly region: string;
  readonly table: Table;
  readonly queues: Queues;
  readonly now: number;
}

/** The most partitions of outbox rows that are read: far more than there are unless the sweep has stood still for days. */
const PARTITIONS_MAX = 20_000;

/** The most pointers of one kind that are counted. */
const POINTERS_MAX = 10_000;

/** The most hints at failed messages whose rows are read. */
const FAILED_MAX = 1_000;

/** An event that is PENDING for longer than this is stuck: the alarm's own threshold. */
export const STUCK_MS = 5 * 60_000;

/** Reads what waits, what failed and what is dead, everywhere. It changes nothing, and receives only from queues of letters. */
export async function readStatus(deps: StatusDeps): Promise<StatusReport> {
  const { directory, table, queues, now } = deps;
  const atLeast: string[] = [];
  const count = <T>(
    name: string,
    { items, more }: { readonly items: readonly T[]; readonly more: boolean },
  ) => {
    if (more) atLeast.push(name);
    return items.length;
  };
  const sweep = await readSweepState(directory, table);
  // Nobody asks for the creation while the sweep runs.
  const createdAt = sweep.sweptTo ?? (await table.createdAt());
  const [pending, dead, consumers, depths] = await Promise.all([
    readPending(deps, sweep, createdAt),
    readDeadPointers(table, sweep.shards, POINTERS_MAX),
    eachOf(directory.consumers, async (consumer) => readConsumer(table, consumer, now)),
    eachOf(
      [...directory.consumers.map(({ queue }) => queue), ...queuePlaces(directory).map(({ url }) => url)],
      async (url) => [url, await depthOf(queues, url)] as const,
    ),
  ]);
  const depthByUrl = new Map(depths);
  const places = await eachOf(queuePlaces(directory), (place) => {
    const rejected = consumers.find(({ consumer }) => place.url === consumer.deadLetterQueue)?.rejected.items;
    const pointers = rejected?.flatMap((pointer) => readable(pointer) ?? []) ?? [];
    return readPlace({ queues, now }, place, depthByUrl.get(place.url), pointers);
  });
  const report = {
    stack: directory.mailroom.stack,
    region: deps.region,
    at: now,
    outbox: {
      pending: count('outbox.pending', pending),
      oldestPendingMs: oldestMs(pending.items, now),
      dead: count('outbox.dead', dead),
      unreadable: pending.items.filter((item) => isUnreadable(readOutboxRow(item))).length,
      sweptAgoMs: sweep.sweptTo === undefined ? null : Math.max(0, now - sweep.sweptTo),
      unsweptMs: Math.max(0, now - (sweep.sweptTo ?? createdAt)),
    },
    consumers: Object.fromEntries(
      consumers.map(({ consumer: { name, queue, deadLetterQueue }, waiting, rejected }) => [
        name,
        {
          queued: depthByUrl.get(queue)?.waiting ?? 0,
          inFlight: depthByUrl.get(queue)?.inFlight ?? 0,
          failed: count(`consumers.${name}.failed`, {
            ...waiting,
            items: waiting.items.filter(({ state }) => state.is !== 'unreadable'),
          }),
          rejected: count(`consumers.${name}.rejected`, {
            ...rejected,
            items: rejected.items.filter((pointer) => !isUnreadable(pointer)),
          }),
          unreadable:
            waiting.items.filter(({ state }) => state.is === 'unreadable').length +
            rejected.items.filter(isUnreadable).length,
          dlq: held(depthByUrl.get(deadLetterQueue)),
        },
      ]),
    ),
    places: [placeOfDead(dead.items), ...places],
    gone: depths.flatMap(([url, depth]) => (depth === undefined ? [url] : [])),
    atLeast,
  };
  return { ...report, ok: isWell(report) };
}

/** Whether nobody is needed: nothing is dead, stuck or gone, and the sweep runs. What failed is tried again by itself. */
function isWell({ outbox, consumers, places, gone }: Omit<StatusReport, 'ok'>): boolean {
  return (
    outbox.oldestPendingMs <= STUCK_MS &&
    outbox.unsweptMs <= STUCK_MS &&
    outbox.unreadable === 0 &&
    places.every(({ count }) => count === 0) &&
    gone.length === 0 &&
    Object.values(consumers).every(({ rejected, unreadable }) => rejected + unreadable === 0)
  );
}

/**
 * The PENDING events: in every minute that the sweep has not read yet, and in those that it left unsettled. Any other
 * minute was clean when it was read last.
 */
async function readPending({ table, now }: StatusDeps, { shards, sweptTo }: SweepReading, createdAt: number) {
  const unsettled = await eachOf(shards, async (shard) => {
    const { PK } = unsettledKey(shard, '');
    const { items } = await readPartition(table, { pk: PK }, POINTERS_MAX);
    return items.map(({ SK }) => outboxPartition(String(SK), shard));
  });
  const since = sweptSince(sweptTo, createdAt, now);
  // Years of minutes would not even fit into memory.
  const from = Math.max(since, now - PARTITIONS_MAX * MINUTE_MS);
  const minutes = [...youngestMinutes(now), ...minutesToSweep(from, now)];
  const all = new Set([...unsettled.flat(), ...minutes.flatMap((minute) => partitionsOf(minute, shards))]);
  const partitions = [...all].slice(0, PARTITIONS_MAX);
  const found = await eachOf(partitions, (pk) =>
    readPartition(table, { pk, skPrefix: EVENT_PREFIX, where: { status: 'PENDING' } }, POINTERS_MAX),
  );
  return {
    items: found.flatMap((page) => page.items),
    more: from > since || all.size > partitions.length || found.some((page) => page.more),
  };
}

async function readConsumer(table: Table, consumer: ConsumerEntry, now: number) {
  const [waiting, rejected] = await Promise.all([
    readWaiting(table, consumer.name, FAILED_MAX, now),
    readRejected(table, consumer.name, POINTERS_MAX),
  ]);
  return { consumer, waiting, rejected };
}

/** From where on the sweep has to read: the rules of its own start. */
function sweptSince(sweptTo: number | undefined, createdAt: number, now: number): number {
  if (sweptTo === undefined) return createdAt;
  return sweptTo > now + MINUTE_MS ? now - SWEEP_AGE_MAX_MS : sweptTo;
}

/** The age of the oldest event, also of one whose row cannot be read. */
function oldestMs(rows: readonly Item[], now: number): number {
  const times = rows.flatMap((row) => pendingSince(row) ?? []);
  return times.reduce((age, time) => Math.max(age, now - time), 0);
}
