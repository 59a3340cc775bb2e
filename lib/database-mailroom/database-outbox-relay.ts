import { Annotations, Duration, Lazy, type RemovalPolicy } from 'aws-cdk-lib';
import {
  InterfaceVpcEndpoint,
  InterfaceVpcEndpointAwsService,
  type IVpc,
  type SubnetSelection,
} from 'aws-cdk-lib/aws-ec2';
import type { IEventBus, Rule } from 'aws-cdk-lib/aws-events';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Tracing } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { DATABASE_NAMES } from '../../lambdas/runtime/base/database-engine.ts';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { between, refuse, refuseNames, unless, wholeDays } from '../checks/refusal.ts';
import { SCHEDULE_MIN } from '../checks/timings.ts';
import { connect, loginProblems, type MailroomDatabase } from '../database/database-connection.ts';
import {
  areIsolated,
  databaseClients,
  databaseSubnets,
  explainRules,
  subnetProblems,
} from '../database/database-network.ts';
import type { ServiceFunction } from '../functions/service-function.ts';
import { publishOn } from '../mailroom/bus-publishers.ts';
import { ownFunction, scheduleRuns } from '../mailroom/own-function.ts';
import type { DatabaseKind, RelayChoices } from './database-kind.ts';

/** Options of the relay of a {@link PostgresMailroom} or a {@link MysqlMailroom}. */
export interface DatabaseRelayOptions {
  /** The login of the relay. @default mailroom_relay_login, or `user` of an existing database */
  readonly user?: string;
  /** The pause after a pass that found no event: 50 milliseconds to 1 minute. @default 500 milliseconds */
  readonly poll?: Duration;
  /** The timeout of the function, whose loop runs for up to a minute: 75 seconds to 15 minutes. @default 90 seconds */
  readonly timeout?: Duration;
  /** The timeout of one PutEvents call. @default 5 seconds */
  readonly publishTimeout?: Duration;
  /** The time that a claim holds an event; more than twice the publish timeout plus 2 seconds. @default 30 seconds */
  readonly claimLease?: Duration;
  /** The number of failures after which an event is DEAD; only failures of the event itself count. @default 10 */
  readonly maxAttempts?: number;
  /** The retention of a published event, in whole days. @default 7 days */
  readonly publishedRetention?: Duration;
  /**
   * `aggregate` publishes the events of an aggregate one after another. A DEAD event holds up those behind it until it is requeued or discarded.
   *
   * @default in any order
   */
  readonly orderBy?: 'aggregate';
  /** Memory in MB. The function runs all the time, for 8.64 USD a month at 256 MB. @default 256 */
  readonly memoryMb?: number;
  /** The subnets of the function, with a route to EventBridge. @default the private subnets of the VPC, or the isolated ones */
  readonly vpcSubnets?: SubnetSelection;
  /**
   * Creates the interface endpoints that the relay needs without a NAT gateway: `events`, and `secretsmanager` if a secret is used. Each costs
   * 7.30 USD a month in each availability zone, and 0.01 USD per GB (PrivateLink pricing, us-east-1). Their private DNS applies to the whole
   * VPC, so leave it off if the VPC has them. Logs and metrics need no endpoint.
   *
   * @default false
   */
  readonly createEndpoints?: boolean;
}

/** Properties of a {@link DatabaseOutboxRelay}, with the choices of its kind of database. */
interface DatabaseOutboxRelayProps extends DatabaseRelayOptions {
  readonly database: MailroomDatabase;
  readonly bus: IEventBus;
  /** The dimension `table` of its metrics. */
  readonly name: string;
  readonly sources: () => readonly string[];
  readonly removalPolicy?: RemovalPolicy | undefined;
  readonly encryptionKey?: IKey | undefined;
  readonly tracing?: Tracing | undefined;
}

const NAMES: PropNames<DatabaseOutboxRelayProps> = {
  database: 'required',
  bus: 'required',
  name: 'required',
  sources: 'required',
  user: 'optional',
  poll: 'optional',
  timeout: 'optional',
  publishTimeout: 'optional',
  claimLease: 'optional',
  maxAttempts: 'optional',
  publishedRetention: 'optional',
  orderBy: 'optional',
  memoryMb: 'optional',
  vpcSubnets: 'optional',
  createEndpoints: 'optional',
  removalPolicy: 'optional',
  encryptionKey: 'optional',
  tracing: 'optional',
};

/**
 * The relay of a database: a function that a rule invokes each minute, and that polls for a minute. No concurrency is reserved (a
 * new account has none to spare): two runs that overlap publish different events, because each claims its own.
 */
export class DatabaseOutboxRelay extends Construct {
  readonly function: ServiceFunction;
  /** Runs the function each minute. */
  readonly rule: Rule;

