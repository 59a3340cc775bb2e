import pMap from 'p-map';
import { type Clock, systemClock } from '../clock.ts';
import { MailroomError } from '../errors.ts';
import { asRow, type RejectedPointer, rejectedKey } from '../store/rows.ts';
import type { Table } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Directory } from './directory.ts';
import type { Queues } from './queues.ts';

/**
 * Looks at every queue in which a letter lies, and emits how many letters there are (`DeadLetters`) and in how long the
 * first of them is deleted for ever (`FirstDeadLetterExpiry`). What cannot be read is counted (`WatchFailures`) and
 * logged: it never throws.
 *
 * @param endsBy - when the invocation ends, epoch milliseconds: the watch is over before
 */
export type DeadLetterWatch = (telemetry: Telemetry, endsBy: number) => Promise<void>;

/** What the watch needs. */
export interface DeadLetterWatchDeps {
  /** Where the parts of this Mailroom are. */
  readonly directory: () => Promise<Directory>;
  readonly queues: Pick<Queues, 'depth' | 'receive'>;
  readonly table: Pick<Table, 'query'>;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
}

/** The longest that SQS keeps a message, 14 days (SQS quotas): what the metric says when there is no letter. */
const LETTER_LIFE_MAX_MS = 14 * 86_400_000;

/** How long the watch may take. */
const WATCH_MAX_MS = 8_000;

/** It is over this long before the invocation ends, so that what it found is still sent. */
const END_MARGIN_MS = 1_000;

/** How many letters of a queue are looked at, the most of one receive. */
const LETTERS_MAX = 10;

/** How many queues are looked at at once. */
const QUEUES_AT_ONCE = 8;

/** A queue in which nobody works on what it holds. */
interface Place {
  /** As an operator names it. */
  readonly name: string;
  readonly url: string;
  /** The consumer whose rejected messages end there. */
  readonly rejectedBy?: string;
}

/** What a place holds. */
interface Holding {
  readonly place: string;
  readonly letters: number;
  /** When the first known of them is deleted, epoch milliseconds; `Infinity` when none is known. */
  readonly firstExpiryAt: number;
  /** Why the letters could be counted and not be read; absent when they were. */
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
 * export const { handler } = createRelaySweep({ config, table, bus, watch });
 * ```
 */
export function createDeadLetterWatch(deps: DeadLetterWatchDeps): DeadLetterWatch {
  const { directory, queues, table, clock = systemClock } = deps;

  async function look({ name, url, rejectedBy }: Place): Promise<Holding> {
    const { waiting, inFlight, retentionMs } = await queues.depth(url);
    const letters = waiting + inFlight;
    if (letters === 0) return { place: name, letters, firstExpiryAt: Number.POSITIVE_INFINITY };
    let unread: unknown;
    const received = await queues.receive(url, { limit: LETTERS_MAX, hideS: 0 }).catch((error: unknown) => {
      unread = error;
      return [];
    });
    const seen = received.map(({ sentAt }) => sentAt).filter((sentAt) => sentAt > 0);
    // A pointer whose letter is deleted by now says nothing of those that are left.
    const now = clock.now();
    const pointed = rejectedBy === undefined ? [] : await sentTimes(rejectedBy);
    const expected = pointed.filter((sentAt) => sentAt + retentionMs > now);
    return { place: name, letters, firstExpiryAt: Math.min(...seen, ...expected) + retentionMs, unread };
  }

  /** When SQS took the messages that a consumer rejected: one page of them, the oldest events first. */
  async function sentTimes(consumer: string): Promise<number[]> {
    const { items } = await table.query({ pk: rejectedKey(consumer, '').PK });
    return items
      .map((item) => asRow<RejectedPointer>(item).sentAt)
      .filter((sentAt) => typeof sentAt === 'number');
  }

  return async (telemetry, endsBy) => {
    const over = new AbortController();
    let late = false;
    const timeIsUp = clock
      .sleep(Math.min(WATCH_MAX_MS, endsBy - END_MARGIN_MS - clock.now()), over.signal)
      .then((): never => {
        late = true;
        throw new MailroomError('OUT_OF_TIME', 'The time of the watch is up; the next sweep looks again');
      });
    timeIsUp.catch(() => {}); // also when it is over in time

    let failures = 0;
    async function read<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
      try {
        return await (late ? timeIsUp : Promise.race([timeIsUp, work()]));
      } catch (error) {
        failed(what, error);
        return undefined;
      }
    }

    function failed(place: string, error: unknown): void {
      failures += 1;
      const message = 'A place where messages die could not be looked at';
      telemetry.log.error(message, { place, error: error as Error });
    }

    const places = (await read('the directory', async () => placesOf(await directory()))) ?? [];
    const holdings = await pMap(places, (place) => read(place.name, () => look(place)), {
      concurrency: QUEUES_AT_ONCE,
    });
    over.abort();
    // How many letters there are is known all the same.
    for (const holding of holdings) if (holding?.unread !== undefined) failed(holding.place, holding.unread);
    telemetry.count('WatchFailures', failures);
    report(
      telemetry,
      holdings.filter((holding) => holding !== undefined),
      clock.now(),
    );
  };
}

/** What was found; where only a part could be read, there are at least so many letters, and so little time. */
function report(telemetry: Telemetry, holdings: readonly Holding[], now: number): void {
  if (holdings.length === 0) return; // nothing is known
  const firstExpiryAt = Math.min(...holdings.map((holding) => holding.firstExpiryAt));
  const firstExpiryMs = Math.min(LETTER_LIFE_MAX_MS, Math.max(0, firstExpiryAt - now));
  const held = holdings.filter(({ letters }) => letters > 0);
  const letters = held.reduce((sum, holding) => sum + holding.letters, 0);
  telemetry.gauge('DeadLetters', letters);
  telemetry.duration('FirstDeadLetterExpiry', firstExpiryMs);
  if (letters === 0) return;
  const places = Object.fromEntries(held.map((holding) => [holding.place, holding.letters]));
  telemetry.log.warn('There are dead letters', { letters, firstExpiryMs, places });
}

function placesOf({ mailroom, consumers }: Directory): Place[] {
  return [
    { name: 'stream', url: mailroom.failureQueue },
    ...consumers.flatMap(({ name, deadLetterQueue, undeliveredQueue }) => [
      { name: `rule:${name}`, url: undeliveredQueue },
      { name: `consumer:${name}`, url: deadLetterQueue, rejectedBy: name },
    ]),
  ];
}
