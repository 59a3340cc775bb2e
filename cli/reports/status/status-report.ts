import { deadLetterQueues, depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { QueueDepth, Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { pendingSince } from '../../../lambdas/runtime/outbox/pending-row.ts';
import { isUnreadable, readable, readOutboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { readRejected, readWaiting } from '../../deployment/message-reader.ts';
import { eachOf, readSweepState } from '../../deployment/rows-reader.ts';
import { type Checked, isPause, STUCK_MS } from '../checks/check.ts';
import { readDeadPointers } from '../dead-letters/dead-letters.ts';
import { createWarnings, type Warning } from './consumer-warnings.ts';
import { type HeartbeatStatus, readHeartbeatStatus } from './heartbeat-status.ts';
import { type Keep, keepNothing } from './kept-readings.ts';
import { oldestMs, readPending, waitingSince } from './pending-events.ts';
import { deadEventsStatus, held, readSourceStatus, type SourceStatus } from './source-status.ts';

/** The document of `mailroom status --json`. Times are epoch milliseconds; absent values are `null`. */
export interface StatusReport {
  readonly stack: string;
  readonly region: string;
  readonly at: number;
  /** Everything was checked, and no action is required: `state` is `ok`. */
  readonly ok: boolean;
  /** `broken`: action is required. `look`: a consumer may be in trouble, or something could not be checked. */
  readonly state: 'ok' | 'look' | 'broken';
  /** The parts that are not as declared, and the checks that were not made. */
  readonly wiring: Checked;
  /** Consumers that may be in trouble. */
  readonly looks: readonly Warning[];
  /** The scheduled heartbeat; `null` without one. */
  readonly heartbeat: HeartbeatStatus | null;
  readonly outbox: {
    readonly pending: number;
    /** The longest time for which an event has been PENDING, milliseconds: since its commit or its last requeue; 0 if none is. */
    readonly oldestPendingMs: number;
    /** The time since the commit of the oldest PENDING event, milliseconds: the range to sweep; 0 if no event is PENDING. */
    readonly oldestCommittedMs: number;
    readonly dead: number;
    /** PENDING rows that cannot be read. `pending` and `oldestPendingMs` include them. */
    readonly unreadable: number;
    /** Milliseconds since the sweep's last complete pass began; `null` before the first. */
    readonly sweptAgoMs: number | null;
    /** The same; before the first pass, milliseconds since the table was created. */
    readonly unsweptMs: number;
  };
  readonly consumers: Readonly<Record<string, ConsumerStatus>>;
  readonly deadLetterSources: readonly SourceStatus[];
  /** URLs of queues in the directory that do not exist. They count as empty. */
  readonly gone: readonly string[];
  /** The counts that are lower bounds because reading stopped at a limit: e.g. `consumers.payments.failed`. */
  readonly atLeast: readonly string[];
}

/** The messages of one consumer that wait, failed or died. */
interface ConsumerStatus {
  /** Messages in its queue that a receive can return now. */
  readonly queued: number;
  /** Messages in work, or hidden until their next attempt. */
  readonly inFlight: number;
  /** Messages whose last attempt failed and that are retried. */
  readonly failed: number;
  /** Messages that are not retried. */
  readonly rejected: number;
  /** Messages whose row, pointer or hint cannot be read. */
  readonly unreadable: number;
  /** Messages in its dead-letter queue. */
  readonly deadLetters: number;
}

/** Dependencies of {@link readStatus}. */
export interface StatusDeps {
  readonly directory: Directory;
  readonly region: string;
  readonly table: Table;
  readonly queues: Queues;
  /** Makes the checks up to the level `settings`: see `checksOf`. */
  readonly wiring: () => Promise<Checked>;
  /** Keeps the PENDING events and samples of events for a next status. @default they are read */
  readonly keep?: Keep;
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

/** Reads the status of the whole Mailroom. It changes nothing and receives only from dead-letter queues. */
export async function readStatus(deps: StatusDeps): Promise<StatusReport> {
  const { directory, region, table, queues, keep = keepNothing, now } = deps;
  const reading = readDepths(queues, directory);
  // Awaited below: until then its failure has no other handler.
  reading.catch(() => {});
  const sweep = await readSweepState(directory, table);
  // The time of creation matters only before the first complete pass.
  const createdAt =
    sweep.sweptTo ??
    (await keep(
      'creation',
      () => table.createdAt(),
      () => KEPT_MS,
    ));
  const [pending, dead, consumers, depths, wiring, heartbeat] = await Promise.all([
    keep(
      'pending',
      () => readPending(deps, sweep, createdAt),
      ({ items }) => (oldestMs(items, now, waitingSince) > STUCK_MS ? BROKEN_KEPT_MS : KEPT_MS),
    ),
    readDeadPointers(table, sweep.shards, POINTERS_MAX),
    eachOf(directory.consumers, (consumer) => readConsumer(table, consumer, now)),
    reading,
    deps.wiring(),
    readHeartbeatStatus(deps),
  ]);
  const look = createWarnings({ directory, table, shards: sweep.shards, keep, now });
  const looks = await eachOf(consumers, ({ consumer, waiting }) => {
    const isCut = wiring.problems.some(({ part, level }) => part === consumer.name && level === 'flow');
    return look({ consumer, depth: depths.get(consumer.queue), failed: waiting.items, isCut });
  });
  const sources = await eachOf(deadLetterQueues(directory), (source) => {
    const own = consumers.find(({ consumer }) => source.url === consumer.deadLetterQueue);
    const pointers = own?.rejected.items.flatMap((pointer) => readable(pointer) ?? []) ?? [];
    return readSourceStatus({ queues, now }, source, depths.get(source.url), pointers);
  });
  const report = {
    wiring,
    looks: looks.flatMap((found) => found ?? []),
    heartbeat,
    stack: directory.mailroom.stack,
    region,
    at: now,
    outbox: {
      pending: pending.items.length,
      oldestPendingMs: oldestMs(pending.items, now, waitingSince),
      oldestCommittedMs: oldestMs(pending.items, now, pendingSince),
      dead: dead.items.length,
      unreadable: pending.items.filter((item) => isUnreadable(readOutboxRow(item))).length,
      sweptAgoMs: sweep.sweptTo === undefined ? null : Math.max(0, now - sweep.sweptTo),
      unsweptMs: Math.max(0, now - (sweep.sweptTo ?? createdAt)),
    },
    consumers: Object.fromEntries(
      consumers.map((reading) => [reading.consumer.name, consumerStatus(reading, depths)]),
    ),
    deadLetterSources: [deadEventsStatus(dead.items), ...sources],
    gone: [...depths].flatMap(([url, depth]) => (depth === undefined ? [url] : [])),
    atLeast: [
      ...(pending.more ? ['outbox.pending'] : []),
      ...(dead.more ? ['outbox.dead'] : []),
      ...consumers.flatMap(({ consumer: { name }, waiting, rejected }) => [
        ...(waiting.more ? [`consumers.${name}.failed`] : []),
        ...(rejected.more ? [`consumers.${name}.rejected`] : []),
      ]),
    ],
  };
  const state = stateOf(report);
  return { ...report, state, ok: state === 'ok' };
}

function stateOf(report: Facts): StatusReport['state'] {
  if (!isWell(report)) return 'broken';
  const { looks, wiring, heartbeat } = report;
  const isProven = heartbeat === null || heartbeat.state === 'ok';
  // What was not checked is not known to be well.
  return looks.length + wiring.notChecked.length + wiring.problems.length > 0 || !isProven ? 'look' : 'ok';
}

type Facts = Omit<StatusReport, 'ok' | 'state'>;

/** Nothing is dead or stuck, all parts are as declared, and the sweep runs. A failed message is retried without help. */
function isWell({ wiring, outbox, consumers, deadLetterSources }: Facts): boolean {
  return (
    wiring.problems.every(isPause) &&
    outbox.oldestPendingMs <= STUCK_MS &&
    outbox.unsweptMs <= STUCK_MS &&
    outbox.unreadable === 0 &&
    deadLetterSources.every(({ count }) => count === 0) &&
    Object.values(consumers).every(({ rejected, unreadable }) => rejected + unreadable === 0)
  );
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

async function readConsumer(table: Table, consumer: ConsumerEntry, now: number) {
  const [waiting, rejected] = await Promise.all([
    readWaiting(table, consumer.name, FAILED_MAX, now),
    readRejected(table, consumer.name, POINTERS_MAX, now),
  ]);
  return { consumer, waiting, rejected };
}

function consumerStatus(
  { consumer, waiting, rejected }: Awaited<ReturnType<typeof readConsumer>>,
  depths: Depths,
): ConsumerStatus {
  const depth = depths.get(consumer.queue);
  const unreadableWaiting = waiting.items.filter(({ state }) => state.is === 'unreadable').length;
  const unreadablePointers = rejected.items.filter(isUnreadable).length;
  return {
    queued: depth?.waiting ?? 0,
    inFlight: depth?.inFlight ?? 0,
    failed: waiting.items.length - unreadableWaiting,
    rejected: rejected.items.length - unreadablePointers,
    unreadable: unreadableWaiting + unreadablePointers,
    deadLetters: held(depths.get(consumer.deadLetterQueue)),
  };
}
