import { Duration, Lazy, type RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { CfnGlobalTable } from 'aws-cdk-lib/aws-dynamodb';
import type { IRole } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction, Tracing } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { encodeProducerConfig, type ProducerConfig } from '../lambdas/runtime/config.ts';
import type { EventRef } from '../lambdas/runtime/event.ts';
import { type MailroomEntry, mailroomEntryName } from '../lambdas/runtime/operations/directory.ts';
import type { IInboxConsumer } from './consumer.ts';
import { DeclaredEvents, publishesProblems, sourcesProblems } from './declared-events.ts';
import { directoryEntry } from './directory-entry.ts';
import { letServicesUse } from './encryption.ts';
import { MailroomBus } from './event-bus.ts';
import { MailroomTable } from './mailroom-table.ts';
import { serviceNameProblems } from './names.ts';
import { OutboxAudit, type OutboxAuditOptions } from './outbox-audit.ts';
import { OutboxRelay, type OutboxRelayOptions } from './outbox-relay.ts';
import { refuse } from './refusal.ts';
import { archiveProblems } from './retentions.ts';
import { MAILROOM_TAG, SERVICE_TAG, tag } from './tags.ts';

/** What may be chosen about a {@link Mailroom}. */
export interface MailroomProps {
  /**
   * Over how many shards the events of one minute spread, 1 to 256. May be raised at any time and must not be
   * lowered while older rows are unpublished.
   *
   * @default 8
   */
  readonly shards?: number;
  /**
   * How long a new outbox row belongs to the stream path before the sweep may take it; more than the publish
   * timeout and 7 seconds.
   *
   * @default 30 seconds
   */
  readonly bornLease?: Duration;
  /**
   * What becomes of the table, the bus, the relay's failure queue and its logs with the stack; `DESTROY` is only for stages
   * whose data nobody needs.
   *
   * @default they are kept
   */
  readonly removalPolicy?: RemovalPolicy;
  /** Units a second that the table carries from its first moment. @default what DynamoDB gives a new table */
  readonly warmThroughput?: CfnGlobalTable.WarmThroughputProperty;
  /**
   * The one role that the table's policy lets delete or overwrite inbox rows.
   *
   * @default nobody may
   */
  readonly breakGlassRole?: IRole;
  /**
   * For how long every event of the bus is archived, in whole days: so far back a new consumer can be given what was
   * published before it was there. Inbox rows are kept as much longer.
   *
   * @default no archive
   */
  readonly archive?: Duration;
  /**
   * Encrypts the table, the bus and its archive, and the queues and logs of the relay, the audit and every consumer. Roles get the
   * grants that they need; operators need `kms:Decrypt` and `kms:GenerateDataKey` on it. Its costs, and how to turn it on in a running system: docs/security.md. Do not disable it while events are
   * on their way: EventBridge drops what it cannot decrypt, until the audit finds it.
   *
   * @default keys that AWS owns, at no cost
   */
  readonly encryptionKey?: IKey;
  /**
   * The roles that may send messages to the consumers' queues: those under which dead-letter messages are redriven, by the
   * `mailroom` command or in the SQS console. Import a role that has a path, such as one of IAM Identity Center, with
   * `Role.fromRoleArn`. The queues' policies deny it to every other principal.
   *
   * @default every principal whom its own policies allow it, except the roles of the Mailroom's functions
   */
  readonly operators?: readonly IRole[];
  /** Whether X-Ray records the relay, the audit and every consumer, as for a `ServiceFunction`. @default as there */
  readonly tracing?: Tracing;
  /**
   * Sources that the relay publishes besides those of the producers and consumers in this app: the names of services that
   * write to this Mailroom from other apps. An event of any other source waits in the outbox.
   *
   * @default none
   */
  readonly sources?: readonly string[];
  /** @default as said at each option */
  readonly relay?: OutboxRelayOptions;
  /**
   * Runs the audit on a schedule; `{}` takes the defaults. To turn it off again, deploy the stacks of the consumers first
   * (`cdk deploy --exclusively`): their queues name its role.
   *
   * @default it runs only when `mailroom audit` is typed
   */
  readonly audit?: OutboxAuditOptions;
}

/** What a service that writes events says of itself. */
export interface ProducerProps {
  /** Its name: the `source` of its events. */
  readonly service: string;
  /**
   * The events that the function publishes, definitions of the catalogue or `{ source, type }`: the service owns each of them.
   * The outbox refuses any other (`NOT_DECLARED`).
   */
  readonly publishes: readonly EventRef[];
  /** The partition keys of its own rows, with `*` for the rest, e.g. `ORDER#*`. @default none */
  readonly domainKeys?: readonly string[];
}

