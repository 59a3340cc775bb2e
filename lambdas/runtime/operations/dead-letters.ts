import pMap from 'p-map';
import { errorCode } from '../base/errors.ts';
import { parseJson, textOf } from '../base/json.ts';
import { deliveredIdentity } from './delivered-event.ts';
import type { ConsumerEntry, Directory } from './directory.ts';
import type { QueueDepth, QueueMessage, Queues } from './queues.ts';
import { externalEventsOf } from './subscribed-events.ts';

/** A dead-letter source of one consumer: events that its rule could not deliver (`rule`), or messages that it rejected (`consumer`). */
export interface ConsumerDeadLetters {
  /** `rule:<consumer>` or `consumer:<consumer>`. */
  readonly name: string;
  readonly kind: 'rule' | 'consumer';
  readonly url: string;
  readonly consumer: ConsumerEntry;
}

/** The batches that the table's stream mapping discarded. */
interface StreamDeadLetters {
  readonly name: 'stream';
  readonly kind: 'stream';
  readonly url: string;
}

/** A dead-letter source. */
export type DeadLetterQueue = ConsumerDeadLetters | StreamDeadLetters;

/** Returns all dead-letter sources of a Mailroom, in the order of the flow. */
export function deadLetterQueues({ mailroom, consumers }: Directory): DeadLetterQueue[] {
  return [
    { name: 'stream', kind: 'stream', url: mailroom.failureQueue },
    ...consumers.flatMap(undeliveredTo),
    ...consumers.map(rejectedBy),
  ];
}

/** The dead-letter sources of one consumer. */
export function deadLettersTo(consumer: ConsumerEntry): ConsumerDeadLetters[] {
  return [rejectedBy(consumer), ...undeliveredTo(consumer)];
}

/** The queue for events that a rule could not deliver to the consumer's queue; none if the consumer has an existing queue. */
function undeliveredTo(consumer: ConsumerEntry): ConsumerDeadLetters[] {
  const { name, undeliveredQueue: url } = consumer;
  return url === undefined ? [] : [{ name: `rule:${name}`, kind: 'rule', url, consumer }];
}

/** The queue to which SQS moves messages that a consumer rejected. */
export function rejectedBy(consumer: ConsumerEntry): ConsumerDeadLetters {
  return { name: `consumer:${consumer.name}`, kind: 'consumer', url: consumer.deadLetterQueue, consumer };
}

/** A dead-letter message with the details from its body and attributes. */
export interface DeadLetterMessage {
  /** The message as received from SQS. */
  readonly received: QueueMessage;
  /** The event's id, read as a consumer reads it; absent if the envelope is incomplete, and for a batch of the stream. */
  readonly eventId: string | undefined;
  /** The event's type; absent if the body does not contain it. */
  readonly type: string | undefined;
  /** The reason for the failed delivery: EventBridge's error or the mapping's condition; for a rejection, see its inbox row. */
  readonly cause: string | undefined;
  /** The time at which it is permanently deleted, epoch milliseconds. */
  readonly expiresAt: number;
}

/** Some of the dead letters of a queue. */
export interface DeadLetters {
  /** Oldest first. */
  readonly deadLetters: readonly DeadLetterMessage[];
  /** The total number of dead letters; approximate, as SQS's counts are. */
  readonly total: number;
}

/** The number of dead letters made visible again concurrently. */
const SHOWN_AT_ONCE = 16;

/**
 * Reads dead letters of a queue and makes them visible again. Each receive increases their receive count, which is harmless: a
 * dead-letter queue has no redrive policy. A queue that does not exist counts as empty.
 *
 * @param options.limit - the maximum number of dead letters
 * @param options.hideS - the time for which they stay hidden from other readers if making them visible fails, seconds
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

/** Reads the details of a dead-letter message. @param retentionMs - the retention of its queue */
export function readDeadLetter(
  source: Pick<DeadLetterQueue, 'kind'> & { readonly consumer?: ConsumerEntry },
  received: QueueMessage,
  retentionMs: number,
): DeadLetterMessage {
  const { attributes, body, sentAt } = received;
  const letter = { received, expiresAt: sentAt + retentionMs };
  const { 'detail-type': type, requestContext } = objectOf(body) as Partial<Record<string, unknown>>;
  if (source.kind === 'stream') {
    // Lambda developer guide, "Discarding records".
    const { condition } = { ...(requestContext as object | undefined) } as { condition?: unknown };
    return { ...letter, eventId: undefined, type: undefined, cause: textOf(condition) };
  }
  // Only EventBridge writes these message attributes (EventBridge user guide).
  const { ERROR_CODE, ERROR_MESSAGE } = attributes;
  const refusal = [ERROR_CODE, ERROR_MESSAGE].filter(Boolean).join(': ') || undefined;
  const read = deliveredIdentity(body, source.consumer && externalEventsOf(source.consumer));
  return {
    ...letter,
    eventId: read?.eventId,
    type: textOf(type) ?? read?.type,
    cause: source.kind === 'rule' ? refusal : undefined,
  };
}

const NO_QUEUE = { waiting: 0, inFlight: 0, retentionMs: 0 };

/** Returns a queue's depth; `undefined` if the queue does not exist. */
export async function depthOf(queues: Pick<Queues, 'depth'>, url: string): Promise<QueueDepth | undefined> {
  try {
    return await queues.depth(url);
  } catch (error) {
    if (/QueueDoesNotExist|NonExistentQueue/.test(errorCode(error))) return undefined;
    throw error;
  }
}

/** Parses a body as an object; any other content gives an empty object. */
function objectOf(body: string): object {
  try {
    const value = parseJson(body);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
