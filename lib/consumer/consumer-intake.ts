import { RemovalPolicy } from 'aws-cdk-lib';
import { Rule } from 'aws-cdk-lib/aws-events';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { encodeRulePattern } from '../../lambdas/runtime/bus/rule-pattern.ts';
import type { Subscription } from '../../lambdas/runtime/events/data-filter.ts';
import { HEARTBEAT } from '../../lambdas/runtime/events/heartbeat-event.ts';
import type { EntryEvent } from '../../lambdas/runtime/operations/directory.ts';
import { isExternalEvent } from '../checks/filter-problems.ts';
import { addToPolicyOf } from '../checks/granted.ts';
import { maxReceiveCount } from '../checks/receives.ts';
import { QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import type { ConsumerSettings } from '../checks/timings.ts';
import { acknowledgeLastStop } from '../functions/acknowledged-warnings.ts';
import { queueByName } from '../functions/physical-name.ts';
import { aggregateOf } from '../mailroom/declared-events.ts';
import { queueEncryption } from '../mailroom/encryption.ts';
import type { IMailroom } from '../mailroom/mailroom-base.ts';
import {
  DEAD_LETTERS_OF_NONE,
  DEFAULT_BUS,
  denySending,
  fixedRuleName,
  sendTo,
} from '../mailroom/queue-senders.ts';
import { refuseSharedDeadLetters, takeQueue } from './existing-queue.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';
import { letWatch } from './queue-watchers.ts';

/** The queues of a consumer, and the rules that fill them. A consumer of an existing queue has no rules. */
export interface ConsumerIntake {
  readonly queue: Queue;
  readonly deadLetterQueue: Queue;
  readonly undeliveredQueue?: Queue;
  readonly rule?: Rule;
  readonly externalRule?: Rule;
}

/**
 * Creates the queues of a consumer, the rules that fill them, and their policies, or uses the existing queue. All are children of the
 * consumer, because their logical ids are part of deployed stacks.
 *
 * @param queueName - the physical name of the source queue
 */
export function consumerQueues(
  consumer: Construct,
  props: InboxConsumerProps,
  settings: ConsumerSettings,
  queueName: string,
): ConsumerIntake {
  const { existing, dataKeyReuse, deliveryDelay, fairBy } = props.queue ?? {};
  if (existing !== undefined) return existingQueues(consumer, props.mailroom, existing);
  const { mailroom } = props;
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
    ...DEAD_LETTERS_OF_NONE,
    queueName,
    deliveryDelay,
    visibilityTimeout: settings.visibilityTimeout,
    retentionPeriod: settings.queueRetention,
    deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: maxReceiveCount(settings) },
  });
  const undeliveredQueue = new Queue(consumer, 'Undelivered', {
    ...common,
    ...DEAD_LETTERS_OF_NONE,
    retentionPeriod: QUEUE_RETENTION_MAX,
  });
  takeQueue(queue, consumer);
  acknowledgeLastStop(deadLetterQueue, 'the dead-letter queue of the source queue');
  acknowledgeLastStop(undeliveredQueue, "the dead-letter queue of the rule's target");
  const ruleName = fixedRuleName(consumer, 'Events', mailroom.bus);
  const rule = new Rule(consumer, 'Rule', {
    ruleName,
    description: `Events for the consumer ${props.name}.`,
    eventBus: mailroom.bus,
    eventPattern: encodeRulePattern(subscribed(props).filter((event) => !isExternalEvent(event))),
  });
  const sending = { sid: 'TheRuleSends', bus: mailroom.bus.eventBusName, name: ruleName };
  sendTo(rule, sending, queue, undeliveredQueue, fairBy);
  const externalRule = ruleOfExternalEvents(consumer, props, queue, undeliveredQueue);
  for (const each of [queue, deadLetterQueue, undeliveredQueue]) denySending(each, mailroom.operators);
  const dead = [deadLetterQueue, undeliveredQueue];
  letWatch(mailroom._watchers, dead, queue);
  return { queue, deadLetterQueue, undeliveredQueue, rule, externalRule };
}

function ruleOfExternalEvents(
  consumer: Construct,
  { name, events, externalBus }: InboxConsumerProps,
  queue: Queue,
  undeliveredQueue: Queue,
): Rule | undefined {
  const external = events.filter(isExternalEvent);
  if (external.length === 0) return undefined;
  const ruleName = externalRuleName(consumer, { externalBus });
  const rule = new Rule(consumer, 'ExternalRule', {
    ruleName,
    description: `External events for the consumer ${name}.`,
    eventBus: externalBus,
    eventPattern: encodeRulePattern(external),
  });
  const sending = { sid: 'TheExternalRuleSends', bus: externalBusName({ externalBus }), name: ruleName };
  sendTo(rule, sending, queue, undeliveredQueue);
  return rule;
}

/** The name of the rule of a consumer's external events. */
export function externalRuleName(
  consumer: Construct,
  { externalBus }: Pick<InboxConsumerProps, 'externalBus'>,
): string {
  return fixedRuleName(consumer, 'External', externalBus);
}

/** The name of the bus on which the external events of a consumer arrive. */
export function externalBusName({ externalBus }: Pick<InboxConsumerProps, 'externalBus'>): string {
  return externalBus?.eventBusName ?? DEFAULT_BUS;
}

/** The queues of a consumer of an existing queue. Their senders and other readers are not changed. */
function existingQueues(consumer: Construct, mailroom: IMailroom, queue: Queue): ConsumerIntake {
  const deadLetterQueue = queue.deadLetterQueue?.queue as Queue; // existingQueueProblems refuses a queue without one
  takeQueue(queue, consumer);
  refuseSharedDeadLetters(consumer, queue, deadLetterQueue);
  letWatch({ sweep: mailroom._watchers.sweep }, [deadLetterQueue]);
  const key = deadLetterQueue.encryptionMasterKey;
  if (key !== undefined)
    addToPolicyOf(
      consumer,
      key,
      key.keyArn,
      `the sweep cannot read the dead letters of ${deadLetterQueue.node.path}`,
      new PolicyStatement({
        principals: [mailroom._watchers.sweep],
        actions: ['kms:Decrypt'],
        resources: ['*'],
      }),
    );
  return { queue, deadLetterQueue };
}

/**
 * The events that the consumer receives: its subscriptions, and heartbeats, which cost nothing while none is sent. No heartbeat
 * reaches an existing queue.
 */
export function subscribed({ events, queue }: Pick<InboxConsumerProps, 'events' | 'queue'>): EntryEvent[] {
  return [...events, ...(queue?.existing === undefined ? [HEARTBEAT] : [])].map((event: Subscription) => ({
    source: event.source,
    type: event.type,
    filter: event.filter,
    ...(isExternalEvent(event) ? { external: { id: event.external.id } } : {}),
    ...(aggregateOf(event) !== undefined && { sequence: true as const }),
  }));
}
