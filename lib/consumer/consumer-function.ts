import { Alias, type Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct, IConstruct } from 'constructs';
import { consumerSettings } from '../../lambdas/runtime/base/consumer-config.ts';
import { CONSUMER_TAG, MAILROOM_TAG, SERVICE_TAG } from '../../lambdas/runtime/base/resource-tags.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { maxReceiveCount } from '../checks/receives.ts';
import { type ConsumerSettings, maxConcurrencyOf } from '../checks/timings.ts';
import { acknowledge } from '../functions/acknowledged-warnings.ts';
import { checkHandlers } from '../functions/handler-check.ts';
import { ServiceFunction } from '../functions/service-function.ts';
import { addUse } from '../mailroom/declared-events.ts';
import { tag } from '../mailroom/tags.ts';
import { bindBridge } from './bridge-wiring.ts';
import { functionBehind, reservedOf, warnOfFixedVersion } from './existing-function.ts';
import { inboxSince } from './fixed-name.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** The function of a consumer, and the alias through which its mapping invokes it. */
export interface ConsumerFunction {
  readonly function: LambdaFunction;
  /** Absent: the mapping invokes the function itself. */
  readonly alias?: Alias | undefined;
}

/** Makes the function of a consumer or takes the existing one, and gives it its environment, its grants and its mapping. */
export function consumerFunction(
  scope: Construct,
  queue: Queue,
  props: InboxConsumerProps,
  settings: ConsumerSettings,
): ConsumerFunction {
  const { mailroom, name, service, publishes = [] } = props;
  const existing = props.function?.existing;
  const made = existing === undefined ? create(scope, props, settings) : adopt(scope, existing);
  const { function: handler } = made;
  const use = { mailroom: mailroom.node.path, service, publishes, consumer: scope.node.path };
  const environment = environmentOf(queue, props, settings, addUse(handler, use));
  for (const [key, value] of Object.entries(environment)) handler.addEnvironment(key, value);
  bindBridge(handler, props.forwardsTo);
  mailroom.table.grantInbox(handler, name);
  if (publishes.length > 0) mailroom.grantProducer(handler, props.domainKeys);
  else {
    mailroom.table.grantCancel(handler);
    mailroom.table.grantDomain(handler, props.domainKeys ?? []);
  }
  mailroom._payloads?._letRead(handler, service, settings.inboxRetention);
  if (publishes.length > 0) mailroom._payloads?._letWrite(handler, service);
  addEventSource(made, queue, props, settings);
  // An existing function and its role are not below the consumer, whose tags its own function has.
  const tags = { [MAILROOM_TAG]: mailroom.node.path, [SERVICE_TAG]: service, [CONSUMER_TAG]: name };
  for (const tagged of [handler, handler.role]) if (tagged) tag(tagged, tags);
  return made;
}

function create(
  scope: Construct,
  { mailroom, entry = '', ...props }: InboxConsumerProps,
  { timeout }: ConsumerSettings,
): ConsumerFunction {
  const { alias, bundling, checkHandlers: check, environment, memoryMb, ...others } = props.function ?? {};
  const { existing: _, timeout: __, ...functionProps } = others;
  const handler = new ServiceFunction(scope, 'Function', {
    entry,
    service: props.service,
    description: `Mailroom consumer ${props.name}`,
    memoryMb,
    bundling,
    timeout,
    logRemovalPolicy: props.removalPolicy,
    encryptionKey: mailroom.encryptionKey,
    tracing: mailroom.tracing,
    environment,
    functionProps,
  });
  checkHandlers(scope, handler, { events: props.events, entry, environment, checkHandlers: check });
  if (alias === undefined) return { function: handler };
  const { aliasName, ...options } = alias;
  return { function: handler, alias: handler.addAlias(aliasName, options) };
}

function adopt(scope: Construct, given: LambdaFunction | Alias): ConsumerFunction {
  if (!(given instanceof Alias)) return { function: given };
  warnOfFixedVersion(scope, given);
  // `functionProblems` has refused aliases of anything else.
  return { function: functionBehind(given) as LambdaFunction, alias: given };
}

/** Lets the function, or its alias, process the messages of the queue. */
function addEventSource(
  { function: handler, alias }: ConsumerFunction,
  queue: Queue,
  props: InboxConsumerProps,
  settings: ConsumerSettings,
): void {
  const invoked = alias ?? handler;
  const others = new Set<IConstruct>(invoked.node.children);
  invoked.addEventSource(
    new SqsEventSource(queue, {
      batchSize: settings.batchSize,
      maxBatchingWindow: settings.batchingWindow,
      maxConcurrency: maxConcurrencyOf(props.queue?.maxConcurrency, reservedOf(handler)),
      reportBatchItemFailures: true,
    }),
  );
  const reason =
    'An SQS mapping has no failure destination: failed messages return to the queue, and from there to its dead-letter queue.';
  for (const mapping of invoked.node.children.filter((child) => !others.has(child)))
    acknowledge(mapping, { LambdaEventSourceMappingDestination: reason });
}

function environmentOf(
  queue: Queue,
  { mailroom, name, service, movedFrom, queue: given, order }: InboxConsumerProps,
  settings: ConsumerSettings,
  published: readonly EventRef[],
): Record<string, string> {
  const encoded = consumerSettings.encode({
    ...mailroom.producerConfig(service, published),
    consumer: name,
    queueUrl: queue.queueUrl,
    leaseMs: settings.lease.toMilliseconds(),
    visibilityTimeoutMs: settings.visibilityTimeout.toMilliseconds(),
    maxAttempts: settings.retry.maxAttempts,
    retryFirstMs: settings.retry.first.toMilliseconds(),
    retryLongestMs: settings.retry.longest.toMilliseconds(),
    inboxRetentionDays: settings.inboxRetention.toDays(),
    inboxSince: inboxSince(movedFrom),
    existingQueue: given?.existing === undefined ? undefined : true,
    order,
    maxReceives: maxReceiveCount(settings),
  });
  return { ...encoded, ...mailroom._environment };
}
