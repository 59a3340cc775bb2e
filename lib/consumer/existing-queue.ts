import { Duration, Token } from 'aws-cdk-lib';
import { type CfnQueue, type IQueue, Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { maxReceiveCount } from '../checks/receives.ts';
import { say, unless } from '../checks/refusal.ts';
import { QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import type { ConsumerSettings } from '../checks/timings.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** The default visibility timeout of SQS (SQS API reference, CreateQueue). */
const VISIBILITY_DEFAULT_S = 30;

/** The default retention of SQS: 4 days (SQS API reference, CreateQueue). */
const RETENTION_DEFAULT_S = 345_600;

/** Settings that apply only to queues that the consumer creates. */
const OF_CREATED = [
  'visibilityTimeout',
  'retention',
  'deadLetterRetention',
  'deliveryDelay',
  'dataKeyReuse',
] as const;

/** Settings that an existing queue and its dead-letter queue determine. */
export interface ExistingQueueSettings {
  readonly visibilityTimeout: Duration;
  readonly queueRetention: Duration;
  readonly deadLetterRetention: Duration;
}

const CONSUMERS = new WeakMap<IQueue, Construct>();

/** Records the consumer of a queue, which any construct may have defined. */
export function takeQueue(queue: Queue, consumer: Construct): void {
  CONSUMERS.set(queue, consumer);
}

/**
 * At synth, refuses a dead-letter queue that another queue also has: nothing tells which of its messages belong to this consumer,
 * and a redrive would hand it the others as well.
 */
export function refuseSharedDeadLetters(consumer: Construct, queue: Queue, deadLetterQueue: IQueue): void {
  consumer.node.addValidation({
    validate: () =>
      consumer.node.root.node
        .findAll()
        .filter((other) => other instanceof Queue && other !== queue)
        .filter((other) => (other as Queue).deadLetterQueue?.queue === deadLetterQueue)
        .map(
          ({ node }) =>
            `The dead-letter queue ${deadLetterQueue.node.path} also receives the messages of ${node.path}, so a redrive would send them to the ` +
            `consumer. Give ${queue.node.path} its own dead-letter queue.`,
        ),
  });
}

/** Reads the settings of an existing queue; where they are unknown, {@link existingQueueProblems} refuses it. */
export function existingQueueSettings(queue: Queue): ExistingQueueSettings {
  const { visibilityTimeout = VISIBILITY_DEFAULT_S } = resourceOf(queue) ?? {};
  return {
    visibilityTimeout: known(visibilityTimeout, Duration.seconds(VISIBILITY_DEFAULT_S)),
    queueRetention: retentionOf(queue),
    deadLetterRetention: retentionOf(queue.deadLetterQueue?.queue),
  };
}

/**
 * Validates an existing queue of a consumer.
 *
 * @returns one sentence per problem
 */
export function existingQueueProblems(props: InboxConsumerProps, settings: ConsumerSettings): string[] {
  const { externalBus } = props;
  const { existing: queue, ...given } = props.queue ?? {};
  if (queue === undefined) return [];
  const resource = resourceOf(queue);
  if (resource === undefined) {
    return [
      'queue.existing is an imported queue, whose settings and dead-letter queue are unknown at synth. Pass the Queue construct itself: create the ' +
        'consumer in the app that defines the queue.',
    ];
  }
  const { deadLetterQueue } = queue;
  const receives = maxReceiveCount(settings);
  const taken = CONSUMERS.get(queue)?.node.path;
  return [
    ...unless(
      taken === undefined,
      `queue.existing is the queue of ${taken}, and each message of a queue reaches only one of its consumers. Create one consumer per queue, and fill ` +
        'both from one SNS topic.',
    ),
    ...unless(
      !queue.fifo,
      'queue.existing is a FIFO queue, but an inbox retries each message separately, which breaks the order of a group. Use a standard queue.',
    ),
    ...unless(
      externalBus === undefined,
      'externalBus and queue.existing are both given, but no rule fills an existing queue. Omit one.',
    ),
    ...OF_CREATED.filter((property) => given[property] !== undefined).map(
      (property) =>
        `queue.${property} and queue.existing are both given, but only queues that the consumer creates take it. Omit ${property}, and set it on the queue.`,
    ),
    ...unless(
      isKnown(resource.visibilityTimeout) && isKnown(resource.messageRetentionPeriod),
      'queue.existing has a visibility timeout or retention that is unknown at synth, so it cannot be checked. Set it to a fixed Duration.',
    ),
    ...unless(
      deadLetterQueue !== undefined && resourceOf(deadLetterQueue.queue) !== undefined,
      'queue.existing has no dead-letter queue that this app defines, so rejected messages would be lost. Set its deadLetterQueue to a Queue construct.',
    ),
    ...unless(
      (deadLetterQueue?.queue as Queue | undefined)?.deadLetterQueue === undefined,
      'The dead-letter queue of queue.existing has a dead-letter queue itself. The sweep looks at dead letters every minute, and each look is a receive, ' +
        'so they would soon be moved on, where no command finds them. Remove the second one.',
    ),
    ...unless(
      deadLetterQueue === undefined || deadLetterQueue.maxReceiveCount >= receives,
      `queue.existing moves a message to its dead-letter queue after ${deadLetterQueue?.maxReceiveCount} receives, but retry.maxAttempts and ` +
        `retry.outageTolerance (${say(settings.outageTolerance)}) take up to ${receives}. Set its maxReceiveCount to at least ${receives}, ` +
        'or lower retry.outageTolerance or retry.maxAttempts.',
    ),
  ];
}

/** Names the settings of an existing queue in a problem that was found in them: they are not properties of the consumer. */
export function ofExistingQueue(problem: string): string {
  return problem
    .replace(/^queue\.retention is/, 'The retentionPeriod of queue.existing is')
    .replace(
      /^queue\.deadLetterRetention is/,
      'The retentionPeriod of the dead-letter queue of queue.existing is',
    )
    .replace(/^queue\.visibilityTimeout is/, 'The visibilityTimeout of queue.existing is')
    .replace(/Raise queue\.\w+/, 'Raise it')
    .replaceAll('queue.visibilityTimeout', 'its visibilityTimeout');
}

function retentionOf(queue: IQueue | undefined): Duration {
  const resource = queue && resourceOf(queue);
  if (resource === undefined) return QUEUE_RETENTION_MAX;
  return known(resource.messageRetentionPeriod ?? RETENTION_DEFAULT_S, QUEUE_RETENTION_MAX);
}

function known(seconds: number, otherwise: Duration): Duration {
  return Token.isUnresolved(seconds) ? otherwise : Duration.seconds(seconds);
}

function isKnown(seconds: number | undefined): boolean {
  return !Token.isUnresolved(seconds);
}

/** The CloudFormation resource of a queue; `undefined` if the queue is imported. */
function resourceOf(queue: IQueue): CfnQueue | undefined {
  const child = queue.node.defaultChild as CfnQueue | undefined;
  return child?.cfnResourceType === 'AWS::SQS::Queue' ? child : undefined;
}
