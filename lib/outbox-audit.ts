import { ArnFormat, Duration, type RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { Grant, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Tracing } from 'aws-cdk-lib/aws-lambda';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { encodeAuditConfig } from '../lambdas/runtime/config.ts';
import { directoryPath } from '../lambdas/runtime/operations/directory.ts';
import { grantQueueKey } from './encryption.ts';
import type { MailroomBus } from './event-bus.ts';
import type { MailroomTable } from './mailroom-table.ts';
import { between, refuse, say, unless } from './refusal.ts';
import { scheduleRuns } from './scheduled-run.ts';
import { lambdaEntry, ServiceFunction } from './service-function.ts';

/** What may be chosen about a scheduled audit. */
export interface OutboxAuditOptions {
  /** How often it runs, in whole minutes from 5 minutes to 6 hours. @default 15 minutes */
  readonly every?: Duration;
  /**
   * How far back each run looks, up to a day; at least twice `every` and 5 minutes, so that two runs look at each event.
   *
   * @default 1 hour, or what `every` asks for if that is more
   */
  readonly since?: Duration;
}

/** What an {@link OutboxAudit} needs. */
export interface OutboxAuditProps extends OutboxAuditOptions {
  /** The table whose outbox and inbox it compares. */
  readonly table: MailroomTable;
  /** The bus whose rules it looks at. */
  readonly bus: MailroomBus;
  /** What becomes of the logs when the stack is deleted. @default RETAIN */
  readonly removalPolicy?: RemovalPolicy;
  /** Encrypts the logs. @default a key that AWS owns */
  readonly encryptionKey?: IKey;
  /** Whether X-Ray records the function, as for a {@link ServiceFunction}. @default as there */
  readonly tracing?: Tracing;
}

const SERVICE = 'mailroom-audit';

const EVERY_MIN = Duration.minutes(5);
const EVERY_MAX = Duration.hours(6);
const SINCE_MAX = Duration.days(1);

/** How long an event is left alone: it may still be on its way. */
const GRACE = Duration.minutes(5);

/** Memory that comes with one CPU (Lambda developer guide): the time of a run is spent on signing and reading answers. */
const ONE_CPU_MB = 1_769;

/** A run ends this long before the next begins, and whatever the schedule (Lambda quotas: 15 minutes). */
const PAUSE = Duration.seconds(5);
const TIMEOUT_MAX = Duration.minutes(14);

/**
 * The audit: proves on a schedule that every published event is accounted for at every consumer that must see it, and emits
 * `EventsMissing` and `EventsDoubled`. It is the only thing that notices a missing bus, a drifted rule, a purged queue. It
 * changes nothing but the visibility of dead letters, for a moment.
 *
 * Each event is read by about `since / every` runs: some 0.14 USD a million events and run, for two consumers (1.1 read units
 * an event, 0.125 USD a million units on demand in us-east-1).
 *
 * A run that has no time for all of its range says so in its log. It begins with the oldest events, so that the next one comes
 * to those that it left.
 *
 * @throws `BAD_SETTINGS` when the settings cannot work together
 *
 * @example
 * ```ts
 * new Mailroom(this, 'Mailroom', { audit: { every: Duration.minutes(15) } });
 * ```
 */
export class OutboxAudit extends Construct {
  /** Runs the audit. */
  readonly function: ServiceFunction;
  /** How often it runs. */
  readonly every: Duration;
  /** How far back each run looks. */
  readonly since: Duration;

  constructor(scope: Construct, id: string, props: OutboxAuditProps) {
    super(scope, id);
    this.every = props.every ?? Duration.minutes(15);
    this.since = props.since ?? defaultSince(this.every);
    refuse(`The audit ${this.node.path}`, auditProblems(this.every, this.since));
    this.function = new ServiceFunction(this, 'Function', {
      entry: lambdaEntry('audit/handler'),
      service: SERVICE,
      description: 'Mailroom audit: accounts for every published event',
      timeout: timeoutOf(this.every),
      memoryMb: ONE_CPU_MB,
      logRemovalPolicy: props.removalPolicy,
      encryptionKey: props.encryptionKey,
      tracing: props.tracing,
      environment: encodeAuditConfig({
        tableName: props.table.tableName,
        sinceMs: this.since.toMilliseconds(),
      }),
    });
    this.grantRead(props);
    if (props.encryptionKey) grantQueueKey(props.encryptionKey, this.function, this);
    scheduleRuns(this, this.function, {
      description: 'Runs the audit of the Mailroom.',
      every: this.every,
      maxEventAge: this.every,
    });
  }

  /**
   * Lets it see how full a consumer's queue is, and what lies in its dead-letter queues. The queues' own policies say so,
   * because the consumer's stack is deployed after this one.
   */
  lookAt(source: Queue, dead: readonly Queue[]): void {
    const look = (queue: Queue, actions: readonly string[]) =>
      queue.addToResourcePolicy(
        new PolicyStatement({
          sid: 'TheAuditLooks',
          principals: [this.function.grantPrincipal],
          actions: actions.map((action) => `sqs:${action}`),
          resources: [queue.queueArn],
        }),
      );
    look(source, ['GetQueueAttributes']);
    for (const queue of dead)
      look(queue, ['GetQueueAttributes', 'ReceiveMessage', 'ChangeMessageVisibility']);
  }

  private grantRead({ table, bus }: OutboxAuditProps): void {
    const stack = Stack.of(this);
    const grant = (actions: string[], resourceArns: string[]) =>
      Grant.addToPrincipal({ grantee: this.function, actions, resourceArns });
    table.grantAudit(this.function);
    const directory = stack.formatArn({
      service: 'ssm',
      resource: 'parameter',
      resourceName: directoryPath(table.tableName).slice(1),
      arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
    });
    grant(['ssm:GetParametersByPath'], [directory]);
    // A right to a path covers what is below it for GetParametersByPath only (Systems Manager user guide, "Restricting access").
    const entries = `${directory}/consumers/*`;
    grant(['ssm:GetParameterHistory'], [entries]);
    const rules = stack.formatArn({
      service: 'events',
      resource: 'rule',
      resourceName: `${bus.eventBusName}/*`,
    });
    grant(['events:DescribeRule', 'events:ListTargetsByRule'], [rules]);
    grant(['cloudwatch:GetMetricData'], ['*']);
    this.explain(entries, 'The entries of the directory are written by consumers, after this role.');
    this.explain(rules, 'The rules of the bus are made by consumers, after this role.');
    this.explain(
      '*',
      'The action cloudwatch:GetMetricData has no resources (service authorization reference).',
    );
  }

  /** Tells cdk-nag why the role has a wildcard. The finding's id holds the ARN, its references in angle brackets. */
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
  return sinceMin(every).toMilliseconds() > hour.toMilliseconds() ? sinceMin(every) : hour;
}

function auditProblems(every: Duration, since: Duration): string[] {
  const min = sinceMin(every);
  return [
    ...between(
      'every',
      every,
      EVERY_MIN,
      EVERY_MAX,
      'More often, it would only find events that are on their way.',
    ),
    ...unless(
      every.toMilliseconds() % Duration.minutes(1).toMilliseconds() === 0,
      `every is ${say(every)}, but must be a whole number of minutes: EventBridge runs a schedule once a minute at most.`,
    ),
    ...between(
      'since',
      since,
      Duration.minutes(1),
      SINCE_MAX,
      'For more, run npx mailroom audit --since 7d.',
    ),
    ...unless(
      since.toMilliseconds() >= min.toMilliseconds(),
      `since is ${say(since)}, but must be at least ${say(min)}, twice every and ${say(GRACE)} in which an event may be on ` +
        'its way: else two runs in a row could not find the same event missing, and the alarm waits for that. Raise since.',
    ),
  ];
}

function timeoutOf(every: Duration): Duration {
  const untilNext = every.toSeconds() - PAUSE.toSeconds();
  return Duration.seconds(Math.min(untilNext, TIMEOUT_MAX.toSeconds()));
}
