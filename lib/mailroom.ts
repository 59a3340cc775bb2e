import { Duration, Lazy, Stack } from 'aws-cdk-lib';
import type { IRole } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction, Tracing } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { atOnceSettings, type ProducerConfig, producerSettings } from '../lambdas/runtime/base/config.ts';
import { type EventRef, RESERVED_SOURCE } from '../lambdas/runtime/events/event.ts';
import { type MailroomEntry, mailroomEntryName } from '../lambdas/runtime/operations/directory.ts';
import { SCHEMA } from '../lambdas/runtime/store/rows.ts';
import { serviceNameProblems } from './checks/names.ts';
import { refuse } from './checks/refusal.ts';
import { archiveProblems } from './checks/retentions.ts';
import { atOnceProblems } from './checks/timings.ts';
import type { IInboxConsumer } from './consumer/consumer-interface.ts';
import {
  addUse,
  DeclaredEvents,
  publishesProblems,
  sourcesProblems,
  useProblems,
} from './mailroom/declared-events.ts';
import { directoryEntry } from './mailroom/directory-parameter.ts';
import { letServicesUse } from './mailroom/encryption.ts';
import { MailroomBus } from './mailroom/mailroom-bus.ts';
import {
  type MailroomProps,
  type ProducerProps,
  producerProblems,
  turnOf,
} from './mailroom/mailroom-props.ts';
import { MailroomTable } from './mailroom/mailroom-table.ts';
import { OutboxAudit } from './mailroom/outbox-audit.ts';
import {
  OutboxHeartbeat,
  type OutboxHeartbeatOptions,
  type OutboxHeartbeatProps,
} from './mailroom/outbox-heartbeat.ts';
import { OutboxRelay } from './mailroom/outbox-relay.ts';
import { MAILROOM_TAG, SERVICE_TAG, tag } from './mailroom/tags.ts';

/**
 * A complete Mailroom: the table, the relay and the bus.
 *
 * One Mailroom is one trust domain. Each publishing service may put rows on the outbox, and the relay publishes them under any
 * source that this Mailroom declares, so a service can publish events in another's name. Give services that must not trust each
 * other separate Mailrooms.
 *
 * Services write through {@link Mailroom.addProducer} and read through one `InboxConsumer` each.
 *
 * @throws `BAD_SETTINGS` if the timings cannot work together
 *
 * @example
 * ```ts
 * const mailroom = new Mailroom(this, 'Mailroom');
 * mailroom.addProducer(api, { service: 'orders', publishes: [OrderPlaced], domainKeys: ['ORDER#*'] });
 * new InboxConsumer(this, 'Payments', {
 *   mailroom,
 *   name: 'payments',
 *   service: 'payments',
 *   events: [OrderPlaced],
 *   entry: 'src/payments.ts',
 * });
 * ```
 */
export class Mailroom extends Construct {
  /** Holds the outbox, the inbox and the domain rows next to them. */
  readonly table: MailroomTable;
  /** Receives the events that the relay publishes, and holds the rules of the consumers. */
  readonly bus: MailroomBus;
  /** Publishes the events in the outbox. */
  readonly relay: OutboxRelay;
  /** The scheduled audit; absent if none is configured. */
  readonly audit: OutboxAudit | undefined;
  /** The scheduled heartbeat; absent if none is configured. */
  readonly heartbeat: OutboxHeartbeat | undefined;
  /** The retention of the archive; absent without an archive. */
  readonly archive: Duration | undefined;
  /** Encrypts all its data; absent if AWS-owned keys do. */
  readonly encryptionKey: IKey | undefined;
  /** The roles that may send to the consumers' queues; absent if none are named. */
  readonly operators: readonly IRole[] | undefined;
  /** X-Ray tracing of its functions. */
  readonly tracing: Tracing | undefined;
  private readonly shards: number;
  private readonly bornLease: Duration;
  private readonly byName = new Map<string, IInboxConsumer>();
  private readonly declared: DeclaredEvents;

