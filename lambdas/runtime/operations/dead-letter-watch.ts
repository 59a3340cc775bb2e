import pMap from 'p-map';
import { type Clock, systemClock } from '../clock.ts';
import { withDeadline } from '../deadline.ts';
import { MailroomError } from '../errors.ts';
import { asRow, type RejectedPointer, rejectedKey } from '../store/rows.ts';
import type { Table } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import { type DeadLetterQueue, deadLetterQueues } from './dead-letters.ts';
import type { Directory } from './directory.ts';
import type { Queues } from './queues.ts';

/**
 * Reads every dead-letter queue, and emits how many dead letters there are (`DeadLetters`) and in how long the
 * first of them is permanently deleted (`FirstDeadLetterExpiry`). What cannot be read is counted (`WatchFailures`) and
 * logged: it never throws.
 *
 * @param endsBy - when the invocation ends, epoch milliseconds: the watch is over before
 */
export type DeadLetterWatch = (telemetry: Telemetry, endsBy: number) => Promise<void>;

/** The parts that the watch needs. */
export interface DeadLetterWatchDeps {
  /** Where the parts of this Mailroom are. */
  readonly directory: () => Promise<Directory>;
  readonly queues: Pick<Queues, 'depth' | 'receive'>;
  readonly table: Pick<Table, 'query'>;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
}

/** The longest that SQS keeps a message, 14 days (SQS quotas): the metric's value when there is no dead letter. */
const DEAD_LETTER_LIFE_MAX_MS = 14 * 86_400_000;

/** How long the watch may take. */
const WATCH_MAX_MS = 8_000;

/** It is over this long before the invocation ends, so that what it found is still sent. */
const END_MARGIN_MS = 1_000;

/** How many dead letters of a queue are read, the most of one receive. */
const RECEIVED_MAX = 10;

/** How many queues are read at once. */
const QUEUES_AT_ONCE = 8;

/** What a queue holds. */
interface Holding {
  /** The queue's name. */
  readonly queue: string;
  readonly deadLetters: number;
  /** When the first known of them is deleted, epoch milliseconds; `Infinity` when none is known. */
  readonly firstExpiryAt: number;
  /** Why they could be counted and not be read; absent when they were. */
  readonly unread?: unknown;
}

/**
 * Makes the watch.
 *
 * A standard queue deletes a message its retention after its *original* send, also when it has been moved to a dead-letter
 * queue since; `ApproximateAgeOfOldestMessage` of a dead-letter queue counts from the move, so it says nothing about that
 * (SQS developer guide, "Setting up dead-letter queue retention"). So the letters' own `SentTimestamp` is read, of a few
 * of each queue: which ones SQS hands out is chance. Therefore the pointers of a consumer's rejected messages are asked
 * too, which come in the order of their events, the oldest first.
 *
 * The letters are not hidden. Each receive is counted on them, which is harmless: a dead-letter queue has no redrive policy.
 *
 * @example
 * ```ts
 * const watch = createDeadLetterWatch({ table, queues, directory: () => readDirectory(ssm, config.tableName) });
 * export const handler = createRelaySweep({ config, table, bus, watch });
 * ```
 */
export function createDeadLetterWatch(deps: DeadLetterWatchDeps): DeadLetterWatch {
  const { clock = systemClock } = deps;
  return async (telemetry, endsBy) => {
    const watchEndsBy = Math.min(clock.now() + WATCH_MAX_MS, endsBy - END_MARGIN_MS);
    let failures = 0;
    const failed = (queue: string, error: unknown) => {
      failures += 1;
      telemetry.log.error('A dead-letter queue could not be read', { queue, error: error as Error });
    };
    const read = async <T>(what: string, work: () => Promise<T>): Promise<T | undefined> => {
      const leftMs = watchEndsBy - clock.now();
      try {
        return await (leftMs > 0 ? withDeadline(clock, leftMs, work(), outOfTime) : outOfTime());
      } catch (error) {
        failed(what, error);
        return undefined;
      }
    };

    const queues =
      (await read('the directory', async () => inTurns(deadLetterQueues(await deps.directory())))) ?? [];
    const holdings = await pMap(
      queues,
      (queue) => read(queue.name, () => holdingOf(deps, queue, clock.now())),
      { concurrency: QUEUES_AT_ONCE },
    );
    const known = holdings.filter((holding) => holding !== undefined);
    // How many dead letters there are is known all the same.
    for (const { queue, unread } of known) if (unread !== undefined) failed(queue, unread);
    telemetry.count('WatchFailures', failures);
    if (known.length > 0) report(telemetry, known, clock.now());
  };
}

