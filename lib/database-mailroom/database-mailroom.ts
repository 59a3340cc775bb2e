import { RemovalPolicy } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction, Tracing } from 'aws-cdk-lib/aws-lambda';
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { MAILROOM_TAG, SERVICE_TAG } from '../../lambdas/runtime/base/resource-tags.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { refuse, refuseNames, unless } from '../checks/refusal.ts';
import {
  connect,
  databaseProblems,
  loginProblems,
  type MailroomDatabase,
} from '../database/database-connection.ts';
import { physicalName } from '../functions/physical-name.ts';
import { claimService, refuseClaimed } from '../mailroom/claims.ts';
import { inboxIsIn } from '../mailroom/database-inboxes.ts';
import {
  addUse,
  DeclaredEvents,
  publishesProblems,
  sourcesProblems,
  useProblems,
} from '../mailroom/declared-events.ts';
import { letServicesUse } from '../mailroom/encryption.ts';
import { joinBus, joinProblems } from '../mailroom/joined-bus.ts';
import { MailroomBus } from '../mailroom/mailroom-bus.ts';
import { producerProblems } from '../mailroom/mailroom-props.ts';
import { tag } from '../mailroom/tags.ts';
import { type DatabaseAlarmsOptions, databaseAlarms } from './database-alarms.ts';
import type { DatabaseKind } from './database-kind.ts';
import { DatabaseOutboxRelay, type DatabaseRelayOptions } from './database-outbox-relay.ts';

/** Properties of a {@link DatabaseMailroom}. */
export interface DatabaseMailroomProps {
  /** The database that holds the outbox. */
  readonly database: MailroomDatabase;
  /** The bus that it publishes to, e.g. that of a `Mailroom` whose consumers receive the events. On a shared bus, it claims its services. @default a new bus */
  readonly bus?: IEventBus;
  /** Sources that the relay publishes in addition to those of its producers: services of other apps. @default none */
  readonly services?: readonly string[];
  /** @default the default of each option */
  readonly relay?: DatabaseRelayOptions;
  /** Alarms on the relay. @default no alarms */
  readonly alarms?: DatabaseAlarmsOptions;
  /** The removal policy of the new bus and the logs. @default RETAIN_ON_UPDATE_OR_DELETE */
  readonly removalPolicy?: RemovalPolicy;
  /** Encrypts the new bus and the logs, as for a `Mailroom`. @default keys that AWS owns */
  readonly encryptionKey?: IKey;
  /** X-Ray tracing of the relay, as for a `ServiceFunction`. @default as for a `ServiceFunction` */
  readonly tracing?: Tracing;
}

/** The login of a function. */
export interface DatabaseLoginProps {
  /** The name of its login. @default the name of the service, or `user` of an existing database */
  readonly user?: string;
  /** The secret of its login, for an existing database. @default the secret of the database */
  readonly secret?: ISecret;
}

/** Properties of a producer of a {@link DatabaseMailroom}. */
export interface DatabaseProducerProps extends DatabaseLoginProps {
  /** The service's name: the `source` of its events. */
  readonly service: string;
  /** The events that the function publishes, each owned by the service. */
  readonly publishes: readonly EventRef[];
}

/** Properties of a consumer whose inbox is in the database. */
export interface DatabaseConsumerProps extends DatabaseLoginProps {
  /** The service of the consumer. */
  readonly service: string;
  /** The events that its handlers publish, as for the `InboxConsumer`: this relay publishes them. @default none */
  readonly publishes?: readonly EventRef[];
}

const NAMES: PropNames<DatabaseMailroomProps> = {
  database: 'required',
  bus: 'optional',
  services: 'optional',
  relay: 'optional',
  alarms: 'optional',
  removalPolicy: 'optional',
  encryptionKey: 'optional',
  tracing: 'optional',
};

const PRODUCER_NAMES: PropNames<DatabaseProducerProps> = {
  service: 'required',
  publishes: 'required',
  user: 'optional',
  secret: 'optional',
};

const CONSUMER_NAMES: PropNames<DatabaseConsumerProps> = {
  service: 'required',
  publishes: 'optional',
  user: 'optional',
  secret: 'optional',
};

/**
 * A Mailroom whose outbox is in a database: what {@link PostgresMailroom} and {@link MysqlMailroom} share. The relay runs from the first
 * deployment on, and logs errors until the database is migrated.
 *
 * @throws `BAD_SETTINGS` if the database accepts neither IAM authentication nor a secret, is of another kind, or a setting is invalid
 */
export abstract class DatabaseMailroom extends Construct {
  /** Receives the events that the relay publishes. */
  readonly bus: IEventBus;
  /** Publishes the events in the outbox. */
  readonly relay: DatabaseOutboxRelay;
  private readonly database: MailroomDatabase;
  /** The services that it has claimed on a shared bus; `undefined` on a bus of one Mailroom. */
  private readonly claimed: Set<string> | undefined;
  private readonly declared: DeclaredEvents;
  /** The dimension `table` of its metrics. */
  private readonly name: string;

  private readonly kind: DatabaseKind;

