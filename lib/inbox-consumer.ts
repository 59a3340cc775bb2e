import { Aspects } from 'aws-cdk-lib';
import type { Rule } from 'aws-cdk-lib/aws-events';
import type { Alias, Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { EventOrder } from '../lambdas/runtime/base/order.ts';
import { CONSUMER_TAG, MAILROOM_TAG, SERVICE_TAG } from '../lambdas/runtime/base/resource-tags.ts';
import { consumerNameProblems, serviceNameProblems } from './checks/names.ts';
import { refuse } from './checks/refusal.ts';
import { consumerProblems } from './checks/timings.ts';
import { bridgeProblems, warnOfUnorderedBridge } from './consumer/bridge-wiring.ts';
import { consumerFunction } from './consumer/consumer-function.ts';
import { settingNameProblems } from './consumer/consumer-groups.ts';
import { consumerQueues, externalBusName } from './consumer/consumer-intake.ts';
import { consumerSettings, queuePropsProblems } from './consumer/consumer-settings.ts';
import { writeDirectoryEntry } from './consumer/directory-entry.ts';
import { functionProblems } from './consumer/existing-function.ts';
import { existingQueueProblems, ofExistingQueue } from './consumer/existing-queue.ts';
import { earlierNameProblems, pinName } from './consumer/fixed-name.ts';
import type { InboxConsumerProps } from './consumer/inbox-consumer-props.ts';
import { refuseSharedEnvironment } from './consumer/managed-instances.ts';
import { refuseNeighborPayloads } from './consumer/neighbor-payloads.ts';
import { orderProblems, refuseGaps, warnOfOrder } from './consumer/order-problems.ts';
import {
  subscriptionProblems,
  warnOfExternalIds,
  warnOfSilence,
  warnOfSubscriptions,
} from './consumer/subscriptions.ts';
import { sourceQueueName } from './functions/physical-name.ts';
import { claimConsumer } from './mailroom/claims.ts';
import { type ConsumerSlo, type IInboxConsumer, sloProblems } from './mailroom/consumer-interface.ts';
import { publishesProblems } from './mailroom/declared-events.ts';
import { placeProblems } from './mailroom/mailroom-base.ts';
import { heartbeatWindowProblems } from './mailroom/outbox-heartbeat.ts';
import { tag } from './mailroom/tags.ts';

/**
 * A consumer: a rule on the bus, a queue with its dead-letter queue, and the function that processes the queue's messages behind
 * an inbox.
 *
 *     bus -> rule -> queue -> function -> inbox rows
 *              |       └> dead-letter queue (by SQS's own redrive policy)
 *              └> undelivered queue (what EventBridge could not hand to the queue)
 *
 * @throws `BAD_SETTINGS`, with every problem, if names, timings or the function cannot work
 *
 * @example
 * ```ts
 * new InboxConsumer(this, 'Payments', {
 *   mailroom,
 *   name: 'payments',
 *   service: 'payments',
 *   events: [OrderPlaced],
 *   publishes: [PaymentCaptured],
 *   entry: 'src/payments.ts',
 *   domainKeys: ['PAYMENT#*'],
 * });
 *
 * // Or with a function that the stack already has:
 * new InboxConsumer(this, 'Ledger', { mailroom, name: 'ledger', service: 'ledger', events: [OrderPlaced], function: { existing: ledger } });
 * ```
 */
export class InboxConsumer extends Construct implements IInboxConsumer {
  readonly name: string;
  readonly service: string;
  readonly slo?: ConsumerSlo | undefined;
  readonly order?: EventOrder | undefined;
  readonly queue: Queue;
  readonly deadLetterQueue: Queue;
  readonly undeliveredQueue?: Queue | undefined;
  readonly rule?: Rule | undefined;
  readonly externalRule?: Rule | undefined;
  readonly externalBus?: string | undefined;
  readonly function: LambdaFunction;
  readonly alias?: Alias | undefined;

  constructor(scope: Construct, id: string, props: InboxConsumerProps) {
    super(scope, id);
    const own = `The consumer ${this.node.path}`;
    refuse(own, settingNameProblems(props));
    const settings = consumerSettings(props);
    refuse(own, [
      ...consumerNameProblems(props.name),
      ...earlierNameProblems(props.name, props.movedFrom ?? []),
      ...serviceNameProblems('service', props.service),
      ...placeProblems(props.mailroom, this),
      ...functionProblems(this, props),
      ...bridgeProblems(props),
      ...subscriptionProblems(this, props, settings),
      ...orderProblems(props),
      ...publishesProblems(props.service, props.publishes ?? []),
      ...existingQueueProblems(props, settings),
      ...consumerProblems(settings).map((problem) =>
        props.queue?.existing ? ofExistingQueue(problem) : problem,
      ),
      ...sloProblems(props.slo),
      ...queuePropsProblems(props.queue, {
        isEncrypted: props.mailroom.encryptionKey !== undefined,
        batchingWindow: settings.batchingWindow,
        heartbeatEvery: props.mailroom.heartbeatEvery,
      }),
      ...heartbeatWindowProblems(settings.batchingWindow, props.mailroom.heartbeatEvery),
    ]);
    this.name = props.name;
    this.service = props.service;
    this.slo = props.slo;
    this.order = props.order;
    props.mailroom.addConsumer(this);
    tag(this, {
      [MAILROOM_TAG]: props.mailroom.node.path,
      [SERVICE_TAG]: props.service,
      [CONSUMER_TAG]: props.name,
    });

    const queueName = sourceQueueName(this);
    const queues = consumerQueues(this, props, settings, queueName);
    this.queue = queues.queue;
    this.deadLetterQueue = queues.deadLetterQueue;
    this.undeliveredQueue = queues.undeliveredQueue;
    this.rule = queues.rule;
    this.externalRule = queues.externalRule;
    this.externalBus = queues.externalRule && externalBusName(props);
    const { function: handler, alias } = consumerFunction(this, this.queue, props, settings);
    this.function = handler;
    this.alias = alias;
    const earlier = (props.movedFrom ?? []).map(({ name }) => name);
    const { table, bus } = props.mailroom;
    const names = pinName(this, table.tableName, queueName, [...earlier, props.name]);
    const place = { bus: bus.eventBusName, table: table.tableName };
    const claim = claimConsumer(this, place, props.name);
    const created =
      props.queue?.existing === undefined
        ? [queues.queue, queues.deadLetterQueue, queues.undeliveredQueue]
        : [];
    for (const after of [...names, ...created]) after?.node.addDependency(claim);
    // Names come before the function's permissions, too: otherwise the old code would lose access to its inbox.
    for (const after of [handler.role, handler, alias]) after?.node.addDependency(...names);
    // A new event type must not reach the old code, which would reject it as unknown.
    for (const rule of [this.rule, this.externalRule])
      rule?.node.addDependency(handler, ...(alias ? [alias] : []));
    writeDirectoryEntry(this, props, settings);
    warnOfExternalIds(this, props);
    warnOfSubscriptions(this, props);
    refuseGaps(this, props);
    refuseSharedEnvironment(this, handler);
    refuseNeighborPayloads(this, props);
    warnOfOrder(this, props, settings);
    warnOfUnorderedBridge(this, props);
    Aspects.of(this).add({ visit: (node) => node === this && warnOfSilence(this, props) });
  }
}