function outOfTime(): never {
  throw new MailroomError('OUT_OF_TIME', 'The time of the watch is up; the next sweep looks again');
}

async function holdingOf(
  { queues, table }: DeadLetterWatchDeps,
  { name, url, ...queue }: DeadLetterQueue,
  now: number,
): Promise<Holding> {
  const { waiting, inFlight, retentionMs } = await queues.depth(url);
  const deadLetters = waiting + inFlight;
  if (deadLetters === 0) return { queue: name, deadLetters, firstExpiryAt: Number.POSITIVE_INFINITY };
  let unread: unknown;
  const received = await queues.receive(url, { limit: RECEIVED_MAX, hideS: 0 }).catch((error: unknown) => {
    unread = error;
    return [];
  });
  const seen = received.map(({ sentAt }) => sentAt).filter((sentAt) => sentAt > 0);
  const pointed = queue.kind === 'consumer' ? await sentTimes(table, queue.consumer.name) : [];
  // A pointer whose dead letter is deleted by now says nothing of those that are left.
  const expected = pointed.filter((sentAt) => sentAt + retentionMs > now);
  return {
    queue: name,
    deadLetters,
    firstExpiryAt: Math.min(...seen, ...expected) + retentionMs,
    unread,
  };
}

/** When SQS took the messages that a consumer rejected: one page of them, the oldest events first. */
async function sentTimes(table: DeadLetterWatchDeps['table'], consumer: string): Promise<number[]> {
  const { items } = await table.query({ pk: rejectedKey(consumer, '').PK });
  return items
    .map((item) => asRow<RejectedPointer>(item).sentAt)
    .filter((sentAt) => typeof sentAt === 'number');
}

/** Emits what was found; where only a part could be read, there are at least so many dead letters, and so little time. */
function report(telemetry: Telemetry, holdings: readonly Holding[], now: number): void {
  const firstExpiryAt = Math.min(...holdings.map((holding) => holding.firstExpiryAt));
  const firstExpiryMs = Math.min(DEAD_LETTER_LIFE_MAX_MS, Math.max(0, firstExpiryAt - now));
  const held = holdings.filter(({ deadLetters }) => deadLetters > 0);
  const deadLetters = held.reduce((sum, holding) => sum + holding.deadLetters, 0);
  telemetry.gauge('DeadLetters', deadLetters);
  telemetry.duration('FirstDeadLetterExpiry', firstExpiryMs);
  if (deadLetters === 0) return;
  const queues = Object.fromEntries(held.map((holding) => [holding.queue, holding.deadLetters]));
  telemetry.log.warn('There are dead letters', { deadLetters, firstExpiryMs, queues });
}

/** The stream's queue first, then consumer by consumer: when the time is up, no kind of queue is always the one left out. */
function inTurns(queues: readonly DeadLetterQueue[]): DeadLetterQueue[] {
  const of = (kind: DeadLetterQueue['kind']) => queues.filter((queue) => queue.kind === kind);
  const rejected = of('consumer');
  return [
    ...of('stream'),
    ...of('rule').flatMap((undelivered, index) => [undelivered, ...rejected.slice(index, index + 1)]),
  ];
}
