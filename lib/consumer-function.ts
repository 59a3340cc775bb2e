import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { encodeConsumerConfig } from '../lambdas/runtime/config.ts';
import { acknowledge } from './acknowledgements.ts';
import { inboxSince } from './fixed-name.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';
import { ServiceFunction } from './service-function.ts';
import type { ConsumerSettings } from './timings.ts';

const MAX_CONCURRENCY = 100;

/** Makes the function of a consumer, with its environment, its grants and the mapping from the source queue. */
export function consumerFunction(
  scope: Construct,
  queue: Queue,
  props: InboxConsumerProps,
  settings: ConsumerSettings,
): ServiceFunction {
  const { mailroom, name, service, publishes = [], entry, memoryMb, bundling, removalPolicy } = props;
  const handler = new ServiceFunction(scope, 'Function', {
    entry,
    service,
    description: `Mailroom consumer ${name}`,
    memoryMb,
    bundling,
    timeout: settings.timeout,
    logRemovalPolicy: removalPolicy,
    encryptionKey: mailroom.encryptionKey,
    tracing: mailroom.tracing,
    environment: { ...props.environment, ...environmentOf(queue, props, settings) },
  });
  mailroom.table.grantInbox(handler, name);
  if (publishes.length > 0) mailroom.grantProducer(handler, props.domainKeys);
  else mailroom.table.grantDomain(handler, props.domainKeys ?? []);
  handler.addEventSource(
    new SqsEventSource(queue, {
      batchSize: settings.batchSize,
      maxBatchingWindow: settings.batchingWindow,
      maxConcurrency: props.maxConcurrency ?? MAX_CONCURRENCY,
      reportBatchItemFailures: true,
    }),
  );
  acknowledge(handler, {
    LambdaEventSourceMappingDestination:
      'An SQS mapping has no failure destination: failed messages return to the queue, and from there to its dead-letter queue.',
  });
  return handler;
}

function environmentOf(
  queue: Queue,
  { mailroom, name, service, publishes = [], movedFrom }: InboxConsumerProps,
  settings: ConsumerSettings,
): Record<string, string> {
  return encodeConsumerConfig({
    ...mailroom.producerConfig(service, publishes),
    consumer: name,
    queueUrl: queue.queueUrl,
    leaseMs: settings.lease.toMilliseconds(),
    visibilityTimeoutMs: settings.visibilityTimeout.toMilliseconds(),
    maxAttempts: settings.retry.attempts,
    retryFirstMs: settings.retry.first.toMilliseconds(),
    retryLongestMs: settings.retry.longest.toMilliseconds(),
    inboxRetentionDays: settings.inboxRetention.toDays(),
    inboxSince: inboxSince(movedFrom),
  });
}
