import { Duration } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { filtersProblems, isForeignEvent } from '../checks/filter-problems.ts';
import { serviceNameProblems } from '../checks/names.ts';
import { OUTAGE_TOLERANCE, RETRY } from '../checks/receives.ts';
import { unless } from '../checks/refusal.ts';
import { defaultInboxRetention, QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import { BATCH_SIZE_MAX, type ConsumerSettings } from '../checks/timings.ts';
import { timeoutOf } from './existing-function.ts';
import { existingQueueSettings } from './existing-queue.ts';
import { foreignSubscriptionProblems } from './foreign-events.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

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

/** A rule without a source or a type would match either every event on the bus or none. */
export function subscriptionProblems(consumer: IConstruct, props: InboxConsumerProps): string[] {
  const events = props.events.filter((event) => !isForeignEvent(event));
  if (props.events.length === 0)
    return ['events is empty. List the events that the consumer subscribes to, e.g. [OrderPlaced].'];
  const sources = new Set(events.map(({ source }) => source));
  return [
    ...foreignSubscriptionProblems(consumer, props),
    ...[...sources].flatMap((source) => serviceNameProblems('the source of an event in events', source)),
    ...events.flatMap(({ source, type }) =>
      typeof type === 'string' && type !== ''
        ? []
        : [`events contains an event of "${source}" without a type. Use a definition, or { source, type }.`],
    ),
    ...filtersProblems(props.events),
    ...fairByProblems(props),
  ];
}

/** The paths of texts in an envelope. EventBridge takes dots, dashes, underscores and alphanumeric characters (user guide, "Target parameters"). */
const FAIR_BY = /^\$\.detail\.(?:aggregateId|aggregateType|correlationId|type|data(?:\.[\w-]+)+)$/;

/** The longest path (EventBridge API reference, SqsParameters). */
const FAIR_BY_LENGTH_MAX = 100;

function fairByProblems({ events, queue, fairBy }: InboxConsumerProps): string[] {
  if (fairBy === undefined) return [];
  return [
    ...unless(
      FAIR_BY.test(fairBy) && fairBy.length <= FAIR_BY_LENGTH_MAX,
      `fairBy is "${fairBy}", but must be the path of a text in the envelope, of at most ${FAIR_BY_LENGTH_MAX} characters: "$.detail." followed by ` +
        'aggregateId, aggregateType, correlationId, type, or a field of data. Use one like "$.detail.data.tenantId".',
    ),
    ...unless(
      queue === undefined,
      'fairBy and queue are both given, but the senders of an existing queue set the message groups. Omit fairBy.',
    ),
    ...unless(
      queue !== undefined || !events.every(isForeignEvent),
      'fairBy is given, but events contains foreign events only, which have no envelope. Omit fairBy.',
    ),
  ];
}
