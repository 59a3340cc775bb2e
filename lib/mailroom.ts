import { Duration, Stack } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { IRole } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction, Tracing } from 'aws-cdk-lib/aws-lambda';
import type { IBucket } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';
import { atOnceSettings } from '../lambdas/runtime/base/config.ts';
import type { PropNames } from '../lambdas/runtime/base/given-names.ts';
import { BORN_LEASE_MS } from '../lambdas/runtime/base/patience.ts';
import { MAILROOM_TAG } from '../lambdas/runtime/base/resource-tags.ts';
import { RESERVED_SOURCE } from '../lambdas/runtime/events/event.ts';
import { type MailroomEntry, mailroomEntryName } from '../lambdas/runtime/operations/directory.ts';
import { SCHEMA } from '../lambdas/runtime/store/row-schema.ts';
import { refuse, refuseNames } from './checks/refusal.ts';
import { archiveProblems } from './checks/retentions.ts';
import { atOnceProblems } from './checks/timings.ts';
import { ImportedMailroom } from './imported-mailroom.ts';
import { auditorsOf, auditorsOn, auditsDecrypt, auditsReadInboxes } from './mailroom/bus-auditors.ts';
import { publishAtOnceOn, publisherProblems } from './mailroom/bus-publishers.ts';
import { claimService, listService, refuseClaimed } from './mailroom/claims.ts';
import { DeclaredEvents, sourcesProblems } from './mailroom/declared-events.ts';
import { directoryEntry } from './mailroom/directory-parameter.ts';
import { keyProblems, letServicesUse } from './mailroom/encryption.ts';
import { joinBus, joinProblems } from './mailroom/joined-bus.ts';
import { type IMailroom, MailroomBase, type QueueWatchers } from './mailroom/mailroom-base.ts';
import { MailroomBus } from './mailroom/mailroom-bus.ts';
import { type MailroomProps, type ProducerProps, turnOf } from './mailroom/mailroom-props.ts';
import { MailroomTable } from './mailroom/mailroom-table.ts';
import { OutboxAudit } from './mailroom/outbox-audit.ts';
import {
  OutboxHeartbeat,
  type OutboxHeartbeatOptions,
  type OutboxHeartbeatProps,
} from './mailroom/outbox-heartbeat.ts';
import { OutboxRelay } from './mailroom/outbox-relay.ts';
import { type PayloadBucket, payloadBucketOf } from './mailroom/payload-bucket.ts';
import { publishAttributes } from './mailroom/published-attributes.ts';
import { arnOf, fixedArn } from './mailroom/role-arns.ts';
import { tag } from './mailroom/tags.ts';

const NAMES: PropNames<MailroomProps> = {
  bus: 'optional',
  shards: 'optional',
  streamLease: 'optional',
  removalPolicy: 'optional',
  warmThroughput: 'optional',
  breakGlassRole: 'optional',
  archive: 'optional',
  encryptionKey: 'optional',
  operators: 'optional',
  tracing: 'optional',
  functionProps: 'optional',
  sources: 'optional',
  payloads: 'optional',
  punctual: 'optional',
  relay: 'optional',
  audit: 'optional',
  heartbeat: 'optional',
};

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
export class Mailroom extends MailroomBase {
  /** Holds the outbox, the inbox and the domain rows next to them. */
  readonly table: MailroomTable;
  /** Receives the events that the relay publishes, and holds the rules of the consumers. */
  readonly bus: IEventBus;
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
  /** @internal */
  readonly _declared: DeclaredEvents;
  /** @internal */
  readonly _shared: boolean;
  /** @internal */
  readonly _environment = undefined;
  /** @internal */
  readonly _payloads: PayloadBucket | undefined;
  protected readonly outbox: { readonly shards: number; readonly streamLease: Duration };
  /** @internal */
  readonly _auditors: string[] | undefined;
  private readonly claimed = new Set<string>();
  private readonly publishers = new Set<string>();

