import type { SQSRecord } from 'aws-lambda';
import type { MemoryQueue } from '../memory-queue.ts';

/**
 * A standard queue at its worst: every receipt of a message stays valid until the message is deleted, and one message can be
 * delivered to two workers at once.
 *
 * SQS documents that a deletion with an old receipt handle succeeds although the message might not be deleted: here it is
 * deleted, and a fault of the schedule keeps it. About a visibility change with an old receipt handle SQS says nothing: here it
 * applies to the message, whoever received it last.
 */
export interface ExploredQueue extends Omit<MemoryQueue, 'receive'> {
  /** Receives what is visible; where a message is delivered twice, also one that another worker has. */
  receive(max: number): SQSRecord[];
  /** Whether the message of a receipt was delivered to two workers at once. */
  isSharedAtOnce(receiptHandle: string): boolean;
  /** Which messages were delivered twice: a part of the state. */
  sharedAtOnce(): readonly string[];
}

/** Makes the queue. @param twice - whether each message is delivered to two workers at once, the first time it is received */
export function exploredQueue(memory: MemoryQueue, twice: boolean): ExploredQueue {
  const receipts = new Map<string, string>(); // the message of each receipt
  const latest = new Map<string, SQSRecord>(); // the last receive of each message
  const shared = new Set<string>();

  /** The receipt that the memory queue knows. */
  function current(receiptHandle: string): string {
    return latest.get(receipts.get(receiptHandle) ?? '')?.receiptHandle ?? receiptHandle;
  }

  /** A message in flight as another worker receives it at the same time: from a server that does not know of the first receive. */
  function again(record: SQSRecord): SQSRecord {
    const receiptHandle = `${record.receiptHandle} again`;
    shared.add(record.messageId);
    receipts.set(receiptHandle, record.messageId);
    return { ...record, receiptHandle };
  }

  function receive(max: number): SQSRecord[] {
    const records = memory.receive(max);
    for (const record of records) {
      receipts.set(record.receiptHandle, record.messageId);
      latest.set(record.messageId, record);
    }
    if (records.length > 0 || !twice) return records;
    const inFlight = new Set(memory.messages().map(({ messageId }) => messageId));
    return [...latest.values()]
      .filter(({ messageId }) => inFlight.has(messageId) && !shared.has(messageId))
      .slice(0, max)
      .map(again);
  }

  return {
    ...memory,
    receive,
    delete: (receiptHandle) => memory.delete(current(receiptHandle)),
    changeVisibility: (receiptHandle, seconds) => memory.changeVisibility(current(receiptHandle), seconds),
    isSharedAtOnce: (receiptHandle) => shared.has(receipts.get(receiptHandle) ?? ''),
    sharedAtOnce: () => [...shared],
  };
}
