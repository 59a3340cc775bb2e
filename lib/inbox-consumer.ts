import { Aspects, type Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Rule } from 'aws-cdk-lib/aws-events';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import type { BundlingOptions } from 'aws-cdk-lib/aws-lambda-nodejs';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { encodeRulePattern } from '../lambdas/runtime/bus/rule-pattern.ts';
import { encodeConsumerConfig } from '../lambdas/runtime/config.ts';
import type { EventRef } from '../lambdas/runtime/event.ts';
import { type ConsumerEntry, consumerEntryName } from '../lambdas/runtime/operations/directory.ts';
import { acknowledge, acknowledgeLastStop } from './acknowledgements.ts';
import { consumerSettings, subscriptionProblems } from './consumer-settings.ts';
import { type ConsumerSlo, sloProblems } from './consumer-slo.ts';
import { publishesProblems } from './declared-events.ts';
import { directoryEntry } from './directory-entry.ts';
import { queueEncryption } from './encryption.ts';
import { type EarlierName, earlierNameProblems, fixName } from './fixed-name.ts';
import type { Mailroom } from './mailroom.ts';
import { consumerNameProblems, serviceNameProblems } from './names.ts';
import { queueByName, sourceQueueName } from './queue-names.ts';
import { denySending, sendTo } from './queue-senders.ts';
import { maxReceiveCount } from './receives.ts';
import { refuse } from './refusal.ts';
import { QUEUE_RETENTION_MAX } from './retentions.ts';
import { ServiceFunction } from './service-function.ts';
import { warnOfEcho, warnOfSilence } from './subscription-warnings.ts';
import { CONSUMER_TAG, MAILROOM_TAG, SERVICE_TAG, tag } from './tags.ts';
import { type ConsumerSettings, consumerProblems } from './timings.ts';

