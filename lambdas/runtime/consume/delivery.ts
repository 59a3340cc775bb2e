import type { SQSRecord } from 'aws-lambda';
import type { Message } from './inbox-conditions.ts';

/** One receive of a message. */
export interface Delivery {
  readonly message: Message;
  readonly receiptHandle: string;
  /** How often SQS has handed it out, this time included. */
  readonly receives: number;
  /** When this invocation is stopped, epoch milliseconds. */
  readonly endsBy: number;
}

/** Whether a record can be answered for: a batch response names its failures by this id. */
export function hasMessageId(record: SQSRecord): boolean {
  return typeof record?.messageId === 'string' && record.messageId !== '';
}

/**
 * A record as it was received, before its body is read: its event id stands for a body that cannot be.
 *
 * @param endsBy - when this invocation is stopped, epoch milliseconds
 */
export function unreadDelivery(record: SQSRecord, endsBy: number): Delivery {
  const { messageId, receiptHandle } = record;
  return {
    message: { eventId: `unreadable-${messageId}`, messageId, sentAt: sentAtOf(record) },
    receiptHandle,
    receives: receivesOf(record),
    endsBy,
  };
}

/** How often SQS has handed it out. Where it does not say, it may be a repeat: then attempts are counted on. */
function receivesOf(record: SQSRecord): number {
  const receives = Number.parseInt(textOf(record.attributes?.ApproximateReceiveCount), 10);
  return Number.isSafeInteger(receives) && receives >= 1 ? receives : 2;
}

/** When SQS took it, epoch milliseconds; `undefined` when it does not say. */
function sentAtOf(record: SQSRecord): number | undefined {
  const sentAt = Number.parseInt(textOf(record.attributes?.SentTimestamp), 10);
  return Number.isSafeInteger(sentAt) && sentAt > 0 ? sentAt : undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
