import { Duration } from 'aws-cdk-lib';
import { OUTAGE_TOLERANCE, RETRY } from '../checks/receives.ts';
import { between, say, unless } from '../checks/refusal.ts';
import { defaultInboxRetention, QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import { BATCH_SIZE_MAX, type ConsumerSettings } from '../checks/timings.ts';
import { timeoutOf } from './existing-function.ts';
import { existingQueueSettings } from './existing-queue.ts';
import type { ConsumerQueueProps, InboxConsumerProps } from './inbox-consumer-props.ts';

/** A function that does not start uses up one receive per visibility timeout: with 3 minutes, a 4-hour outage takes 80. */
const VISIBILITY_DEFAULT_MIN_S = 180;

/** Resolves the settings of a consumer: the given ones, and defaults derived from them. */
export function consumerSettings(props: InboxConsumerProps): ConsumerSettings {
  const timeout = props.timeout ?? (props.function && timeoutOf(props.function)) ?? Duration.seconds(30);
  const existing = props.queue && existingQueueSettings(props.queue);
  const { queueProps = {} } = props;
  const visibilityTimeout =
    existing?.visibilityTimeout ??
    queueProps.visibilityTimeout ??
    Duration.seconds(Math.max(VISIBILITY_DEFAULT_MIN_S, 6 * timeout.toSeconds()));
  const retentions = {
    queueRetention: existing?.queueRetention ?? queueProps.retention ?? QUEUE_RETENTION_MAX,
    deadLetterRetention:
      existing?.deadLetterRetention ?? queueProps.deadLetterRetention ?? QUEUE_RETENTION_MAX,
    archive: props.mailroom.archive,
  };
  return {
    timeout,
    lease: props.lease ?? Duration.seconds(Math.min(30, visibilityTimeout.toSeconds())),
    visibilityTimeout,
    retry: {
      attempts: props.retry?.attempts ?? RETRY.attempts,
      first: props.retry?.first ?? RETRY.first,
      longest: props.retry?.longest ?? RETRY.longest,
    },
    outageTolerance: props.outageTolerance ?? OUTAGE_TOLERANCE,
    batchSize: props.batchSize ?? BATCH_SIZE_MAX,
    batchingWindow: props.batchingWindow,
    ...retentions,
    inboxRetention: props.inboxRetention ?? defaultInboxRetention(retentions),
  };
}

/** Why other properties of a queue cannot be passed on, and what to do instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  contentBasedDeduplication: 'The inbox drops duplicates.',
  deadLetterQueue: 'The consumer creates it, and derives its maxReceiveCount from retry and outageTolerance.',
  encryption: 'Set encryptionKey of the Mailroom, so that its rule and its sweep may use the key.',
  encryptionMasterKey: 'Set encryptionKey of the Mailroom, so that its rule and its sweep may use the key.',
  enforceSSL: 'The queues always require TLS.',
  fifo: 'EventBridge delivers events in any order. Set order: strict() to apply them in theirs.',
  maxMessageSizeBytes: 'With less than 1 MiB, large events would not be delivered.',
  queueName: 'The name is derived from the stack, so that a retained queue does not block a new deployment.',
  redriveAllowPolicy:
    'The dead-letter queue accepts messages of its source queue only, and the other queues are dead-letter queues of none.',
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