  /** @internal */
  protected constructor(scope: Construct, id: string, props: DatabaseMailroomProps, kind: DatabaseKind) {
    super(scope, id);
    this.kind = kind;
    refuseNames(`The ${kind.construct} ${this.node.path}`, props, NAMES);
    const {
      database,
      services = [],
      encryptionKey,
      removalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    } = props;
    const isShared = props.bus !== undefined && !(props.bus instanceof MailroomBus && !props.bus.shared);
    refuse(`The ${kind.construct} ${this.node.path}`, [
      ...databaseProblems(kind, database),
      ...sourcesProblems(services),
      ...(isShared ? joinProblems(this, props) : []),
    ]);
    this.claimed = isShared ? new Set() : undefined;
    this.database = database;
    this.declared = new DeclaredEvents(services);
    this.name = physicalName(this, 200);
    tag(this, { [MAILROOM_TAG]: this.node.path });
    if (encryptionKey) letServicesUse(this, encryptionKey);
    this.bus =
      props.bus ??
      new MailroomBus(this, 'Bus', { removalPolicy, shared: false, ...(encryptionKey && { encryptionKey }) });
    const relay = {
      ...props.relay,
      database,
      bus: this.bus,
      name: this.name,
      sources: () => this.declared.sources,
      removalPolicy,
      encryptionKey,
      tracing: props.tracing,
    };
    this.relay = new DatabaseOutboxRelay(this, 'Relay', relay, kind);
    const { role } = this.relay.function;
    const publishers = new Set(role && [role.roleArn]);
    if (this.claimed) joinBus(this, this.bus, { publishers, services: this.claimed });
    for (const service of services) this.claim(service);
    if (props.alarms) databaseAlarms(this, this.relay, this.name, props.alarms);
  }

  /**
   * Lets a function write events in transactions of the database: its environment, its login and its way through the network. The relay
   * is deployed before the function.
   *
   * @throws `BAD_SETTINGS` if the service or its login has an invalid name, if `publishes` is empty or contains an event of another service,
   * or if the function is outside of the VPC
   */
  addProducer(producer: LambdaFunction, props: DatabaseProducerProps): void {
    refuseNames(`The producer ${producer.node.path}`, props, PRODUCER_NAMES);
    const { service, publishes } = props;
    const mailroom = this.node.path;
    refuse(`The producer ${producer.node.path}`, [
      ...producerProblems(props),
      ...useProblems(producer, { mailroom, service }),
      ...this.loginProblems(producer, props),
    ]);
    const published = addUse(producer, { mailroom, service, publishes });
    this.declared.add(publishes);
    this.claim(service);
    const config = {
      service,
      tableName: this.name,
      publishes: [...new Set(published.map(({ type }) => type))],
    };
    for (const [name, value] of Object.entries(this.kind.producerVariables(config)))
      producer.addEnvironment(name, value);
    tag(producer, { [SERVICE_TAG]: service, [MAILROOM_TAG]: mailroom });
    this.login(producer, props);
    producer.node.addDependency(this.relay);
  }

  /**
   * Lets the function of an `InboxConsumer` keep its inbox in the database: the address of the database, its login and its way through
   * the network. Queue, rule and alarms are those of the `InboxConsumer` on the same bus.
   *
   * @throws `BAD_SETTINGS` if the login has an invalid name, or the function is outside of the VPC
   *
   * @example
   * ```ts
   * const payments = new InboxConsumer(this, 'Payments', { mailroom, name: 'payments', service: 'payments', events, entry, function: { vpc } });
   * events.grantConsumer(payments.function, { service: 'payments' });
   * ```
   */
  grantConsumer(consumer: LambdaFunction, props: DatabaseConsumerProps): void {
    refuseNames(`The consumer function ${consumer.node.path}`, props, CONSUMER_NAMES);
    const { service, publishes = [] } = props;
    refuse(`The consumer function ${consumer.node.path}`, [
      ...publishesProblems(service, publishes),
      ...this.kind.inboxProblems(this.database),
      ...this.loginProblems(consumer, props),
    ]);
    this.declared.add(publishes);
    if (publishes.length > 0) this.claim(service);
    inboxIsIn(consumer, this.kind.engine);
    this.login(consumer, props);
  }

  /** Claims a service on a shared bus, before the relay is deployed. */
  private claim(service: string): void {
    if (this.claimed === undefined || this.claimed.has(service)) return;
    refuseClaimed(this, this.bus, service);
    this.claimed.add(service);
    this.relay.node.addDependency(claimService(this, this.bus.eventBusName, service));
  }

  private login(client: LambdaFunction, props: DatabaseProducerProps | DatabaseConsumerProps): void {
    connect(client, client, this.kind, this.database, { user: this.userOf(props), secret: props.secret });
  }

  private userOf({ user, service }: DatabaseConsumerProps): string {
    return user ?? ('server' in this.database ? service : this.database.user);
  }

  private loginProblems(client: LambdaFunction, props: DatabaseConsumerProps): string[] {
    return [
      ...loginProblems(this.kind, 'user', this.userOf(props)),
      ...unless(
        !('server' in this.database) || client.isBoundToVpc,
        `The function ${client.node.path} is outside of the VPC of the database. Set its vpc.`,
      ),
      ...unless(
        !('server' in this.database) || props.secret === undefined,
        'secret is given, but functions log in to database.server with IAM. Omit it.',
      ),
    ];
  }
}
