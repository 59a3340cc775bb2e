import type { Duration, RemovalPolicy } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { Alias, AliasOptions, Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { BundlingOptions } from 'aws-cdk-lib/aws-lambda-nodejs';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { EventOrder } from '../../lambdas/runtime/base/order.ts';
import type { Subscription } from '../../lambdas/runtime/events/data-filter.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import type { PassedFunctionProps } from '../functions/function-props.ts';
import type { ConsumerSlo } from '../mailroom/consumer-interface.ts';
import type { IMailroom } from '../mailroom/mailroom-base.ts';
import type { BridgeDestination } from './bridge-destination.ts';
import type { EarlierName } from './fixed-name.ts';

/**
 * Properties of an `InboxConsumer`: first those that nearly every consumer has, then three groups, then the rare ones.
 *
 * | group | for |
 * | --- | --- |
 * | `function` | the function that runs the handlers: its timeout, memory and environment, or an existing one |
 * | `queue` | the queue in front of it: batches, concurrency, retention, or an existing one |
 * | `retry` | the attempts and delays of a message whose handler fails, and the outage that it survives |
 *
 * @example
 * ```ts
 * new InboxConsumer(this, 'Payments', {
 *   mailroom,
 *   name: 'payments',
 *   service: 'payments',
 *   events: [OrderPlaced],
 *   entry: 'src/payments.ts',
 *   function: { timeout: Duration.minutes(1), environment: { BANK: bank.url } },
 *   queue: { maxConcurrency: 10 },
 *   retry: { maxAttempts: 5 },
 * });
 * ```
 */
export interface InboxConsumerProps {
  /** The Mailroom whose table holds its inbox, and whose bus carries its events; of this app, or from `Mailroom.fromTableName`. */
  readonly mailroom: IMailroom;
  /**
   * Its name: lower-case letters, digits and hyphens. It is part of the keys of the inbox rows, so a deployment that changes it
   * fails unless `movedFrom` declares the change.
   */
  readonly name: string;
  /** The service it belongs to: the `source` of the events that its handlers publish. */
  readonly service: string;
  /**
   * The events that it subscribes to: definitions of the catalog, or `{ source, type }` if the catalog cannot be imported; with
   * `subscribe`, only those whose payload a filter matches. It receives exactly these: an event of the same type from another
   * service does not reach it. Definitions made by `externalEvent` are events of other systems, which arrive on `externalBus` or in
   * `queue.existing`.
   */
  readonly events: readonly Subscription[];
  /**
   * The events that its handlers publish: definitions of the catalog or `{ source, type }`, each owned by `service`. Without
   * any, the function can only cancel scheduled events. `ctx.commit` refuses events that are not listed (`NOT_DECLARED`).
   *
   * @default none
   */
  readonly publishes?: readonly EventRef[];
  /** Partition keys of the rows that its handlers write, with `*` as a trailing wildcard. @default none */
  readonly domainKeys?: readonly string[];
  /**
   * Path of the file that exports the `handler` made by `lambdaConsumer`, relative to the folder in which `cdk` runs. The consumer
   * creates the function.
   *
   * @default an existing function: `function.existing`
   */
  readonly entry?: string;
  /**
   * The order in which it applies the events whose definitions declare `sequence`, per aggregate. `strict()` needs every such event of the
   * aggregate in `events`, without a filter, as definitions; with `latest()`, older events are absorbed. Other events have no order.
   *
   * @default events are applied as they arrive, unless a handler has its own `order`
   */
  readonly order?: EventOrder;
  /** The function: its timeout, memory, environment, VPC, alias, …, or an existing one. @default 30 seconds, 512 MB, arm64, Node.js 24 */
  readonly function?: ConsumerFunctionProps;
  /** The queue: its batches, concurrency and retentions, or an existing one. @default a new queue, batches of 10, 100 at once, 14 days */
  readonly queue?: ConsumerQueueProps;
  /** Attempts and delays for a message whose handler fails. @default 10 attempts over 35 to 72 minutes, and an outage of 4 hours */
  readonly retry?: RetryOptions;
  /** The latency objective for its events; `DeliveryAlarms` watches it. @default no SLO */
  readonly slo?: ConsumerSlo;
  /**
   * The removal policy of the queues and the logs, for a deleted stack or a replaced queue. A retained queue keeps its name: to
   * deploy the consumer again, import it or delete it first.
   *
   * @default RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;
  /**
   * The target of a bridge: a queue, topic or stream to which its handlers, made by `bridge` of `cdk-mailroom/bridge`, send. The function
   * gets the right to send and the address; `describe`, `status` and the web console show the target.
   *
   * @default the consumer is not a bridge
   */
  readonly forwardsTo?: BridgeDestination;
  /**
   * The bus on which its external events arrive, e.g. a partner event bus. Their rule sends to the same queue.
   * The bus must be in the same account and region.
   *
   * @default the account's default bus, on which AWS services publish
   */
  readonly externalBus?: IEventBus;
  /**
   * The time that a claim holds a message unless it is renewed: at least 3 seconds, at most the visibility timeout.
   *
   * @default 30 seconds, or the visibility timeout if that is shorter
   */
  readonly lease?: Duration;
  /**
   * The retention of a processed inbox row, in whole days; at least the sum of both queues' retentions and the bus's archive.
   *
   * @default 35 days, or that sum if it is longer
   */
  readonly inboxRetention?: Duration;
  /**
   * Its earlier names, oldest first; keep them here permanently. The inbox of a new name is empty: before you add an entry, read
   * "Renaming a consumer" in docs/deploying.md. A consumer with external events cannot have any: their ids have no time that would
   * show which of them were processed under an earlier name.
   *
   * @default no earlier names
   */
  readonly movedFrom?: readonly EarlierName[];
}

/**
 * The function of a consumer: the settings of the one that is made from `entry`, or an existing function.
 *
 * @example
 * ```ts
 * const ownFunction: ConsumerFunctionProps = { memoryMb: 1_024, environment: { BANK: bank.url }, vpc };
 * ```
 */
export interface ConsumerFunctionProps extends PassedFunctionProps {
  /** The function's timeout. @default 30 seconds, or that of `existing` */
  readonly timeout?: Duration;
  /** Memory in MB; the CPU share is proportional to it. @default 512 */
  readonly memoryMb?: number;
  /** Environment variables in addition to those that Mailroom sets. @default none */
  readonly environment?: Readonly<Record<string, string>>;
  /** Bundling options, as for a `ServiceFunction`. @default as for a `ServiceFunction` */
  readonly bundling?: BundlingOptions;
  /**
   * An existing function whose handler is made by `lambdaConsumer`, or an alias of one, which the mapping then invokes. It gets
   * environment variables, permissions and the mapping of the queue. It must be in the consumer's stack, with a timeout and a role
   * created there, and can serve one consumer.
   *
   * @default a function is made from `entry`
   */
  readonly existing?: LambdaFunction | Alias;
  /**
   * An alias of the function, for provisioned concurrency or gradual deployments. The mapping of the queue invokes it.
   *
   * @default no alias
   */
  readonly alias?: ConsumerAlias;
  /**
   * Compares the handlers with `events` whenever the function is bundled: the bundle is imported in another process, with
   * `environment` but without credentials and Lambda's own variables, for up to 20 s. Code at the top level of its modules runs. An
   * event without a handler fails the synth; a handler without an event, or a bundle that cannot be imported, only causes a warning.
   *
   * @default true
   */
  readonly checkHandlers?: boolean;
}

/**
 * The retry schedule of a consumer. Each delay is four times the previous one; half of it is jitter.
 *
 * @example
 * ```ts
 * const retry: RetryOptions = { maxAttempts: 5, longest: Duration.minutes(5) };
 * ```
 */
export interface RetryOptions {
  /** The number of attempts after which a message is rejected, 1 to 100. @default 10 */
  readonly maxAttempts?: number;
  /** The longest delay before the second attempt, at least 1 second. @default 2 seconds */
  readonly first?: Duration;
  /** The longest delay between two attempts, from `first` to 11 hours. @default 15 minutes */
  readonly longest?: Duration;
  /**
   * The longest outage of the consumer's own infrastructure that a message survives: the table cannot be reached, or the function
   * does not start. An outage counts no attempt, but each receive counts towards SQS's `maxReceiveCount`, which is derived from
   * this. A rejected message needs the same number of quick receives to reach its dead-letter queue.
   *
   * @default 4 hours
   */
  readonly outageTolerance?: Duration;
}

/**
 * An alias of a consumer's function. The mapping of the queue invokes the alias instead of the latest code.
 *
 * @example
 * ```ts
 * const alias: ConsumerAlias = { aliasName: 'live', provisionedConcurrentExecutions: 2 };
 * ```
 */
export interface ConsumerAlias
  extends Pick<AliasOptions, 'additionalVersions' | 'description' | 'provisionedConcurrentExecutions'> {
  /** Its name, e.g. `live`. */
  readonly aliasName: string;
}

/**
 * The queue of a consumer and its mapping to the function: the settings of a new one, or an existing queue.
 *
 * @example
 * ```ts
 * const queue: ConsumerQueueProps = { batchSize: 1, maxConcurrency: 10, visibilityTimeout: Duration.minutes(10) };
 * ```
 */
export interface ConsumerQueueProps {
  /** The maximum number of messages per invocation, 1 to 10. @default 10 */
  readonly batchSize?: number;
  /**
   * The time that Lambda gathers messages before it invokes the function, in whole seconds up to 5 minutes. A window makes batches
   * of rare events larger, so they cost less, and delays each message by up to its length.
   *
   * @default no window
   */
  readonly batchingWindow?: Duration;
  /**
   * The maximum number of concurrent invocations, 2 to 1,000. It limits the cost of a runaway, and the concurrency taken from the
   * account's other functions.
   *
   * @default 100, a tenth of a new account's concurrency (Lambda quotas: 1,000); the function's reserved concurrency if that is lower
   */
  readonly maxConcurrency?: number;
  /**
   * The time that SQS hides a received message; at least `function.timeout`.
   *
   * @default 6 times the timeout, as AWS advises, but at least 3 minutes and at most 75 minutes more than the timeout
   */
  readonly visibilityTimeout?: Duration;
  /** The retention of the queue. @default 14 days */
  readonly retention?: Duration;
  /** The retention of the dead-letter queue, counted from the first send of a message. @default 14 days */
  readonly deadLetterRetention?: Duration;
  /**
   * The path of the tenant in a Mailroom event, e.g. `$.detail.data.tenantId` or `$.detail.aggregateId`: a text of up to 128 ASCII letters, digits
   * and punctuation marks in every event of `events`. SQS then delivers the messages of other tenants first while one tenant fills the
   * queue. External events have no tenant.
   *
   * @default messages are delivered whatever their tenant
   */
  readonly fairBy?: string;
  /**
   * The delay of each message: whole seconds, up to 15 minutes, and shorter than the interval between heartbeats. It counts towards
   * the SLO and also applies to redriven messages.
   *
   * @default no delay
   */
  readonly deliveryDelay?: Duration;
  /**
   * An existing queue to consume. Its messages are JSON, from any sender or an SNS subscription. `events` must be a single external
   * event with an `id`. The consumer then has no rule, and does not change the settings or the senders of the queue. It must be a
   * standard queue of this app without another consumer, and with its own dead-letter queue, whose `maxReceiveCount` covers
   * `retry`; the error names the number.
   *
   * @default a new queue, filled by rules
   */
  readonly existing?: Queue;
  /** The time for which SQS reuses a data key: a longer time means fewer calls to KMS. Requires the Mailroom's `encryptionKey`. @default 5 minutes */
  readonly dataKeyReuse?: Duration;
}