  constructor(scope: Construct, id: string, props: MailroomProps = {}) {
    super(scope, id);
    this.shards = props.shards ?? 8;
    this.bornLease = props.bornLease ?? Duration.seconds(30);
    this.archive = props.archive;
    refuse(`The archive of ${this.node.path}`, archiveProblems(props.archive));
    const { sources = [] } = props;
    refuse(`The Mailroom ${this.node.path}`, sourcesProblems(sources));
    // Always: a heartbeat that is written while the schedule is removed would otherwise wait for a source that nothing declares.
    this.declared = new DeclaredEvents([...sources, RESERVED_SOURCE]);
    const { removalPolicy, warmThroughput, breakGlassRole, archive, encryptionKey, tracing } = props;
    const common = { removalPolicy, encryptionKey };
    const functions = { ...common, tracing, functionProps: props.functionProps };
    this.encryptionKey = encryptionKey;
    this.operators = props.operators;
    this.tracing = tracing;
    tag(this, { [MAILROOM_TAG]: this.node.path });
    if (encryptionKey) letServicesUse(this, encryptionKey);
    this.table = new MailroomTable(this, 'Table', { ...common, warmThroughput, breakGlassRole });
    this.bus = new MailroomBus(this, 'Bus', { ...common, archive });
    this.relay = new OutboxRelay(this, 'Relay', {
      ...props.relay,
      table: this.table,
      bus: this.bus,
      shards: this.shards,
      bornLease: this.bornLease,
      sources: () => this.declared.sources,
      punctual: props.punctual,
      ...functions,
    });
    if (props.audit !== undefined)
      this.audit = new OutboxAudit(this, 'Audit', {
        ...props.audit,
        table: this.table,
        bus: this.bus,
        ...functions,
      });
    if (props.heartbeat !== undefined) this.heartbeat = this.beat(props.heartbeat, functions);
    const entry: MailroomEntry = {
      stack: Stack.of(this).stackName,
      stackPath: Stack.of(this).node.path,
      table: this.table.tableName,
      bus: this.bus.eventBusName,
      shards: this.shards,
      streamFunction: this.relay.streamFunction.functionName,
      sweepFunction: this.relay.sweepFunction.functionName,
      sweepRule: this.relay.sweepRule.ruleName,
      failureQueue: this.relay.failureQueue.queueUrl,
      sources: Lazy.list({ produce: () => this.declared.sources }),
      schema: SCHEMA,
      heartbeat: this.heartbeat && {
        function: this.heartbeat.function.functionName,
        rule: this.heartbeat.rule.ruleName,
        everyMs: this.heartbeat.every.toMilliseconds(),
      },
    };
    directoryEntry(this, mailroomEntryName(this.table.tableName), entry);
  }

  private beat(options: OutboxHeartbeatOptions, common: Partial<OutboxHeartbeatProps>): OutboxHeartbeat {
    const { table, shards, bornLease } = this;
    const heartbeat = new OutboxHeartbeat(this, 'Heartbeat', {
      ...common,
      ...options,
      table,
      shards,
      bornLease,
    });
    heartbeat.node.addDependency(this.relay);
    return heartbeat;
  }

