/**
 * The queues port: what the sweep, the audit and an operator do to whole queues. A consumer's own port, which only changes
 * a message's visibility, is `queue.ts`.
 */
export interface Queues {
  /** How much a queue holds, and how long it keeps a message. Approximate, as SQS says. */
  depth(url: string): Promise<QueueDepth>;
  /**
   * Receives letters out of a queue that nothing else receives from, hiding them so that the next receive brings others.
   * Never on a queue that a consumer reads: each receive counts towards its `maxReceiveCount`.
   *
   * @param options.limit - at most this many
   * @param options.hideS - how long each stays hidden, seconds; {@link Queues.show} shows it at once. @default 30
   * @returns each once, oldest first
   */
  receive(url: string, options: { readonly limit: number; readonly hideS?: number }): Promise<Letter[]>;
  /** Shows a received letter again. One that is visible already is none the worse. */
  show(url: string, letter: Letter): Promise<void>;
  /** Sends a body. @returns the new message's id */
  send(url: string, body: string): Promise<string>;
  /** Deletes a received letter. One that somebody else has received since may stay: whoever acts on it must be able to repeat that. */
  remove(url: string, letter: Letter): Promise<void>;
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

/** A message of a queue where nobody works on it: a dead letter. */
export interface Letter {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  /** When SQS took it for the first time, epoch milliseconds. */
  readonly sentAt: number;
  /** Message attributes, as text: EventBridge says there why it could not deliver. */
  readonly attributes: Readonly<Record<string, string>>;
}