  /** @internal */
  constructor(scope: Construct, id: string, props: DatabaseOutboxRelayProps, kind: DatabaseKind) {
    super(scope, id);
    const choices = Object.keys(kind.choices);
    refuseNames(`The relay ${this.node.path}`, props, {
      ...NAMES,
      ...Object.fromEntries(choices.map((name) => [name, 'optional'])),
    });
    const chosen: RelayChoices = Object.fromEntries(
      Object.entries(props).filter(([name]) => choices.includes(name)),
    );
    const { database, bus, name, removalPolicy, encryptionKey, tracing } = props;
    const { vpc } = database;
    const user = props.user ?? ('server' in database ? 'mailroom_relay_login' : database.user);
    const timeout = props.timeout ?? Duration.seconds(90);
    const publishTimeout = props.publishTimeout ?? Duration.seconds(5);
    const claimLease = props.claimLease ?? Duration.seconds(30);
    const poll = props.poll ?? Duration.millis(500);
    const publishedRetention = props.publishedRetention ?? Duration.days(7);
    const vpcSubnets = vpc && (props.vpcSubnets ?? databaseSubnets(vpc));
    const leaseMin = publishTimeout.toMilliseconds() * 2 + 2_000;
    refuse(`The relay ${this.node.path}`, [
      ...loginProblems(kind, 'relay.user', user),
      ...between('relay.poll', poll, Duration.millis(50), Duration.minutes(1), ''),
      ...between('relay.timeout', timeout, Duration.seconds(75), Duration.minutes(15), ''),
      ...between('relay.publishTimeout', publishTimeout, Duration.millis(100), Duration.minutes(1), ''),
      ...unless(
        claimLease.toMilliseconds() > leaseMin,
        `relay.claimLease is ${claimLease.toMilliseconds()} ms, but must be more than ${leaseMin} ms: twice publishTimeout, plus 2 seconds. Raise it.`,
      ),
      ...wholeDays('relay.publishedRetention', publishedRetention),
      ...choiceProblems(kind, { ...chosen, orderBy: props.orderBy }),
      ...kind.relayProblems(database, { ...chosen, orderBy: props.orderBy }),
      ...(vpc && vpcSubnets ? subnetProblems('relay.vpcSubnets', vpc, vpcSubnets) : []),
    ]);
    const config = {
      tableName: name,
      busName: bus.eventBusName,
      claimLeaseMs: claimLease.toMilliseconds(),
      publishTimeoutMs: publishTimeout.toMilliseconds(),
      maxAttempts: props.maxAttempts ?? 10,
      publishedRetentionDays: publishedRetention.toDays(),
      pollMs: poll.toMilliseconds(),
      ...(props.orderBy !== undefined && { orderBy: props.orderBy }),
    };
    const server = DATABASE_NAMES[kind.engine];
    const sourcesText = () => JSON.stringify(props.sources());
    const network = vpc && {
      vpc,
      vpcSubnets: vpcSubnets ?? {},
      securityGroups: [databaseClients(this, vpc, `The Mailroom relay of a ${server} database`)],
    };
    this.function = ownFunction(
      this,
      'Function',
      `${kind.engine}-relay`,
      { removalPolicy, encryptionKey, tracing, ...(network && { functionProps: network }) },
      {
        service: 'mailroom-relay',
        description: `Mailroom relay of a ${server} database`,
        timeout,
        memoryMb: props.memoryMb ?? 256,
        environment: {
          ...kind.relayVariables(config, chosen),
          MAILROOM_SOURCES: Lazy.string({ produce: sourcesText }),
        },
      },
    );
    connect(this, this.function, kind, database, { user, isOwn: true });
    publishOn(bus, this.function, props.sources);
    if (vpc && vpcSubnets) this.reach(vpc, vpcSubnets, props);
    this.rule = scheduleRuns(this, this.function, {
      description: `Runs the relay of a ${server} database.`,
      every: SCHEDULE_MIN,
      maxEventAge: SCHEDULE_MIN,
    });
  }

  private reach(
    vpc: IVpc,
    subnets: SubnetSelection,
    { createEndpoints, database }: DatabaseOutboxRelayProps,
  ): void {
    if (!createEndpoints) {
      if (areIsolated(vpc, subnets))
        Annotations.of(this).addWarningV2(
          'cdk-mailroom:relayWithoutRoute',
          `The relay ${this.node.path} runs in isolated subnets, and reaches EventBridge only by an interface endpoint of the VPC. Set relay.createEndpoints, or ` +
            'acknowledge this if the VPC has the endpoint.',
        );
      return;
    }
    // They admit the whole VPC: their private DNS also answers its other clients.
    const { EVENTBRIDGE, SECRETS_MANAGER } = InterfaceVpcEndpointAwsService;
    const services = { Events: EVENTBRIDGE, ...('secret' in database && { Secrets: SECRETS_MANAGER }) };
    for (const [id, service] of Object.entries(services))
      explainRules(new InterfaceVpcEndpoint(this, id, { vpc, service, subnets }));
  }
}

/** The words of an option of every relay. */
const ORDERS = { orderBy: ['aggregate'] } as const;

function choiceProblems({ choices }: DatabaseKind, given: Readonly<Record<string, unknown>>): string[] {
  return Object.entries({ ...choices, ...ORDERS }).flatMap(([name, values]) =>
    unless(
      given[name] === undefined || values.some((value) => value === given[name]),
      `relay.${name} is ${JSON.stringify(given[name])}, but must be ${values.map((value) => `"${value}"`).join(' or ')}. Use it, or omit ${name}.`,
    ),
  );
}
