import { Duration } from 'aws-cdk-lib';
import { OUTAGE_TOLERANCE, RETRY } from '../checks/receives.ts';
import { between, say, unless } from '../checks/refusal.ts';
import { defaultInboxRetention, QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import {
  BATCH_SIZE_MAX,
  type ConsumerSettings,
  FUNCTION_TIMEOUT_MAX,
  MANAGED_TIMEOUT_MAX,
} from '../checks/timings.ts';
import { timeoutOf } from './existing-function.ts';
import { existingQueueSettings } from './existing-queue.ts';
import type { ConsumerQueueProps, InboxConsumerProps } from './inbox-consumer-props.ts';
import { managedInstancesOf } from './managed-instances.ts';

/** A function that does not start uses up one receive per visibility timeout: with 3 minutes, a 4-hour outage takes 80. */
const VISIBILITY_DEFAULT_MIN_S = 180;

/** AWS advises 6 timeouts. Beyond those of 15 minutes, a message that was not processed would only wait for longer. */
const VISIBILITY_DEFAULT_BEYOND_S = 5 * FUNCTION_TIMEOUT_MAX.toSeconds();

/** Resolves the settings of a consumer: the given ones, and defaults derived from them. */
export function consumerSettings(props: InboxConsumerProps): ConsumerSettings {
  const { function: own = {}, queue = {}, retry = {} } = props;
  const timeout = own.timeout ?? (own.existing && timeoutOf(own.existing)) ?? Duration.seconds(30);
  const existing = queue.existing && existingQueueSettings(queue.existing);
  const visibilityTimeout =
    existing?.visibilityTimeout ??
    queue.visibilityTimeout ??
    Duration.seconds(visibilityDefaultS(timeout.toSeconds()));
  const retentions = {
    queueRetention: existing?.queueRetention ?? queue.retention ?? QUEUE_RETENTION_MAX,
    deadLetterRetention: existing?.deadLetterRetention ?? queue.deadLetterRetention ?? QUEUE_RETENTION_MAX,
    archive: props.mailroom.archive,
  };
  return {
    timeout,
    timeoutMax: own.existing && managedInstancesOf(own.existing) ? MANAGED_TIMEOUT_MAX : FUNCTION_TIMEOUT_MAX,
    lease: props.lease ?? Duration.seconds(Math.min(30, visibilityTimeout.toSeconds())),
    visibilityTimeout,
    retry: {
      maxAttempts: retry.maxAttempts ?? RETRY.maxAttempts,
      first: retry.first ?? RETRY.first,
      longest: retry.longest ?? RETRY.longest,
    },
    outageTolerance: retry.outageTolerance ?? OUTAGE_TOLERANCE,
    batchSize: queue.batchSize ?? BATCH_SIZE_MAX,
    batchingWindow: queue.batchingWindow,
    ...retentions,
    inboxRetention: props.inboxRetention ?? defaultInboxRetention(retentions),
  };
}

function visibilityDefaultS(timeoutS: number): number {
  return Math.max(VISIBILITY_DEFAULT_MIN_S, Math.min(6 * timeoutS, timeoutS + VISIBILITY_DEFAULT_BEYOND_S));
}

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
  const { dataKeyReuse, deliveryDelay } = props;
  const { batchingWindow: window = Duration.seconds(0), heartbeatEvery: every } = context;
  return [
    ...unless(
      dataKeyReuse === undefined || context.isEncrypted,
      'queue contains dataKeyReuse, but the Mailroom has no encryptionKey: without your own key, SQS does not call KMS. Remove dataKeyReuse.',
    ),
    ...(deliveryDelay === undefined
      ? []
      : [
          ...between('queue.deliveryDelay', deliveryDelay, Duration.seconds(0), DELAY_MAX, ''),
          ...unless(
            deliveryDelay.toMilliseconds() % 1_000 === 0,
            `queue.deliveryDelay is ${say(deliveryDelay)}, but must be whole seconds: SQS has no finer delays. Round it.`,
          ),
          ...unless(
            every === undefined || deliveryDelay.plus(window).toMilliseconds() < every.toMilliseconds(),
            `queue.deliveryDelay is ${say(deliveryDelay)}, but with queue.batchingWindow it must be shorter than the interval between ` +
              `heartbeats, ${every && say(every)}. Otherwise each heartbeat would be late. Lower it or raise the Mailroom's heartbeat.every.`,
          ),
        ]),
  ];
}
