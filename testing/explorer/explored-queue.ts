import type { SQSRecord } from 'aws-lambda';
import type { MemoryQueue } from '../memory-queue.ts';

/**
 * A standard queue at its worst: every receipt of a message stays valid until the message is deleted, and one message can be
 * delivered to two workers at once.
 *
 * According to the SQS documentation, a deletion with an old receipt handle succeeds although the message might not be deleted.
 * Here it is deleted, and a fault of the schedule can keep it. SQS does not document a visibility change with an old receipt
 * handle; here it applies to the message, regardless of the last receiver.
 */
export interface ExploredQueue extends Omit<MemoryQueue, 'receive'> {
  /** Receives visible messages and, if messages are delivered twice, one that another worker has. */
  receive(max: number): SQSRecord[];
  /** Returns true if the message of a receipt was delivered to two workers at once. */
  isSharedAtOnce(receiptHandle: string): boolean;
  /** The messages that were delivered twice, as part of the state. */
  sharedAtOnce(): readonly string[];
}

/** Creates the queue. @param twice - deliver each message to two workers at once on its first receive */
export function exploredQueue(memory: MemoryQueue, twice: boolean): ExploredQueue {
  const receipts = new Map<string, string>(); // the message of each receipt
  const latest = new Map<string, SQSRecord>(); // the last receive of each message
  const shared = new Set<string>();

  /** The corresponding receipt of the memory queue. */
  function current(receiptHandle: string): string {
    return latest.get(receipts.get(receiptHandle) ?? '')?.receiptHandle ?? receiptHandle;
  }

  /** A message in flight, received by another worker at the same time from a server that has not seen the first receive. */
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
