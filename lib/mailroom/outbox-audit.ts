import { Duration, type RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import { Grant } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Tracing } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { auditSettings } from '../../lambdas/runtime/base/config.ts';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { DELIVERY_GRACE_MS } from '../../lambdas/runtime/base/patience.ts';
import { busPath } from '../../lambdas/runtime/operations/bus-directory.ts';
import { DIRECTORY_ROOT } from '../../lambdas/runtime/operations/directory.ts';
import { between, refuse, refuseNames, say, unless, wholeMinutes } from '../checks/refusal.ts';
import { type MailroomFunctionProps, mailroomFunctionPropsProblems } from '../functions/function-props.ts';
import type { ServiceFunction } from '../functions/service-function.ts';
import {
  type AuditedDatabase,
  auditedOf,
  auditedProblems,
  besideDatabase,
  letRead,
} from './audited-database.ts';
import { grantDirectory, grantPath } from './directory-parameter.ts';
import { grantQueueKey } from './encryption.ts';
import type { MailroomTable } from './mailroom-table.ts';
import { ownFunction, scheduleRuns, timeoutUntilNext } from './own-function.ts';

/** Options of a scheduled audit. */
export interface OutboxAuditOptions {
  /** The interval between runs, in whole minutes from 5 minutes to 6 hours. @default 15 minutes */
  readonly every?: Duration;
  /**
   * The range of each run, up to a day back; at least twice `every` plus 5 minutes, so that two runs check each event.
   *
   * @default 1 hour, or three times `every` plus 5 minutes if that is longer
   */
  readonly since?: Duration;
  /**
   * Also reads the PostgreSQL database of the Mailroom's services, as `mailroom audit --database` does: its events and those of the table are
   * accounted for at every consumer, wherever its inbox is. The function then runs in the VPC of the database.
   *
   * @default the table alone; consumers whose inbox is in PostgreSQL are not audited
   */
  readonly postgres?: AuditedDatabase;
  /**
   * Also reads the MySQL or MariaDB database of the Mailroom's services, as `postgres` does. An audit reads one database.
   *
   * @default the table alone; consumers whose inbox is in MySQL are not audited
   */
  readonly mysql?: AuditedDatabase;
}

/** Properties of an {@link OutboxAudit}. */
export interface OutboxAuditProps extends OutboxAuditOptions {
  /** The table whose outbox and inbox it compares. */
  readonly table: MailroomTable;
  /** The bus whose rules it reads. */
  readonly bus: IEventBus;
  /** Other Mailrooms are on the bus: it also reads their entries in Parameter Store. @default false */
  readonly shared?: boolean;
  /** The removal policy of the logs. @default RETAIN */
  readonly removalPolicy?: RemovalPolicy;
  /** Encrypts the logs. @default a key that AWS owns */
  readonly encryptionKey?: IKey;
  /** X-Ray tracing of the function, as for a {@link ServiceFunction}. @default as for a {@link ServiceFunction} */
  readonly tracing?: Tracing;
  /** Other settings of the function, as for a `Mailroom`. @default none */
  readonly functionProps?: MailroomFunctionProps;
}

const SERVICE = 'mailroom-audit';

const EVERY_MIN = Duration.minutes(5);
const EVERY_MAX = Duration.hours(6);
const SINCE_MAX = Duration.days(1);

/** Events younger than this are skipped, because they may still be in flight. */
const GRACE = Duration.millis(DELIVERY_GRACE_MS);

/** The memory size that provides one CPU (Lambda developer guide): a run spends its time signing requests and parsing responses. */
const ONE_CPU_MB = 1_769;

const NAMES: PropNames<OutboxAuditProps> = {
  table: 'required',
  bus: 'required',
  every: 'optional',
  since: 'optional',
  postgres: 'optional',
  mysql: 'optional',
  shared: 'optional',
  removalPolicy: 'optional',
  encryptionKey: 'optional',
  tracing: 'optional',
  functionProps: 'optional',
};

/**
 * The scheduled audit: checks that every published event is accounted for at every consumer that must receive it, and emits
 * `EventsMissing` and `EventsDuplicated`, and each consumer's deliveries. Only the audit detects a missing bus, a drifted rule or a purged queue. It changes nothing
 * except that dead letters are hidden for a moment while it reads them.
 *
 * About `since / every` runs read each event, at some 0.14 USD per million events and run with two consumers (1.1 read units per
 * event, 0.125 USD per million on-demand units in us-east-1).
 *
 * A run that does not get through its range logs that. It starts with the oldest events, so that the next run covers the rest.
 *
 * @throws `BAD_SETTINGS` if the settings cannot work together
 *
 * @example
 * ```ts
 * new Mailroom(this, 'Mailroom', { audit: { every: Duration.minutes(15) } });
 * ```
 */