/** What an {@link InboxConsumer} needs, and what may be chosen about it. */
export interface InboxConsumerProps {
  /** The Mailroom whose events it sees, and whose table holds its inbox. */
  readonly mailroom: Mailroom;
  /**
   * Its name: part of the keys of its inbox rows, so a deploy that changes it is refused unless `movedFrom` states it. Lower-case
   * letters, digits, hyphens.
   */
  readonly name: string;
  /**
   * The names that it had before, oldest first: they stay here for good. Under another name its inbox is empty. Before you add
   * one, read "Renaming a consumer" in docs/deploying.md.
   *
   * @default it always had this name
   */
  readonly movedFrom?: readonly EarlierName[];
  /** The service it belongs to: the `source` of the events that its handlers publish. */
  readonly service: string;
  /**
   * The events that it subscribes to: definitions of the catalogue, or `{ source, type }` where the catalogue is not at hand.
   * It gets exactly these: an event of the same type from another service does not reach it.
   */
  readonly events: readonly EventRef[];
  /**
   * The events that its handlers publish: definitions of the catalogue or `{ source, type }`, each owned by `service`. Without
   * any it has no right to the outbox, and `ctx.commit` refuses an event that is not listed (`NOT_DECLARED`).
   *
   * @default none
   */
  readonly publishes?: readonly EventRef[];
  /** The file that exports `handler`, made by `lambdaConsumer`, from the folder in which `cdk` runs. */
  readonly entry: string;
  /** The partition keys of the rows that its handlers write, with `*` for the rest. @default none */
  readonly domainKeys?: readonly string[];
  /** Environment variables besides those that Mailroom sets. @default none */
  readonly environment?: Readonly<Record<string, string>>;
  /** Memory, and with it the share of a CPU, in MB. @default 512 */
  readonly memoryMb?: number;
  /** How its function is bundled, as for a {@link ServiceFunction}. @default as there */
  readonly bundling?: BundlingOptions;
  /** The longest run of the function. @default 30 seconds */
  readonly timeout?: Duration;
  /**
   * How long a claim holds a message unless renewed, 3 seconds at least; at most the visibility timeout.
   *
   * @default 30 seconds, or the visibility timeout if that is less
   */
  readonly lease?: Duration;
  /**
   * How long SQS hides a received message; at least the timeout.
   *
   * @default 6 times the timeout, AWS's advice; 3 minutes at least
   */
  readonly visibilityTimeout?: Duration;
  /** How often, and after which delays, a message is tried again whose handler fails. @default 10 attempts over 35 to 72 minutes */
  readonly retry?: RetryOptions;
  /**
   * The longest outage of the consumer's own infrastructure that a message survives: its table cannot be reached, or its
   * function does not start. It counts no attempt, but each receive counts towards SQS's `maxReceiveCount`, which follows from
   * it. A rejected message takes as many quick receives to reach its dead-letter queue.
   *
   * @default 4 hours
   */
  readonly outageTolerance?: Duration;
  /** The most messages of one invocation, 1 to 10. @default 10 */
  readonly batchSize?: number;
  /**
   * The most invocations at a time, 2 to 1,000. It bounds what a runaway costs, and what it takes from the account's other functions.
   *
   * @default 100, a tenth of the concurrency that an account has at first (Lambda quotas: 1,000)
   */
  readonly maxConcurrency?: number;
  /** How long the queue keeps a message. @default 14 days */
  readonly queueRetention?: Duration;
  /** How long the dead-letter queue keeps a message, from its first send. @default 14 days */
  readonly deadLetterRetention?: Duration;
  /**
   * How long a processed inbox row is kept, in whole days; at least both queues' retentions and the bus's archive.
   *
   * @default 35 days, or what the queues and the archive need if that is more
   */
  readonly inboxRetention?: Duration;
  /** How soon its events must be processed; `DeliveryAlarms` watches it. @default nothing is promised */
  readonly slo?: ConsumerSlo;
  /**
   * What becomes of the queues and the logs when the stack is deleted, or a queue replaced. A kept queue keeps its
   * name: to deploy the consumer again, import it or delete it first.
   *
   * @default RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;
}

const MAX_CONCURRENCY = 100;

/** The retry schedule of a consumer. Each delay is four times the one before; half of it is jitter. */
export interface RetryOptions {
  /** After how many attempts a message is rejected, 1 to 100. @default 10 */
  readonly attempts?: number;
  /** The longest delay before the second attempt, 1 second at least. @default 2 seconds */
  readonly first?: Duration;
  /** The longest delay between two attempts, at least `first`; 11 hours at most. @default 15 minutes */
  readonly longest?: Duration;
}

/**
 * A consumer: a rule on the bus, a queue with its dead-letter queue, and the function that works on it behind its
 * inbox.
 *
 *     bus -> rule -> queue -> function -> inbox rows
 *              |       └> dead-letter queue (by SQS's own redrive policy)
 *              └> undelivered queue (what EventBridge could not hand to the queue)
 *
 * @throws `BAD_SETTINGS`, with every problem, when names or timings cannot work
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
 * ```
 */
export class InboxConsumer extends Construct {
  /** Its name, part of the keys of its inbox rows. */
  readonly name: string;
  /** The service it belongs to. */
  readonly service: string;
  /** What it promises; absent when it promises nothing. */
  readonly slo?: ConsumerSlo | undefined;
  /** Its messages: what the rule sends, and what is redriven. */
  readonly queue: Queue;
  /** Messages that SQS moved after `maxReceiveCount` receives: poison, or out of attempts. */
  readonly deadLetterQueue: Queue;
  /** Events that EventBridge could not hand to the queue for a day, or was not allowed to. */
  readonly undeliveredQueue: Queue;
  /** Sends the events that it subscribes to, and no others, to the queue. */
  readonly rule: Rule;
  /** Runs its handlers. Grant it what they need beside the Mailroom table. */
  readonly function: ServiceFunction;

