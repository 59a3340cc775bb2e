import type { SQSRecord } from 'aws-lambda';
import { errorMessage, isMailroomError } from '../base/errors.ts';
import { textOf } from '../base/json.ts';
import { DAY_MS } from '../base/units.ts';
import { isHeartbeat } from '../events/heartbeat-event.ts';
import type { Message } from '../inbox/inbox.ts';
import { unreadableId } from '../store/event-id.ts';
import { type DeliveredEvent, type ExternalReading, readDelivered } from './message.ts';

/** One receive of a message. */
export interface Delivery {
  readonly message: Message;
  /** As SQS delivered it. */
  readonly body: string;
  readonly receiptHandle: string;
  /** The number of times SQS has delivered the message, including this one. */
  readonly receives: number;
  /** The start of this invocation, epoch milliseconds. */
  readonly beganAt: number;
  /** The time at which this invocation is stopped, epoch milliseconds. */
  readonly endsBy: number;
  /** The event, the reason why it cannot be read, or the reason why the message contains no event, e.g. a test message of S3. */
  readonly content: DeliveredEvent | { readonly problem: unknown } | { readonly skipped: string };
}

/** A record of SQS, or a message of another source as one. */
export type DeliveredRecord = SQSRecord & {
  /** The reason why its body cannot be read, if its source knows it. */
  readonly problem?: unknown;
  /** The remedy for a body that is not JSON. @default for a message in a queue */
  readonly remedy?: string | undefined;
};

/** Returns true if a record can be named in a batch response, which lists failures by this id. */
export function hasMessageId(record: SQSRecord): boolean {
  return typeof record?.messageId === 'string' && record.messageId !== '';
}

/** Returns true for a heartbeat, which the consumer's metrics of messages and of latency exclude. */
export function deliversHeartbeat({ content }: Delivery): boolean {
  return 'bus' in content && isHeartbeat(content.bus);
}

/**
 * Reads a received record. If its body is unreadable, an id derived from the body replaces the one inside.
 *
 * @param invocation - its start and the time at which it is stopped, epoch milliseconds
 * @param subscriptions - the consumer's external events
 */
export function readDelivery(
  record: DeliveredRecord,
  invocation: Pick<Delivery, 'beganAt' | 'endsBy'>,
  subscriptions: ExternalReading['subscriptions'],
): Delivery {
  const { messageId, receiptHandle, body } = record;
  const common = { ...invocation, body, receiptHandle, receives: receivesOf(record) };
  const message = { messageId, sentAt: sentAtOf(record, invocation.beganAt) };
  try {
    const arrivedAt = message.sentAt ?? invocation.beganAt;
    if (record.problem !== undefined) throw record.problem;
    const content = readDelivered(record, { subscriptions, arrivedAt, remedy: record.remedy });
    const { eventId, type } = content.envelope;
    return { ...common, message: { ...message, eventId, type }, content };
  } catch (problem) {
    return {
      ...common,
      message: { ...message, eventId: unreadableId(textOf(body) ?? messageId) },
      content: isMailroomError(problem, 'NO_EVENT') ? { skipped: errorMessage(problem) } : { problem },
    };
  }
}

/** The number of deliveries. If SQS does not report it, the message may be a repeat, so its attempts are counted. */
function receivesOf(record: SQSRecord): number {
  const receives = Number.parseInt(textOf(record.attributes?.ApproximateReceiveCount) ?? '', 10);
  return Number.isSafeInteger(receives) && receives >= 1 ? receives : 2;
}

/**
 * The time at which the source received the message, epoch milliseconds; `undefined` if it does not report one. Some sources pass on what the
 * sender wrote: a time that is more than a day ahead is not known either.
 */
function sentAtOf(record: SQSRecord, now: number): number | undefined {
  const sentAt = Number.parseInt(textOf(record.attributes?.SentTimestamp) ?? '', 10);
  return sentAt > 0 && sentAt <= now + DAY_MS ? sentAt : undefined;
}
