import { Duration } from 'aws-cdk-lib';
import type { InboxConsumerProps } from './inbox-consumer.ts';
import { serviceNameProblems } from './names.ts';
import { defaultInboxRetention, QUEUE_RETENTION_MAX } from './retentions.ts';
import { BATCH_SIZE_MAX, type ConsumerSettings, SPARE_RECEIVES } from './timings.ts';

/** The settings of a consumer: what was chosen, and the defaults that follow from it. */
export function consumerSettings(props: InboxConsumerProps): ConsumerSettings {
  const timeout = props.timeout ?? Duration.seconds(30);
  const visibilityTimeout = props.visibilityTimeout ?? Duration.seconds(6 * timeout.toSeconds());
  const maxAttempts = props.maxAttempts ?? 5;
  const retentions = {
    queueRetention: props.queueRetention ?? QUEUE_RETENTION_MAX,
    deadLetterRetention: props.deadLetterRetention ?? QUEUE_RETENTION_MAX,
    archive: props.mailroom.archive,
  };
  return {
    timeout,
    lease: props.lease ?? Duration.seconds(Math.min(30, visibilityTimeout.toSeconds())),
    visibilityTimeout,
    maxAttempts,
    maxReceiveCount: props.maxReceiveCount ?? maxAttempts + SPARE_RECEIVES,
    batchSize: props.batchSize ?? BATCH_SIZE_MAX,
    ...retentions,
    inboxRetention: props.inboxRetention ?? defaultInboxRetention(retentions),
  };
}

/** A rule without a source or a type would match everything on the bus, or nothing. */
export function selectionProblems({ from, events }: InboxConsumerProps): string[] {
  return [
    ...from.flatMap((source) => serviceNameProblems('from', source)),
    ...(from.length > 0
      ? []
      : ['from is empty, but must name the services whose events it sees, e.g. ["orders"].']),
    ...(events.length > 0
      ? []
      : ['events is empty, but must hold the events that it sees, e.g. [OrderPlaced].']),
  ];
}