  constructor(scope: Construct, id: string, props: InboxConsumerProps) {
    super(scope, id);
    const settings = consumerSettings(props);
    refuse(`The consumer ${this.node.path}`, [
      ...consumerNameProblems(props.name),
      ...earlierNameProblems(props.name, props.movedFrom ?? []),
      ...serviceNameProblems('service', props.service),
      ...subscriptionProblems(props),
      ...publishesProblems(props.service, props.publishes ?? []),
      ...consumerProblems(settings),
      ...sloProblems(props.slo),
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
    const common = {
      ...queueEncryption(props.mailroom.encryptionKey),
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
      visibilityTimeout: settings.visibilityTimeout,
      retentionPeriod: settings.queueRetention,
      deadLetterQueue: { queue: this.deadLetterQueue, maxReceiveCount: maxReceiveCount(settings) },
    });
    this.undeliveredQueue = new Queue(this, 'Undelivered', {
      ...common,
      retentionPeriod: QUEUE_RETENTION_MAX,
    });
    acknowledgeLastStop(this.deadLetterQueue, "the queue's dead-letter queue");
    acknowledgeLastStop(this.undeliveredQueue, "the dead-letter queue of the rule's target");
    this.rule = new Rule(this, 'Rule', {
      description: `Events for the consumer ${props.name}.`,
      eventBus: props.mailroom.bus,
      eventPattern: encodeRulePattern(props.events),
    });
    sendTo(this.rule, props.mailroom.bus, this.queue, this.undeliveredQueue);
    for (const queue of [this.queue, this.deadLetterQueue, this.undeliveredQueue])
      denySending(queue, props.mailroom);
    this.letWatch(props.mailroom);
    this.function = this.handler(props, settings);
    const earlier = (props.movedFrom ?? []).map(({ name }) => name);
    const names = fixName(this, props.mailroom.table.tableName, queueName, [...earlier, props.name]);
    // Before its rights, too: the old code would lose the inbox that it works on.
    this.function.role?.node.addDependency(...names);
    this.function.node.addDependency(...names);
    // A new event type must not reach the old code, which would reject it as unknown.
    this.rule.node.addDependency(this.function);
    this.enterDirectory(props, settings);
    warnOfEcho(this, props);
    Aspects.of(this).add({ visit: (node) => node === this && warnOfSilence(this, props) });
  }

  /**
   * Lets the Mailroom's sweep, and its audit, see what lies in the dead-letter queues. The queues' own policies say
   * so: a policy of the sweep's role would have to name queues of stacks that are deployed after its own.
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
      events: props.events.map(({ source, type }) => ({ source, type })),
      rule: this.rule.ruleName,
      queue: this.queue.queueUrl,
      deadLetterQueue: this.deadLetterQueue.queueUrl,
      undeliveredQueue: this.undeliveredQueue.queueUrl,
      function: this.function.functionName,
      maxAttempts: settings.retry.attempts,
      inboxRetentionDays: settings.inboxRetention.toDays(),
      inboxSince: inboxSince(props),
    };
    directoryEntry(this, consumerEntryName(table, props.name), entry);
  }

  private handler(props: InboxConsumerProps, settings: ConsumerSettings): ServiceFunction {
    const { mailroom, name, service, publishes = [], entry, memoryMb, bundling, removalPolicy } = props;
    const handler = new ServiceFunction(this, 'Function', {
      entry,
      service,
      description: `Mailroom consumer ${name}`,
      memoryMb,
      bundling,
      timeout: settings.timeout,
      logRemovalPolicy: removalPolicy,
      encryptionKey: mailroom.encryptionKey,
      tracing: mailroom.tracing,
      environment: {
        ...props.environment,
        ...encodeConsumerConfig({
          ...mailroom.producerConfig(service, publishes),
          consumer: name,
          queueUrl: this.queue.queueUrl,
          leaseMs: settings.lease.toMilliseconds(),
          visibilityTimeoutMs: settings.visibilityTimeout.toMilliseconds(),
          maxAttempts: settings.retry.attempts,
          retryFirstMs: settings.retry.first.toMilliseconds(),
          retryLongestMs: settings.retry.longest.toMilliseconds(),
          inboxRetentionDays: settings.inboxRetention.toDays(),
          inboxSince: inboxSince(props),
        }),
      },
    });
    mailroom.table.grantInbox(handler, name);
    if (publishes.length > 0) mailroom.grantProducer(handler, props.domainKeys);
    else mailroom.table.grantDomain(handler, props.domainKeys ?? []);
    handler.addEventSource(
      new SqsEventSource(this.queue, {
        batchSize: settings.batchSize,
        maxConcurrency: props.maxConcurrency ?? MAX_CONCURRENCY,
        reportBatchItemFailures: true,
      }),
    );
    acknowledge(handler, {
      LambdaEventSourceMappingDestination:
        'A mapping of SQS has no destination: what fails goes back to the queue, and from there to its dead-letter queue.',
    });
    return handler;
  }
}

/** When the inbox of its present name began; `undefined` where it never had another one. */
function inboxSince({ movedFrom }: InboxConsumerProps): number | undefined {
  return movedFrom?.at(-1)?.until.getTime();
}
