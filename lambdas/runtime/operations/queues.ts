/**
 * The queues port: what the sweep, the audit and an operator do to whole queues. A consumer's own port, which only changes
 * a message's visibility, is `queue.ts`.
 */
export interface Queues {
  /** How much a queue holds, and how long it keeps a message. Approximate, as SQS says. */
  depth(url: string): Promise<QueueDepth>;
  /**
   * Receives messages from a queue that nothing else receives from, hiding them so that the next receive brings others.
   * Never on a queue that a consumer reads: each receive counts towards its `maxReceiveCount`.
   *
   * @param options.limit - at most this many
   * @param options.hideS - how long each stays hidden, seconds; {@link Queues.show} shows it at once. @default 30
   * @returns each once, oldest first
   */
  receive(url: string, options: { readonly limit: number; readonly hideS?: number }): Promise<QueueMessage[]>;
  /** Makes a received message visible again; nothing changes if it is visible already. */
  show(url: string, message: QueueMessage): Promise<void>;
  /** Sends a body. @returns the new message's id */
  send(url: string, body: string): Promise<string>;
  /** Deletes a received message. It may stay if it was received again since, so the caller's action must be repeatable. */
  remove(url: string, message: QueueMessage): Promise<void>;
}

/** What a queue holds. */
export interface QueueDepth {
  readonly arn: string;
  /** Messages that a receive could return now. */
  readonly waiting: number;
  /** Received and hidden, or delayed. */
  readonly inFlight: number;
  /** How long a message is kept from its first send, milliseconds. Moving it to a dead-letter queue does not start it anew. */
  readonly retentionMs: number;
}

/** A message that was received from a queue. */
export interface QueueMessage {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  /** When SQS took it for the first time, epoch milliseconds. */
  readonly sentAt: number;
  /** Message attributes, as text: EventBridge says there why it could not deliver. */
  readonly attributes: Readonly<Record<string, string>>;
}
