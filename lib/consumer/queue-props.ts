import { Duration } from 'aws-cdk-lib';
import { between, say, unless } from '../checks/refusal.ts';

/**
 * Settings of the queues that a consumer creates.
 *
 * @example
 * ```ts
 * const queueProps: ConsumerQueueProps = { visibilityTimeout: Duration.minutes(10), deliveryDelay: Duration.minutes(1) };
 * ```
 */
export interface ConsumerQueueProps {
  /**
   * The time that SQS hides a received message; at least `timeout`.
   *
   * @default 6 times the timeout, as AWS advises; at least 3 minutes
   */
  readonly visibilityTimeout?: Duration;
  /** The retention of the queue. @default 14 days */
  readonly retention?: Duration;
  /** The retention of the dead-letter queue, counted from the first send of a message. @default 14 days */
  readonly deadLetterRetention?: Duration;
  /** The time for which SQS reuses a data key: a longer time means fewer calls to KMS. Requires the Mailroom's `encryptionKey`. @default 5 minutes */
  readonly dataKeyReuse?: Duration;
  /**
   * The delay of each message: whole seconds, up to 15 minutes, and shorter than the interval between heartbeats. It counts towards
   * the SLO and also applies to redriven messages.
   *
   * @default no delay
   */
  readonly deliveryDelay?: Duration;
}

/** Why other properties of a queue cannot be passed on, and what to do instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  contentBasedDeduplication: 'The inbox drops duplicates.',
  deadLetterQueue: 'The consumer creates it, and derives its maxReceiveCount from retry and outageTolerance.',
  encryption: 'Set encryptionKey of the Mailroom, so that its rule and its sweep may use the key.',
  encryptionMasterKey: 'Set encryptionKey of the Mailroom, so that its rule and its sweep may use the key.',
  enforceSSL: 'The queues always require TLS.',
  fifo: 'Mailroom does not guarantee an order: EventBridge delivers events in any order.',
  maxMessageSizeBytes: 'With less than 1 MiB, large events would not be delivered.',
  queueName: 'The name is derived from the stack, so that a retained queue does not block a new deployment.',
  redriveAllowPolicy: 'The dead-letter queue accepts messages of its source queue only.',
  removalPolicy: 'Use removalPolicy of the consumer.',
  retentionPeriod: 'Use retention and deadLetterRetention.',
};

const DELAY_MAX = Duration.minutes(15);

/** Settings that the properties depend on. */
interface QueueContext {
  readonly isEncrypted: boolean;
  readonly batchingWindow?: Duration | undefined;
  /** The interval between heartbeats; absent without heartbeats. */
  readonly heartbeatEvery?: Duration | undefined;
}

/** Validates the settings of a consumer's queues that no other setting depends on. */
export function queuePropsProblems(props: ConsumerQueueProps = {}, context: QueueContext): string[] {
  const { visibilityTimeout: _, retention: __, deadLetterRetention: ___, ...rest } = props;
  const { dataKeyReuse, deliveryDelay, ...others } = rest;
  const { batchingWindow: window = Duration.seconds(0), heartbeatEvery: every } = context;
  return [
    ...Object.entries<unknown>(others).flatMap(([name, value]) =>
      unless(
        value === undefined,
        `queueProps contains ${name}, which cannot be passed on. ${INSTEAD[name] ?? 'It may contain: visibilityTimeout, retention, deadLetterRetention, dataKeyReuse, deliveryDelay.'}`,
      ),
    ),
    ...unless(
      dataKeyReuse === undefined || context.isEncrypted,
      'queueProps contains dataKeyReuse, but the Mailroom has no encryptionKey: without your own key, SQS does not call KMS. Remove dataKeyReuse.',
    ),
    ...(deliveryDelay === undefined
      ? []
      : [
          ...between('queueProps.deliveryDelay', deliveryDelay, Duration.seconds(0), DELAY_MAX, ''),
          ...unless(
            deliveryDelay.toMilliseconds() % 1_000 === 0,
            `queueProps.deliveryDelay is ${say(deliveryDelay)}, but must be whole seconds: SQS has no finer delays. Round it.`,
          ),
          ...unless(
            every === undefined || deliveryDelay.plus(window).toMilliseconds() < every.toMilliseconds(),
            `queueProps.deliveryDelay is ${say(deliveryDelay)}, but with batchingWindow it must be shorter than the interval between ` +
              `heartbeats, ${every && say(every)}. Otherwise each heartbeat would be late. Lower it or raise the Mailroom's heartbeat.every.`,
          ),
        ]),
  ];
}
