import { Duration } from 'aws-cdk-lib';
import { between, say, unless } from './refusal.ts';

/**
 * Properties of the CDK's `Queue` that a consumer's queues pass on.
 *
 * @example
 * ```ts
 * const queueProps: QueueOptions = { dataKeyReuse: Duration.hours(1), deliveryDelay: Duration.minutes(1) };
 * ```
 */
export interface QueueOptions {
  /** The time for which SQS reuses a data key; longer means fewer calls to KMS. Needs the Mailroom's `encryptionKey`. @default 5 minutes */
  readonly dataKeyReuse?: Duration;
  /**
   * The time by which each message is delayed, whole seconds up to 15 minutes, shorter than the interval between heartbeats.
   * It counts towards the SLO and applies to redriven messages, too.
   *
   * @default no delay
   */
  readonly deliveryDelay?: Duration;
}

/** Why other properties of a queue cannot be passed on, and what to do instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  contentBasedDeduplication: 'The inbox finds duplicates.',
  deadLetterQueue: 'The consumer creates it, and derives its maxReceiveCount from retry and outageTolerance.',
  encryption: "Set encryptionKey of the Mailroom, whose rule and sweep need the key's permissions.",
  encryptionMasterKey: "Set encryptionKey of the Mailroom, whose rule and sweep need the key's permissions.",
  enforceSSL: 'The queues always demand TLS.',
  fifo: 'Mailroom promises no order: EventBridge delivers events in any order.',
  maxMessageSizeBytes: 'With less than 1 MiB, large events would not be delivered.',
  queueName: 'The name is derived from the stack, so that a retained queue does not block a new one.',
  redriveAllowPolicy: 'The dead-letter queue accepts messages of its own source queue.',
  removalPolicy: 'Use removalPolicy of the consumer.',
  retentionPeriod: 'Use queueRetention and deadLetterRetention of the consumer.',
  visibilityTimeout: 'Use visibilityTimeout of the consumer.',
};

const DELAY_MAX = Duration.minutes(15);

/** The surroundings of a consumer's queues. */
interface Surroundings {
  readonly isEncrypted: boolean;
  readonly batchingWindow?: Duration | undefined;
  /** The interval between heartbeats; absent without heartbeats. */
  readonly heartbeatEvery?: Duration | undefined;
}

/** Validates the options of a consumer's queues. */
export function queueOptionsProblems(options: QueueOptions = {}, around: Surroundings): string[] {
  const { dataKeyReuse, deliveryDelay, ...others } = options;
  const { batchingWindow: window = Duration.seconds(0), heartbeatEvery: every } = around;
  return [
    ...Object.entries<unknown>(others).flatMap(([name, value]) =>
      unless(
        value === undefined,
        `queueProps contains ${name}, which cannot be passed on. ${INSTEAD[name] ?? 'It may contain: dataKeyReuse, deliveryDelay.'}`,
      ),
    ),
    ...unless(
      dataKeyReuse === undefined || around.isEncrypted,
      'queueProps contains dataKeyReuse, but the Mailroom has no encryptionKey: SQS calls KMS only for a key of yours. Remove it.',
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
