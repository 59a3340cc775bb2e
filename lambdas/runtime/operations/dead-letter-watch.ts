import pMap from 'p-map';
import { type Clock, systemClock, withDeadline } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { DeadLetterWatch } from '../relay/relay-sweep.ts';
import type { RejectedPointer } from '../store/inbox-row.ts';
import { rejectedKey } from '../store/keys.ts';
import { asRow } from '../store/row-schema.ts';
import type { Table } from '../store/table.ts';
import { type DeadLetterQueue, deadLetterQueues } from './dead-letters.ts';
import type { Directory } from './directory.ts';
import type { Queues } from './queues.ts';

/** Dependencies of {@link createDeadLetterWatch}. */
export interface DeadLetterWatchDeps {
  /** Reads the locations of this Mailroom's parts. */
  readonly directory: () => Promise<Directory>;
  readonly queues: Pick<Queues, 'depth' | 'receive'>;
  readonly table: Pick<Table, 'query'>;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
}

/** The maximum SQS retention, 14 days (SQS quotas): the metric's value without dead letters, milliseconds. */
const DEAD_LETTER_LIFE_MAX_MS = 14 * 86_400_000;

/** The maximum duration of the watch, milliseconds. */
const WATCH_MAX_MS = 8_000;

/** The watch ends this long before the invocation, so that its findings are still sent, milliseconds. */
const END_MARGIN_MS = 1_000;

/** The number of dead letters read per queue: the maximum of one receive. */
const RECEIVED_MAX = 10;

/** The number of queues read concurrently. */
const QUEUES_AT_ONCE = 8;

/** The content of a queue. */
interface Holding {
  /** The queue's name. */
  readonly queue: string;
  readonly deadLetters: number;
  /** The earliest known deletion time, epoch milliseconds; `Infinity` if none is known. */
  readonly firstExpiryAt: number;
  /** The reason why the dead letters could be counted but not read; absent if they were read. */
  readonly unread?: unknown;
}

/**
 * Creates the watch.
 *
 * A standard queue deletes a message one retention period after its *original* send, even if it has been moved to a dead-letter
 * queue since then. `ApproximateAgeOfOldestMessage` of a dead-letter queue counts from the move, so it does not show this (SQS
 * developer guide, "Setting up dead-letter queue retention"). The watch therefore reads the `SentTimestamp` of a few dead letters
 * of each queue. SQS chooses these at random, so it also reads the pointers of a consumer's rejected messages, which are sorted by
 * event, oldest first; those of external events, whose ids have no time, are in no order.
 *
 * The dead letters are not hidden. Each receive increases their receive count, which is harmless: a dead-letter queue has no
 * redrive policy (`lib/consumer/existing-queue.ts` refuses one that has).
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

    const directory = await read('the directory', deps.directory);
    for (const { name } of directory?.unlisted ?? [])
      failed(`consumer:${name}`, new Error('The directory has no entry of the consumer.'));
    const queues = directory === undefined ? [] : inTurns(deadLetterQueues(directory));
    const holdings = await pMap(
      queues,
      (queue) => read(queue.name, () => holdingOf(deps, queue, clock.now())),
      { concurrency: QUEUES_AT_ONCE },
    );
    const known = holdings.filter((holding) => holding !== undefined);
    // The number of dead letters is known even if they could not be read.
    for (const { queue, unread } of known) if (unread !== undefined) failed(queue, unread);
    telemetry.count('WatchFailures', failures);
    if (known.length > 0) report(telemetry, known, clock.now());
  };
}

function outOfTime(): never {
  throw new MailroomError(
    'OUT_OF_TIME',
    'The watch of the dead-letter queues ran out of time; the next sweep repeats it.',
  );
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
  // A pointer whose dead letter is already deleted does not describe the remaining ones.
  const expected = pointed.filter((sentAt) => sentAt + retentionMs > now);
  return {
    queue: name,
    deadLetters,
    firstExpiryAt: Math.min(...seen, ...expected) + retentionMs,
    unread,
  };
}

/** Returns the times at which SQS received the messages that a consumer rejected: one page, oldest events first. */
async function sentTimes(table: DeadLetterWatchDeps['table'], consumer: string): Promise<number[]> {
  const { items } = await table.query({ pk: rejectedKey(consumer, '').PK });
  return items
    .map((item) => asRow<RejectedPointer>(item).sentAt)
    .filter((sentAt) => typeof sentAt === 'number');
}

/** Emits the findings; if only a part could be read, the count is a minimum, and the time until the first expiry a maximum. */
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

/** Orders the queues: the stream's first, then by consumer, so that running out of time does not always skip the same kind of queue. */
function inTurns(queues: readonly DeadLetterQueue[]): DeadLetterQueue[] {
  const ofConsumers = queues.filter((queue) => queue.kind !== 'stream');
  const names = new Set(ofConsumers.map(({ consumer }) => consumer.name));
  return [
    ...queues.filter(({ kind }) => kind === 'stream'),
    ...[...names].flatMap((name) => ofConsumers.filter(({ consumer }) => consumer.name === name)),
  ];
}