  /**
   * Lets a function write events and the rows of its service: adds the grants and the environment variables in one call. The
   * relay is deployed before the function, so that every event written has a relay to publish it. A consumer's function may be a
   * producer of the same service, too: it may then publish the events of both.
   *
   * @throws `BAD_SETTINGS` if the service's name or a domain key is invalid, if `publishes` is empty, if it contains an event
   * of another service, or if the function belongs to another service or Mailroom
   */
  addProducer(producer: LambdaFunction, props: ProducerProps): void {
    const { service, publishes, publishAtOnce } = props;
    const mailroom = this.node.path;
    refuse(`The producer ${producer.node.path}`, [
      ...producerProblems(props),
      ...useProblems(producer, { mailroom, service }),
      ...(publishAtOnce === undefined ? [] : atOnceProblems(turnOf(publishAtOnce), this.relay.turnMax)),
      ...(publishAtOnce === undefined ? [] : this.bus.publisherProblems(producer)),
    ]);
    tag(producer, { [SERVICE_TAG]: service });
    const published = addUse(producer, { mailroom, service, publishes });
    for (const [name, value] of Object.entries(this.producerEnvironment(service, published))) {
      producer.addEnvironment(name, value);
    }
    this.grantProducer(producer, props.domainKeys);
    if (publishAtOnce !== undefined) this.letPublishAtOnce(producer, service, turnOf(publishAtOnce));
  }

  private letPublishAtOnce(producer: LambdaFunction, service: string, turn: Duration): void {
    const environment = atOnceSettings.encode({
      busName: this.bus.eventBusName,
      timeoutMs: turn.toMilliseconds(),
      publishedRetentionDays: this.relay.publishedRetention.toDays(),
    });
    for (const [name, value] of Object.entries(environment)) producer.addEnvironment(name, value);
    this.bus.grantPublishAtOnce(producer, () => [service]);
    this.table.grantMark(producer);
    this.table.grantReadOfMarks(this.relay.streamFunction);
  }

  /**
   * Lets a function write events, and deploys the relay before it. {@link Mailroom.addProducer} also sets the environment
   * variables, and the source that the relay publishes.
   */
  grantProducer(producer: LambdaFunction, domainKeys: readonly string[] = []): void {
    const tags = { [MAILROOM_TAG]: this.node.path };
    for (const tagged of [producer, producer.role]) if (tagged) tag(tagged, tags);
    this.table.grantOutbox(producer);
    this.table.grantDomain(producer, domainKeys);
    producer.node.addDependency(this.relay);
  }

  /**
   * Environment variables for a producer that is not a Lambda function, such as a container; `readProducerConfig` reads them.
   * Grant its role access with {@link MailroomTable.grantOutbox}.
   *
   * @param publishes - as for {@link Mailroom.addProducer}
   */
  producerEnvironment(service: string, publishes: readonly EventRef[]): Record<string, string> {
    return producerSettings.encode(this.producerConfig(service, publishes));
  }

  /**
   * Settings of a function that writes as this service. It also declares the events, so the relay publishes their source.
   *
   * @throws `BAD_SETTINGS` if `publishes` contains an event of another service
   */
  producerConfig(service: string, publishes: readonly EventRef[]): ProducerConfig {
    refuse(`The service ${service}`, [
      ...serviceNameProblems('service', service),
      ...publishesProblems(service, publishes),
    ]);
    this.declared.add(publishes);
    return {
      publishes: [...new Set(publishes.map(({ type }) => type))],
      service,
      tableName: this.table.tableName,
      shards: this.shards,
      bornLeaseMs: this.bornLease.toMilliseconds(),
    };
  }

  /**
   * The events that its services have declared so far.
   *
   * @internal
   */
  get _declared(): DeclaredEvents {
    return this.declared;
  }

  /** Its consumers so far, in the order of their creation. */
  get consumers(): readonly IInboxConsumer[] {
    return [...this.byName.values()];
  }

  /**
   * Registers a consumer under its name. Two consumers with one name would share an inbox, and each would find the other's
   * messages already processed.
   *
   * @throws `BAD_SETTINGS` if the name is taken
   */
  addConsumer(consumer: IInboxConsumer): void {
    const { name } = consumer;
    const taken = this.byName.get(name)?.node.path;
    const problem =
      `name is "${name}", but ${taken} already has that name: two consumers with one name would share an inbox, and each ` +
      'event would reach only one of them. Choose a different name.';
    refuse(`The consumer ${consumer.node.path}`, taken === undefined ? [] : [problem]);
    this.byName.set(name, consumer);
  }
}
