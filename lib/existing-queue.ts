import { Duration, Token } from 'aws-cdk-lib';
import type { CfnQueue, IQueue, Queue } from 'aws-cdk-lib/aws-sqs';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';
import { maxReceiveCount } from './receives.ts';
import { say, unless } from './refusal.ts';
import { QUEUE_RETENTION_MAX } from './retentions.ts';
import type { ConsumerSettings } from './timings.ts';

/** The default visibility timeout of SQS (SQS API reference, CreateQueue). */
const VISIBILITY_DEFAULT_S = 30;

/** The default retention of SQS: 4 days (SQS API reference, CreateQueue). */
const RETENTION_DEFAULT_S = 345_600;

/** The properties of a consumer that an existing queue already has. */
const OWN_TO_QUEUE = ['visibilityTimeout', 'queueRetention', 'deadLetterRetention', 'queueProps'] as const;

/** Settings that an existing queue and its dead-letter queue determine. */
export interface ExistingQueueSettings {
  readonly visibilityTimeout: Duration;
  readonly queueRetention: Duration;
  readonly deadLetterRetention: Duration;
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
  const { queue, foreignBus } = props;
  if (queue === undefined) return [];
  const resource = resourceOf(queue);
  if (resource === undefined) {
    return [
      'queue is an imported queue, whose settings and dead-letter queue are unknown at synth. Pass the Queue construct itself: create the ' +
        'consumer in the app that defines the queue.',
    ];
  }
  const { deadLetterQueue } = queue;
  const receives = maxReceiveCount(settings);
  return [
    ...unless(
      !queue.fifo,
      'queue is a FIFO queue, but an inbox retries each message on its own, so a group would not stay in order. Use a standard queue.',
    ),
    ...unless(
      foreignBus === undefined,
      'foreignBus and queue are both given, but no rule fills an existing queue. Omit one.',
    ),
    ...OWN_TO_QUEUE.filter((property) => props[property] !== undefined).map(
      (property) =>
        `${property} and queue are both given, but the queue has its own. Omit ${property}, and set it on the queue.`,
    ),
    ...unless(
      isKnown(resource.visibilityTimeout) && isKnown(resource.messageRetentionPeriod),
      'queue has a visibility timeout or retention that is unknown at synth, so it cannot be checked. Set it to a fixed Duration.',
    ),
    ...unless(
      deadLetterQueue !== undefined && resourceOf(deadLetterQueue.queue) !== undefined,
      'queue has no dead-letter queue in this app, so rejected messages would be lost. Set its deadLetterQueue to a Queue construct.',
    ),
    ...unless(
      deadLetterQueue === undefined || deadLetterQueue.maxReceiveCount >= receives,
      `queue moves a message to its dead-letter queue after ${deadLetterQueue?.maxReceiveCount} receives, but retry.attempts and ` +
        `outageTolerance (${say(settings.outageTolerance)}) take up to ${receives}. Set its maxReceiveCount to at least ${receives}, ` +
        'or lower outageTolerance or retry.attempts.',
    ),
  ];
}

/** Names the settings of an existing queue in a problem that was found in them: they are not properties of the consumer. */
export function ofExistingQueue(problem: string): string {
  return problem
    .replace(/^queueRetention is/, 'The retentionPeriod of queue is')
    .replace(/^deadLetterRetention is/, 'The retentionPeriod of the dead-letter queue of queue is')
    .replace(/^visibilityTimeout is/, 'The visibilityTimeout of queue is')
    .replace(/Raise (?:queue|deadLetter)Retention/, 'Raise it');
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