/**
 * A whole Mailroom: the table, the relay and the bus.
 *
 * One Mailroom is one trust domain. Each service that publishes may put rows on the outbox, and the relay publishes them under
 * any source that this Mailroom declares: such a service can publish events in the name of another. Give services that must not
 * trust each other a Mailroom each.
 *
 * Services write through {@link Mailroom.addProducer}, and read
 * through an `InboxConsumer` each.
 *
 * @throws `BAD_SETTINGS` when the timings cannot work together
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
  /** Holds outbox, inbox, and the domain rows that are kept beside them. */
  readonly table: MailroomTable;
  /** Takes what the relay publishes, and holds the rules of the consumers. */
  readonly bus: MailroomBus;
  /** Publishes what is in the outbox. */
  readonly relay: OutboxRelay;
  /** The scheduled audit; absent where there is none. */
  readonly audit: OutboxAudit | undefined;
  /** For how long events can be replayed; absent where there is no archive. */
  readonly archive: Duration | undefined;
  /** Encrypts all its data; absent where AWS's own keys do. */
  readonly encryptionKey: IKey | undefined;
  /** The roles that may send to the consumers' queues; absent where no role is named. */
  readonly operators: readonly IRole[] | undefined;
  /** Whether X-Ray records its functions. */
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
    this.declared = new DeclaredEvents(sources);
    const { removalPolicy, warmThroughput, breakGlassRole, archive, encryptionKey, tracing } = props;
    const common = { removalPolicy, encryptionKey };
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
      ...common,
      tracing,
    });
    if (props.audit !== undefined)
      this.audit = new OutboxAudit(this, 'Audit', {
        ...props.audit,
        table: this.table,
        bus: this.bus,
        ...common,
        tracing,
      });
    const entry: MailroomEntry = {
      stack: Stack.of(this).stackName,
      table: this.table.tableName,
      bus: this.bus.eventBusName,
      shards: this.shards,
      streamFunction: this.relay.streamFunction.functionName,
      sweepFunction: this.relay.sweepFunction.functionName,
      failureQueue: this.relay.failureQueue.queueUrl,
      sources: Lazy.list({ produce: () => this.declared.sources }),
    };
    directoryEntry(this, mailroomEntryName(this.table.tableName), entry);
  }

  /**
   * Lets a function write events and the rows of its service, and tells it how: the grants and the environment in
   * one call. The relay is deployed before it, so that no event can be written that nobody publishes.
   *
   * @throws `BAD_SETTINGS` when the service's name or a domain key cannot be used, when it publishes nothing, or an event of
   * another service
   */
  addProducer(producer: LambdaFunction, props: ProducerProps): void {
    const { service, publishes } = props;
    const nothing =
      'publishes is empty, but must hold the events that the function publishes, e.g. [OrderPlaced]. For a function that only ' +
      'writes rows of its service, call mailroom.table.grantDomain.';
    refuse(`The producer ${producer.node.path}`, [
      ...serviceNameProblems('service', service),
      ...(publishes.length === 0 ? [nothing] : publishesProblems(service, publishes)),
    ]);
    tag(producer, { [SERVICE_TAG]: service });
    for (const [name, value] of Object.entries(this.producerEnvironment(service, publishes))) {
      producer.addEnvironment(name, value);
    }
    this.grantProducer(producer, props.domainKeys);
  }

  /**
   * Lets a function write events, and deploys the relay before it. {@link Mailroom.addProducer} also tells it how, and the relay
   * what to publish.
   */
  grantProducer(producer: LambdaFunction, domainKeys: readonly string[] = []): void {
    const tags = { [MAILROOM_TAG]: this.node.path };
    for (const tagged of [producer, producer.role]) if (tagged) tag(tagged, tags);
    this.table.grantOutbox(producer);
    this.table.grantDomain(producer, domainKeys);
    producer.node.addDependency(this.relay);
  }

  /**
   * The environment variables of whatever writes events as this service and is no Lambda function, such as a container:
   * what `readProducerConfig` reads. Its role is granted by {@link MailroomTable.grantOutbox}.
   *
   * @param publishes - as for {@link Mailroom.addProducer}
   */
  producerEnvironment(service: string, publishes: readonly EventRef[]): Record<string, string> {
    return encodeProducerConfig(this.producerConfig(service, publishes));
  }

  /**
   * The settings of a function that writes as this service. It declares the events: the relay publishes their source.
   *
   * @throws `BAD_SETTINGS` when it publishes an event of another service
   */
  producerConfig(service: string, publishes: readonly EventRef[]): ProducerConfig {
    refuse(`The service ${service}`, publishesProblems(service, publishes));
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

  /** Every consumer that belongs to it so far, in the order in which they were made. */
  get consumers(): readonly IInboxConsumer[] {
    return [...this.byName.values()];
  }

  /**
   * Takes a consumer in, and its name: two consumers of one name would share an inbox, and each would find the other's
   * messages processed.
   *
   * @throws `BAD_SETTINGS` when the name is taken
   */
  addConsumer(consumer: IInboxConsumer): void {
    const { name } = consumer;
    const taken = this.byName.get(name)?.node.path;
    const problem =
      `name is "${name}", which ${taken} has already: two consumers of one name would share one inbox, and each ` +
      'event would reach only one of them. Choose a name of its own.';
    refuse(`The consumer ${consumer.node.path}`, taken === undefined ? [] : [problem]);
    this.byName.set(name, consumer);
  }
}
