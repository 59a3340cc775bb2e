/**
 * The queues port: the operations of the sweep, the audit and an operator on whole queues. A consumer's own port, which only
 * changes a message's visibility, is `queue.ts`.
 */
export interface Queues {
  /** Returns a queue's number of messages and its retention. The numbers are approximate, as SQS's are. */
  depth(url: string): Promise<QueueDepth>;
  /**
   * Receives messages from a queue without another receiver, and hides them so that the next receive returns others. Never call it
   * on a queue that a consumer reads: each receive counts towards its `maxReceiveCount`.
   *
   * @param options.limit - the maximum number of messages
   * @param options.hideS - the time for which each stays hidden, seconds; {@link Queues.show} ends it early. @default 30
   * @returns the messages without duplicates, oldest first
   */
  receive(url: string, options: { readonly limit: number; readonly hideS?: number }): Promise<QueueMessage[]>;
  /** Makes a received message visible again; does nothing if it is already visible. */
  show(url: string, message: QueueMessage): Promise<void>;
  /** Sends a body. @returns the new message's id */
  send(url: string, body: string): Promise<string>;
  /** Deletes a received message. It may stay if it was received again since, so your action must be repeatable. */
  remove(url: string, message: QueueMessage): Promise<void>;
}

/** The depth of a queue. */
export interface QueueDepth {
  readonly arn: string;
  /** Messages that a receive could return now. */
  readonly waiting: number;
  /** Messages that are hidden after a receive, or delayed. */
  readonly inFlight: number;
  /** The retention of a message from its first send, milliseconds. A move to a dead-letter queue does not restart it. */
  readonly retentionMs: number;
}

/** A message received from a queue. */
export interface QueueMessage {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  /** The time at which SQS first received it, epoch milliseconds. */
  readonly sentAt: number;
  /** The times that SQS has returned it, in its source queue and here; approximate. @default unknown */
  readonly receives?: number | undefined;
  /** Message attributes, as text: EventBridge stores its delivery error in them. */
  readonly attributes: Readonly<Record<string, string>>;
}
