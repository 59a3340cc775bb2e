import { Aspects, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Rule } from 'aws-cdk-lib/aws-events';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Alias, Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { encodeRulePattern } from '../lambdas/runtime/bus/rule-pattern.ts';
import type { EventRef } from '../lambdas/runtime/event.ts';
import { HEARTBEAT } from '../lambdas/runtime/heartbeat-event.ts';
import { type ConsumerEntry, consumerEntryName } from '../lambdas/runtime/operations/directory.ts';
import { SCHEMA } from '../lambdas/runtime/store/rows.ts';
import { acknowledgeLastStop } from './acknowledgements.ts';
import type { IInboxConsumer } from './consumer.ts';
import { consumerFunction } from './consumer-function.ts';
import { consumerSettings, subscriptionProblems } from './consumer-settings.ts';
import { type ConsumerSlo, SLO_PERCENTILE, sloProblems } from './consumer-slo.ts';
import { publishesProblems } from './declared-events.ts';
import { directoryEntry } from './directory-entry.ts';
import { queueEncryption } from './encryption.ts';
import { functionProblems } from './existing-function.ts';
import { earlierNameProblems, fixName, inboxSince } from './fixed-name.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';
import type { Mailroom } from './mailroom.ts';
import { consumerNameProblems, serviceNameProblems } from './names.ts';
import { heartbeatWindowProblems } from './outbox-heartbeat.ts';
import { queueByName, sourceQueueName } from './physical-name.ts';
import { queueOptionsProblems } from './queue-options.ts';
import { denySending, sendTo } from './queue-senders.ts';
import { maxReceiveCount } from './receives.ts';
import { refuse } from './refusal.ts';
import { QUEUE_RETENTION_MAX } from './retentions.ts';
import { warnOfEcho, warnOfSilence } from './subscription-warnings.ts';
import { CONSUMER_TAG, MAILROOM_TAG, SERVICE_TAG, tag } from './tags.ts';
import { type ConsumerSettings, consumerProblems } from './timings.ts';

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
 * new InboxConsumer(this, 'Ledger', { mailroom, name: 'ledger', service: 'ledger', events: [OrderPlaced], function: ledger });
 * ```
 */
export class InboxConsumer extends Construct implements IInboxConsumer {
  readonly name: string;
  readonly service: string;
  readonly slo?: ConsumerSlo | undefined;
  readonly queue: Queue;
  readonly deadLetterQueue: Queue;
  readonly undeliveredQueue: Queue;
  readonly rule: Rule;
  readonly function: LambdaFunction;
  readonly alias?: Alias | undefined;

  constructor(scope: Construct, id: string, props: InboxConsumerProps) {
    super(scope, id);
    const settings = consumerSettings(props);
    refuse(`The consumer ${this.node.path}`, [
      ...consumerNameProblems(props.name),
      ...earlierNameProblems(props.name, props.movedFrom ?? []),
      ...serviceNameProblems('service', props.service),
      ...functionProblems(this, props),
      ...subscriptionProblems(props),
      ...publishesProblems(props.service, props.publishes ?? []),
      ...consumerProblems(settings),
      ...sloProblems(props.slo),
      ...queueOptionsProblems(props.queueProps, {
        isEncrypted: props.mailroom.encryptionKey !== undefined,
        batchingWindow: settings.batchingWindow,
        heartbeatEvery: props.mailroom.heartbeat?.every,
      }),
      ...heartbeatWindowProblems(settings.batchingWindow, props.mailroom.heartbeat?.every),
    ]);
    this.name = props.name;
    this.service = props.service;
    this.slo = props.slo;
    props.mailroom.addConsumer(this);
    tag(this, {
      [MAILROOM_TAG]: props.mailroom.node.path,
      [SERVICE_TAG]: props.service,
      [CONSUMER_TAG]: props.name,
    });

    const queueName = sourceQueueName(this);
    const { dataKeyReuse, deliveryDelay } = props.queueProps ?? {};
    const common = {
      ...queueEncryption(props.mailroom.encryptionKey),
      dataKeyReuse,
      enforceSSL: true,
      removalPolicy: props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    };
    this.deadLetterQueue = new Queue(this, 'DeadLetters', {
      ...common,
      retentionPeriod: settings.deadLetterRetention,
      redriveAllowPolicy: { sourceQueues: [queueByName(this, queueName)] },
    });
    this.queue = new Queue(this, 'Queue', {
      ...common,
      queueName,
      deliveryDelay,
      visibilityTimeout: settings.visibilityTimeout,
      retentionPeriod: settings.queueRetention,
      deadLetterQueue: { queue: this.deadLetterQueue, maxReceiveCount: maxReceiveCount(settings) },
    });
    this.undeliveredQueue = new Queue(this, 'Undelivered', {
      ...common,
      retentionPeriod: QUEUE_RETENTION_MAX,
    });
    acknowledgeLastStop(this.deadLetterQueue, 'the dead-letter queue of the source queue');
    acknowledgeLastStop(this.undeliveredQueue, "the dead-letter queue of the rule's target");
    this.rule = new Rule(this, 'Rule', {
      description: `Events for the consumer ${props.name}.`,
      eventBus: props.mailroom.bus,
      eventPattern: encodeRulePattern(subscribed(props)),
    });
    sendTo(this.rule, props.mailroom.bus, this.queue, this.undeliveredQueue);
    for (const queue of [this.queue, this.deadLetterQueue, this.undeliveredQueue])
      denySending(queue, props.mailroom.operators);
    this.letWatch(props.mailroom);
    const { function: handler, alias } = consumerFunction(this, this.queue, props, settings);
    this.function = handler;
    this.alias = alias;
    const earlier = (props.movedFrom ?? []).map(({ name }) => name);
    const names = fixName(this, props.mailroom.table.tableName, queueName, [...earlier, props.name]);
    // Names come before the function's permissions, too: otherwise the old code would lose access to its inbox.
    for (const after of [handler.role, handler, alias]) after?.node.addDependency(...names);
    // A new event type must not reach the old code, which would reject it as unknown.
    this.rule.node.addDependency(handler, ...(alias ? [alias] : []));
    this.enterDirectory(props, settings);
    warnOfEcho(this, props);
    Aspects.of(this).add({ visit: (node) => node === this && warnOfSilence(this, props) });
  }

  /**
   * Lets the Mailroom's sweep and audit look at the dead-letter queues. The queues' own policies grant it, because the sweep's
   * role cannot name queues of stacks that are deployed after its own.
   */
  private letWatch(mailroom: Mailroom): void {
    const dead = [this.deadLetterQueue, this.undeliveredQueue];
    mailroom.audit?.lookAt(this.queue, dead);
    for (const queue of dead) {
      queue.addToResourcePolicy(
        new PolicyStatement({
          sid: 'TheSweepLooksAtDeadLetters',
          principals: [mailroom.relay.sweepFunction.grantPrincipal],
          actions: ['sqs:GetQueueAttributes', 'sqs:ReceiveMessage'],
          resources: [queue.queueArn],
        }),
      );
    }
  }

  private enterDirectory(props: InboxConsumerProps, settings: ConsumerSettings): void {
    const table = props.mailroom.table.tableName;
    const entry: ConsumerEntry = {
      stack: Stack.of(this).stackName,
      name: props.name,
      service: props.service,
      events: subscribed(props),
      rule: this.rule.ruleName,
      queue: this.queue.queueUrl,
      deadLetterQueue: this.deadLetterQueue.queueUrl,
      undeliveredQueue: this.undeliveredQueue.queueUrl,
      function: this.function.functionName,
      alias: this.alias?.aliasName,
      maxAttempts: settings.retry.attempts,
      slo: props.slo && {
        latencyMs: props.slo.latency.toMilliseconds(),
        percentile: props.slo.percentile ?? SLO_PERCENTILE,
      },
      inboxRetentionDays: settings.inboxRetention.toDays(),
      inboxSince: inboxSince(props.movedFrom),
      schema: SCHEMA,
    };
    directoryEntry(this, consumerEntryName(table, props.name), entry);
  }
}

/** The events that the consumer receives: its subscriptions, and heartbeats, which cost nothing while none is sent. */
function subscribed({ events }: InboxConsumerProps): EventRef[] {
  return [...events, HEARTBEAT].map(({ source, type }) => ({ source, type }));
}