  /**
   * Attaches to a Mailroom of another CDK app in the same account and region. Consumers and producers get everything else from Parameter
   * Store when their stack is deployed; the deployment fails before it changes anything if the table belongs to no Mailroom, or to one of
   * another version. Deploy them again after the Mailroom has got another bus, another number of shards or another key.
   *
   * A service that a producer publishes must be one of the Mailroom's, or listed in its `sources`.
   *
   * @param tableName - the name itself, not a token: it is part of the names of parameters
   * @throws `BAD_SETTINGS` if `tableName` is a token or cannot be the name of a table
   *
   * @example
   * ```ts
   * const mailroom = Mailroom.fromTableName(this, 'Mailroom', 'orders-prod-MailroomTable-1ABCDEF');
   * new InboxConsumer(this, 'Invoices', { mailroom, name: 'invoices', service: 'invoices', events: [OrderPlaced], entry: 'src/invoices.ts' });
   * ```
   */
  static fromTableName(scope: Construct, id: string, tableName: string): IMailroom {
    return new ImportedMailroom(scope, id, tableName);
  }

  constructor(scope: Construct, id: string, props: MailroomProps = {}) {
    super(scope, id);
    refuseNames(`The Mailroom ${this.node.path}`, props, NAMES);
    const { shards = 8, streamLease = Duration.millis(BORN_LEASE_MS), sources = [] } = props;
    this.outbox = { shards, streamLease };
    this._shared = props.bus !== undefined;
    this.archive = props.bus instanceof MailroomBus ? props.bus.archiveRetention : props.archive;
    refuse(`The archive of ${this.node.path}`, archiveProblems(props.archive));
    refuse(`The Mailroom ${this.node.path}`, [
      ...sourcesProblems(sources),
      ...joinProblems(this, props),
      ...keyProblems(this, props.encryptionKey),
    ]);
    // Always: a heartbeat that is written while the schedule is removed would otherwise wait for a source that nothing declares.
    this._declared = new DeclaredEvents([...sources, RESERVED_SOURCE]);
    const { removalPolicy, warmThroughput, breakGlassRole, archive, encryptionKey, tracing } = props;
    const common = { removalPolicy, encryptionKey };
    const functions = { ...common, tracing, functionProps: props.functionProps };
    this.encryptionKey = encryptionKey;
    this.operators = props.operators;
    this.tracing = tracing;
    tag(this, { [MAILROOM_TAG]: this.node.path });
    this._auditors = props.bus && auditorsOf(this, props.bus);
    const decrypt = props.bus && encryptionKey && auditsDecrypt(this, auditorsOn(encryptionKey, props.bus));
    if (encryptionKey) letServicesUse(this, encryptionKey, decrypt && [decrypt]);
    this.table = new MailroomTable(this, 'Table', { ...common, warmThroughput, breakGlassRole });
    if (props.bus) this.table.addToResourcePolicy(auditsReadInboxes(auditorsOn(this, props.bus)));
    this._payloads = payloadBucketOf(this, props, this.archive);
    this.bus = props.bus ?? new MailroomBus(this, 'Bus', { ...common, archive, shared: false });
    this.relay = new OutboxRelay(this, 'Relay', {
      ...props.relay,
      table: this.table,
      bus: this.bus,
      shards,
      streamLease,
      sources: () => this._declared.sources,
      punctual: props.punctual,
      ...functions,
    });
    for (const relay of [this.relay.streamFunction, this.relay.sweepFunction]) this.publishes(relay);
    if (props.audit !== undefined)
      this.audit = new OutboxAudit(this, 'Audit', {
        ...props.audit,
        table: this.table,
        bus: this.bus,
        shared: this._shared,
        ...functions,
      });
    if (this.audit?.function.role && props.bus instanceof MailroomBus)
      props.bus._listAuditor(fixedArn(this.audit.function.role));
    if (props.heartbeat !== undefined) this.heartbeat = this.beat(props.heartbeat, functions);
    const entry = (): MailroomEntry => ({
      stack: Stack.of(this).stackName,
      stackPath: Stack.of(this).node.path,
      table: this.table.tableName,
      bus: this.bus.eventBusName,
      shards,
      streamFunction: this.relay.streamFunction.functionName,
      sweepFunction: this.relay.sweepFunction.functionName,
      sweepRule: this.relay.sweepRule.ruleName,
      failureQueue: this.relay.failureQueue.queueUrl,
      sources: this._declared.sources,
      schema: SCHEMA,
      heartbeat: this.heartbeat && {
        function: this.heartbeat.function.functionName,
        rule: this.heartbeat.rule.ruleName,
        everyMs: this.heartbeat.every.toMilliseconds(),
      },
    });
    directoryEntry(this, mailroomEntryName(this.table.tableName), entry);
    for (const source of new Set(sources)) this.declareService(source);
    if (props.bus !== undefined)
      joinBus(this, props.bus, { publishers: this.publishers, services: this.claimed });
    publishAttributes(this, this.outbox);
  }

