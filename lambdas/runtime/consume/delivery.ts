import type { SQSRecord } from 'aws-lambda';
import type { Message } from '../store/inbox.ts';
import { type DeliveredEvent, readDelivered } from './message.ts';

/** One receive of a message. */
export interface Delivery {
  readonly message: Message;
  readonly receiptHandle: string;
  /** How often SQS has handed it out, this time included. */
  readonly receives: number;
  /** When this invocation began, epoch milliseconds. */
  readonly beganAt: number;
  /** When this invocation is stopped, epoch milliseconds. */
  readonly endsBy: number;
  /** What it says; or why it cannot be read. */
  readonly content: DeliveredEvent | { readonly problem: unknown };
}

/** Whether a record can be answered for: a batch response names its failures by this id. */
export function hasMessageId(record: SQSRecord): boolean {
  return typeof record?.messageId === 'string' && record.messageId !== '';
}

/**
 * A record as it was received. Where its body cannot be read, an event id made of the message's stands for the one inside.
 *
 * @param invocation - when it began, and when it is stopped, epoch milliseconds
 */
export function readDelivery(record: SQSRecord, invocation: Pick<Delivery, 'beganAt' | 'endsBy'>): Delivery {
  const { messageId, receiptHandle } = record;
  const common = { ...invocation, receiptHandle, receives: receivesOf(record) };
  const message = { messageId, sentAt: sentAtOf(record) };
  try {
    const content = readDelivered(record);
    const { eventId, type } = content.envelope;
    return { ...common, message: { ...message, eventId, type }, content };
  } catch (problem) {
    return {
      ...common,
      message: { ...message, eventId: `unreadable-${messageId}` },
      content: { problem },
    };
  }
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
