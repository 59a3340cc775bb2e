import { RemovalPolicy } from 'aws-cdk-lib';
import { Rule } from 'aws-cdk-lib/aws-events';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { encodeRulePattern } from '../lambdas/runtime/bus/rule-pattern.ts';
import type { EventRef } from '../lambdas/runtime/event.ts';
import { HEARTBEAT } from '../lambdas/runtime/heartbeat-event.ts';
import { acknowledgeLastStop } from './acknowledgements.ts';
import { queueEncryption } from './encryption.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';
import type { Mailroom } from './mailroom.ts';
import { queueByName } from './physical-name.ts';
import { denySending, sendTo } from './queue-senders.ts';
import { maxReceiveCount } from './receives.ts';
import { QUEUE_RETENTION_MAX } from './retentions.ts';
import type { ConsumerSettings } from './timings.ts';

/** The queues of a consumer, and the rule that fills them. */
export interface ConsumerQueues {
  readonly queue: Queue;
  readonly deadLetterQueue: Queue;
  readonly undeliveredQueue: Queue;
  readonly rule: Rule;
}

/**
 * Creates the queues of a consumer, the rule that fills them, and their policies. All are children of the consumer, because their
 * logical ids are part of deployed stacks.
 *
 * @param queueName - the physical name of the source queue
 */
export function consumerQueues(
  consumer: Construct,
  props: InboxConsumerProps,
  settings: ConsumerSettings,
  queueName: string,
): ConsumerQueues {
  const { mailroom } = props;
  const { dataKeyReuse, deliveryDelay } = props.queueProps ?? {};
  const common = {
    ...queueEncryption(mailroom.encryptionKey),
    dataKeyReuse,
    enforceSSL: true,
    removalPolicy: props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
  };
  const deadLetterQueue = new Queue(consumer, 'DeadLetters', {
    ...common,
    retentionPeriod: settings.deadLetterRetention,
    redriveAllowPolicy: { sourceQueues: [queueByName(consumer, queueName)] },
  });
  const queue = new Queue(consumer, 'Queue', {
    ...common,
    queueName,
    deliveryDelay,
    visibilityTimeout: settings.visibilityTimeout,
    retentionPeriod: settings.queueRetention,
    deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: maxReceiveCount(settings) },
  });
  const undeliveredQueue = new Queue(consumer, 'Undelivered', {
    ...common,
    retentionPeriod: QUEUE_RETENTION_MAX,
  });
  acknowledgeLastStop(deadLetterQueue, 'the dead-letter queue of the source queue');
  acknowledgeLastStop(undeliveredQueue, "the dead-letter queue of the rule's target");
  const rule = new Rule(consumer, 'Rule', {
    description: `Events for the consumer ${props.name}.`,
    eventBus: mailroom.bus,
    eventPattern: encodeRulePattern(subscribed(props)),
  });
  sendTo(rule, mailroom.bus, queue, undeliveredQueue);
  for (const each of [queue, deadLetterQueue, undeliveredQueue]) denySending(each, mailroom.operators);
  letWatch(mailroom, queue, [deadLetterQueue, undeliveredQueue]);
  return { queue, deadLetterQueue, undeliveredQueue, rule };
}

/** The events that the consumer receives: its subscriptions, and heartbeats, which cost nothing while none is sent. */
export function subscribed({ events }: Pick<InboxConsumerProps, 'events'>): EventRef[] {
  return [...events, HEARTBEAT].map(({ source, type }) => ({ source, type }));
}

/**
 * Lets the Mailroom's sweep and audit look at the dead-letter queues. The queues' own policies grant it, because the sweep's
 * role cannot name queues of stacks that are deployed after its own.
 */
function letWatch(mailroom: Mailroom, queue: Queue, dead: readonly Queue[]): void {
  mailroom.audit?.lookAt(queue, dead);
  for (const each of dead) {
    each.addToResourcePolicy(
      new PolicyStatement({
        sid: 'TheSweepLooksAtDeadLetters',
        principals: [mailroom.relay.sweepFunction.grantPrincipal],
        actions: ['sqs:GetQueueAttributes', 'sqs:ReceiveMessage'],
        resources: [each.queueArn],
      }),
    );
  }
}