  /** Keeps payloads above the threshold, each under `events/<eventId>`; absent without `payloads`. */
  get payloadBucket(): IBucket | undefined {
    return this._payloads;
  }

  get heartbeatEvery(): Duration | undefined {
    return this.heartbeat?.every;
  }

  /** @internal */
  get _watchers(): QueueWatchers {
    const own = this.audit?.function.grantPrincipal;
    const others = this._shared && ((policyOwner: Construct) => auditorsOn(policyOwner, this.bus));
    const sweep = this.relay.sweepFunction.grantPrincipal;
    return { sweep, ...(own && { audit: own }), ...(others && { others }) };
  }

  private beat(options: OutboxHeartbeatOptions, common: Partial<OutboxHeartbeatProps>): OutboxHeartbeat {
    const { table, outbox } = this;
    const heartbeat = new OutboxHeartbeat(this, 'Heartbeat', { ...common, ...options, ...outbox, table });
    heartbeat.node.addDependency(this.relay);
    return heartbeat;
  }

  override addProducer(producer: LambdaFunction, props: ProducerProps): void {
    super.addProducer(producer, props);
    if (props.publishAtOnce !== undefined)
      this.letPublishAtOnce(producer, props.service, turnOf(props.publishAtOnce));
  }

  protected publishAtOnceProblems(producer: LambdaFunction, { publishAtOnce = {} }: ProducerProps): string[] {
    return [
      ...atOnceProblems(turnOf(publishAtOnce), this.relay.turnMax),
      ...publisherProblems(this, producer),
    ];
  }

  private letPublishAtOnce(producer: LambdaFunction, service: string, turn: Duration): void {
    const environment = atOnceSettings.encode({
      busName: this.bus.eventBusName,
      timeoutMs: turn.toMilliseconds(),
      publishedRetentionDays: this.relay.publishedRetention.toDays(),
    });
    for (const [name, value] of Object.entries(environment)) producer.addEnvironment(name, value);
    publishAtOnceOn(this, producer, () => [service]);
    this.publishes(producer);
    this.table.grantMark(producer);
    this.table.grantReadOfMarks(this.relay.streamFunction);
  }

  /** Exempts a function from the statement that denies the Mailroom's services to others. */
  private publishes({ role }: LambdaFunction): void {
    if (this._shared && role) this.publishers.add(arnOf(role, this));
  }

  override grantProducer(producer: LambdaFunction, domainKeys: readonly string[] = []): void {
    super.grantProducer(producer, domainKeys);
    producer.node.addDependency(this.relay);
  }

  /** Claims a service on the bus. The heartbeat's source belongs to every Mailroom. */
  protected declareService(service: string): void {
    if (this.claimed.has(service)) return;
    refuseClaimed(this, this.bus, service);
    this.claimed.add(service);
    const { tableName } = this.table;
    this.table.node.addDependency(claimService(this, this.bus.eventBusName, service));
    listService(this, tableName, service);
  }
}
