import pMap from 'p-map';
import { errorCode } from '../errors.ts';
import { parseJson } from '../json-depth.ts';
import { deliveredEventId } from './delivered-event.ts';
import type { ConsumerEntry, Directory } from './directory.ts';
import type { QueueDepth, QueueMessage, Queues } from './queues.ts';

/** A queue of one consumer's dead letters: events that its rule could not deliver (`rule`), or messages that it rejected (`consumer`). */
export interface ConsumerDeadLetters {
  /** `rule:<consumer>` or `consumer:<consumer>`. */
  readonly name: string;
  readonly kind: 'rule' | 'consumer';
  readonly url: string;
  readonly consumer: ConsumerEntry;
}

/** The batches that the mapping of the table's stream discarded. */
interface StreamDeadLetters {
  readonly name: 'stream';
  readonly kind: 'stream';
  readonly url: string;
}

/** A queue of dead letters. */
export type DeadLetterQueue = ConsumerDeadLetters | StreamDeadLetters;

/** Every queue of dead letters of a Mailroom, in the order of the flow. */
export function deadLetterQueues({ mailroom, consumers }: Directory): DeadLetterQueue[] {
  return [
    { name: 'stream', kind: 'stream', url: mailroom.failureQueue },
    ...consumers.map(undeliveredTo),
    ...consumers.map(rejectedBy),
  ];
}

/** Where a rule leaves events that it could not put into the consumer's queue. */
export function undeliveredTo(consumer: ConsumerEntry): ConsumerDeadLetters {
  return { name: `rule:${consumer.name}`, kind: 'rule', url: consumer.undeliveredQueue, consumer };
}

/** Where SQS moves the messages that a consumer rejected. */
export function rejectedBy(consumer: ConsumerEntry): ConsumerDeadLetters {
  return { name: `consumer:${consumer.name}`, kind: 'consumer', url: consumer.deadLetterQueue, consumer };
}

/** A dead-letter message, and what it says about itself. */
interface DeadLetterMessage {
  /** As SQS handed it out. */
  readonly received: QueueMessage;
  /** The event's id, read as a consumer reads it; absent where that finds no whole envelope, and of a batch of the stream. */
  readonly eventId: string | undefined;
  /** The event's type; absent where the body does not say it. */
  readonly type: string | undefined;
  /** Why it was not delivered: EventBridge's error, or the mapping's condition; the cause of a rejection is on its inbox row. */
  readonly cause: string | undefined;
  /** When it is permanently deleted, epoch milliseconds. */
  readonly expiresAt: number;
}

/** Some of the dead letters of a queue. */
export interface DeadLetters {
  /** Oldest first. */
  readonly deadLetters: readonly DeadLetterMessage[];
  /** How many there are in all; approximate, as SQS's counts are. */
  readonly total: number;
}

/** How many dead letters are made visible again at once. */
const SHOWN_AT_ONCE = 16;

/**
 * Reads dead letters of a queue and puts them back. Each receive counts on them, which is harmless: a dead-letter queue has no
 * redrive policy. A queue that does not exist holds none.
 *
 * @param options.limit - at most this many
 * @param options.hideS - how long they stay hidden from others if putting them back fails, seconds
 *
 * @example
 * ```ts
 * const { deadLetters, total } = await peekDeadLetters(queues, rejectedBy(consumer), { limit: 10, hideS: 15 });
 * ```
 */
export async function peekDeadLetters(
  queues: Pick<Queues, 'depth' | 'receive' | 'show'>,
  queue: DeadLetterQueue,
  options: { readonly limit: number; readonly hideS: number },
): Promise<DeadLetters> {
  const { waiting, inFlight, retentionMs } = (await depthOf(queues, queue.url)) ?? NO_QUEUE;
  const total = waiting + inFlight;
  if (total === 0) return { deadLetters: [], total };
  const received = await queues.receive(queue.url, options);
  await pMap(received, (letter) => queues.show(queue.url, letter), { concurrency: SHOWN_AT_ONCE });
  return { deadLetters: received.map((letter) => readDeadLetter(queue, letter, retentionMs)), total };
}

/** What a dead-letter message says about itself. @param retentionMs - of its queue */
export function readDeadLetter(
  { kind }: Pick<DeadLetterQueue, 'kind'>,
  received: QueueMessage,
  retentionMs: number,
): DeadLetterMessage {
  const { attributes, body, sentAt } = received;
  const letter = { received, expiresAt: sentAt + retentionMs };
  const { 'detail-type': type, requestContext } = objectOf(body) as Partial<Record<string, unknown>>;
  if (kind === 'stream') {
    // Lambda developer guide, "Discarding records".
    const { condition } = { ...(requestContext as object | undefined) } as { condition?: unknown };
    return { ...letter, eventId: undefined, type: undefined, cause: textOf(condition) };
  }
  // Only EventBridge writes these message attributes (EventBridge user guide).
  const { ERROR_CODE, ERROR_MESSAGE } = attributes;
  const refusal = [ERROR_CODE, ERROR_MESSAGE].filter(Boolean).join(': ') || undefined;
  return {
    ...letter,
    eventId: deliveredEventId(body),
    type: textOf(type),
    cause: kind === 'rule' ? refusal : undefined,
  };
}

const NO_QUEUE = { waiting: 0, inFlight: 0, retentionMs: 0 };

/** What a queue holds; `undefined` when it does not exist. */
export async function depthOf(queues: Pick<Queues, 'depth'>, url: string): Promise<QueueDepth | undefined> {
  try {
    return await queues.depth(url);
  } catch (error) {
    if (/QueueDoesNotExist|NonExistentQueue/.test(errorCode(error))) return undefined;
    throw error;
  }
}

/** An object out of a body, whatever it is. */
function objectOf(body: string): object {
  try {
    const value = parseJson(body);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