export class OutboxAudit extends Construct {
  /** Runs the audit. */
  readonly function: ServiceFunction;
  /** The interval between runs. */
  readonly every: Duration;
  /** The range of each run. */
  readonly since: Duration;
  /** The kind of database that it also reads; `undefined` if it reads the table alone. */
  readonly readsDatabase: 'postgres' | 'mysql' | undefined;

  constructor(scope: Construct, id: string, props: OutboxAuditProps) {
    super(scope, id);
    refuseNames(`The audit ${this.node.path}`, props, NAMES);
    this.every = props.every ?? Duration.minutes(15);
    this.since = props.since ?? defaultSince(this.every);
    const audited = auditedOf(props);
    this.readsDatabase = audited?.kind.engine;
    refuse(`The audit ${this.node.path}`, [
      ...auditProblems(this.every, this.since),
      ...mailroomFunctionPropsProblems(props.functionProps),
      ...auditedProblems(props),
    ]);
    const place = audited
      ? { ...props, functionProps: besideDatabase(this, audited, props.functionProps) }
      : props;
    this.function = ownFunction(this, 'Function', audited ? `${audited.kind.engine}-audit` : 'audit', place, {
      service: SERVICE,
      description: 'Mailroom audit: accounts for every published event',
      timeout: timeoutUntilNext(this.every),
      memoryMb: ONE_CPU_MB,
      environment: auditSettings.encode({
        tableName: props.table.tableName,
        sinceMs: this.since.toMilliseconds(),
        everyMs: this.every.toMilliseconds(),
      }),
    });
    this.grantRead(props);
    if (audited) letRead(this, this.function, audited);
    if (props.encryptionKey) grantQueueKey(props.encryptionKey, this.function, this);
    scheduleRuns(this, this.function, {
      description: 'Runs the audit of the Mailroom.',
      every: this.every,
      maxEventAge: this.every,
    });
  }

  private grantRead({ table, bus, shared = false }: OutboxAuditProps): void {
    const stack = Stack.of(this);
    const grant = (actions: string[], resourceArns: string[]) =>
      Grant.addToPrincipal({ grantee: this.function, actions, resourceArns });
    table.grantAudit(this.function);
    grantPath(this, busPath(bus.eventBusName), this.function);
    const directory = shared
      ? grantPath(this, `${DIRECTORY_ROOT}/*`, this.function)
      : grantDirectory(this, table, this.function);
    const entries = `${directory}/consumers/*`;
    grant(['ssm:GetParameterHistory'], [entries]);
    const rules = stack.formatArn({
      service: 'events',
      resource: 'rule',
      resourceName: `${bus.eventBusName}/*`,
    });
    grant(['events:DescribeRule', 'events:ListTargetsByRule'], [rules]);
    grant(['cloudwatch:GetMetricData'], ['*']);
    this.explain(entries, 'Consumers write the directory entries after this role is created.');
    this.explain(rules, 'Consumers create the rules of the bus after this role is created.');
    this.explain(
      '*',
      'The action cloudwatch:GetMetricData does not support resource-level permissions (service authorization reference).',
    );
  }

  /** Explains a wildcard of the role to cdk-nag. The finding's id contains the ARN, with references in angle brackets. */
  private explain(arn: string, reason: string): void {
    const resolved: string | { 'Fn::Join': [string, (string | { Ref: string })[]] } =
      Stack.of(this).resolve(arn);
    const flat =
      typeof resolved === 'string'
        ? resolved
        : resolved['Fn::Join'][1].map((part) => (typeof part === 'string' ? part : `<${part.Ref}>`)).join('');
    Validations.of(this).acknowledge({ id: `AwsSolutions-IAM5[Resource::${flat}]`, reason });
  }
}

function sinceMin(every: Duration): Duration {
  return Duration.millis(2 * every.toMilliseconds() + GRACE.toMilliseconds());
}

function defaultSince(every: Duration): Duration {
  const hour = Duration.hours(1);
  // Three intervals: deliveries count also if one run is late or left out.
  const since = sinceMin(every).plus(every);
  return since.toMilliseconds() > hour.toMilliseconds() ? since : hour;
}

function auditProblems(every: Duration, since: Duration): string[] {
  const min = sinceMin(every);
  return [
    ...between(
      'every',
      every,
      EVERY_MIN,
      EVERY_MAX,
      'A more frequent audit would only find events in flight.',
    ),
    ...wholeMinutes('every', every),
    ...between(
      'since',
      since,
      Duration.minutes(1),
      SINCE_MAX,
      'To look further back, run npx cdk-mailroom audit --since 7d.',
    ),
    ...unless(
      since.toMilliseconds() >= min.toMilliseconds(),
      `since is ${say(since)}, but must be at least ${say(min)}, twice every plus the ${say(GRACE)} in which an event may be ` +
        'in flight. Otherwise no two runs could find the same event missing, and the alarm needs two. Raise since.',
    ),
  ];
}
