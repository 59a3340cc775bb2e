import type { Duration, RemovalPolicy } from 'aws-cdk-lib';
import type { BundlingOptions } from 'aws-cdk-lib/aws-lambda-nodejs';
import type { EventRef } from '../lambdas/runtime/event.ts';
import type { ConsumerSlo } from './consumer-slo.ts';
import type { EarlierName } from './fixed-name.ts';
import type { Mailroom } from './mailroom.ts';

/** What an `InboxConsumer` needs, and what may be chosen about it. */
export interface InboxConsumerProps {
  /** The Mailroom whose events it sees, and whose table holds its inbox. */
  readonly mailroom: Mailroom;
  /**
   * Its name: part of the keys of its inbox rows, so a deploy that changes it is refused unless `movedFrom` states it. Lower-case
   * letters, digits, hyphens.
   */
  readonly name: string;
  /**
   * The names that it had before, oldest first: they stay here for good. Under another name its inbox is empty. Before you add
   * one, read "Renaming a consumer" in docs/deploying.md.
   *
   * @default it always had this name
   */
  readonly movedFrom?: readonly EarlierName[];
  /** The service it belongs to: the `source` of the events that its handlers publish. */
  readonly service: string;
  /**
   * The events that it subscribes to: definitions of the catalogue, or `{ source, type }` where the catalogue is not at hand.
   * It gets exactly these: an event of the same type from another service does not reach it.
   */
  readonly events: readonly EventRef[];
  /**
   * The events that its handlers publish: definitions of the catalogue or `{ source, type }`, each owned by `service`. Without
   * any it has no right to the outbox, and `ctx.commit` refuses an event that is not listed (`NOT_DECLARED`).
   *
   * @default none
   */
  readonly publishes?: readonly EventRef[];
  /** The file that exports `handler`, made by `lambdaConsumer`, from the folder in which `cdk` runs. */
  readonly entry: string;
  /** The partition keys of the rows that its handlers write, with `*` for the rest. @default none */
  readonly domainKeys?: readonly string[];
  /** Environment variables besides those that Mailroom sets. @default none */
  readonly environment?: Readonly<Record<string, string>>;
  /** Memory, and with it the share of a CPU, in MB. @default 512 */
  readonly memoryMb?: number;
  /** How its function is bundled, as for a `ServiceFunction`. @default as there */
  readonly bundling?: BundlingOptions;
  /** The longest run of the function. @default 30 seconds */
  readonly timeout?: Duration;
  /**
   * How long a claim holds a message unless renewed, 3 seconds at least; at most the visibility timeout.
   *
   * @default 30 seconds, or the visibility timeout if that is less
   */
  readonly lease?: Duration;
  /**
   * How long SQS hides a received message; at least the timeout.
   *
   * @default 6 times the timeout, AWS's advice; 3 minutes at least
   */
  readonly visibilityTimeout?: Duration;
  /** How often, and after which delays, a message is tried again whose handler fails. @default 10 attempts over 35 to 72 minutes */
  readonly retry?: RetryOptions;
  /**
   * The longest outage of the consumer's own infrastructure that a message survives: its table cannot be reached, or its
   * function does not start. It counts no attempt, but each receive counts towards SQS's `maxReceiveCount`, which follows from
   * it. A rejected message takes as many quick receives to reach its dead-letter queue.
   *
   * @default 4 hours
   */
  readonly outageTolerance?: Duration;
  /** The most messages of one invocation, 1 to 10. @default 10 */
  readonly batchSize?: number;
  /**
   * The most invocations at a time, 2 to 1,000. It bounds what a runaway costs, and what it takes from the account's other functions.
   *
   * @default 100, a tenth of the concurrency that an account has at first (Lambda quotas: 1,000)
   */
  readonly maxConcurrency?: number;
  /** How long the queue keeps a message. @default 14 days */
  readonly queueRetention?: Duration;
  /** How long the dead-letter queue keeps a message, from its first send. @default 14 days */
  readonly deadLetterRetention?: Duration;
  /**
   * How long a processed inbox row is kept, in whole days; at least both queues' retentions and the bus's archive.
   *
   * @default 35 days, or what the queues and the archive need if that is more
   */
  readonly inboxRetention?: Duration;
  /** How soon its events must be processed; `DeliveryAlarms` watches it. @default nothing is promised */
  readonly slo?: ConsumerSlo;
  /**
   * What becomes of the queues and the logs when the stack is deleted, or a queue replaced. A kept queue keeps its
   * name: to deploy the consumer again, import it or delete it first.
   *
   * @default RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;
}

/** The retry schedule of a consumer. Each delay is four times the one before; half of it is jitter. */
export interface RetryOptions {
  /** After how many attempts a message is rejected, 1 to 100. @default 10 */
  readonly attempts?: number;
  /** The longest delay before the second attempt, 1 second at least. @default 2 seconds */
  readonly first?: Duration;
  /** The longest delay between two attempts, at least `first`; 11 hours at most. @default 15 minutes */
  readonly longest?: Duration;
}
