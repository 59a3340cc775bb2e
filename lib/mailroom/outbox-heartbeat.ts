import { Duration, type RemovalPolicy } from 'aws-cdk-lib';
import type { Rule } from 'aws-cdk-lib/aws-events';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Tracing } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { heartbeatSettings } from '../../lambdas/runtime/base/config.ts';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { HEARTBEAT } from '../../lambdas/runtime/events/heartbeat-event.ts';
import { between, refuse, refuseNames, say, unless, wholeMinutes } from '../checks/refusal.ts';
import { type MailroomFunctionProps, mailroomFunctionPropsProblems } from '../functions/function-props.ts';
import type { ServiceFunction } from '../functions/service-function.ts';
import { grantDirectory } from './directory-parameter.ts';
import type { MailroomTable } from './mailroom-table.ts';
import { ownFunction, scheduleRuns } from './own-function.ts';

/** Options of a scheduled heartbeat. */
export interface OutboxHeartbeatOptions {
  /**
   * The interval between heartbeats, in whole minutes from 1 minute to 1 hour. A consumer is late if it has not acknowledged a
   * heartbeat when the next one is sent.
   *
   * @default 5 minutes
   */
  readonly every?: Duration;
}

/** Properties of an {@link OutboxHeartbeat}. */
export interface OutboxHeartbeatProps extends OutboxHeartbeatOptions {
  /** The table to whose outbox it writes. */
  readonly table: MailroomTable;
  /** The number of shards over which the events of one minute are spread, 1 to 256. */
  readonly shards: number;
  /** The time that a new row is reserved for the stream relay. */
  readonly streamLease: Duration;
  /** The removal policy of the logs. @default RETAIN */
  readonly removalPolicy?: RemovalPolicy;
  /** Encrypts the logs. @default a key that AWS owns */
  readonly encryptionKey?: IKey;
  /** X-Ray tracing of the function, as for a {@link ServiceFunction}. @default as for a {@link ServiceFunction} */
  readonly tracing?: Tracing;
  /** Other settings of the function, as for a `Mailroom`. @default none */
  readonly functionProps?: MailroomFunctionProps;
}

const SERVICE = 'mailroom-heartbeat';

const EVERY_MIN = Duration.minutes(1);
const EVERY_MAX = Duration.hours(1);

const NAMES: PropNames<OutboxHeartbeatProps> = {
  table: 'required',
  shards: 'required',
  streamLease: 'required',
  every: 'optional',
  removalPolicy: 'optional',
  encryptionKey: 'optional',
  tracing: 'optional',
  functionProps: 'optional',
};

/**
 * The scheduled heartbeat: an event that passes outbox, relay, bus, rule and queue, and that every consumer's runtime acknowledges
 * without running a handler. It proves the whole path in production, also while no service publishes. Each run emits `HeartbeatsLate`,
 * the number of consumers that have not acknowledged the heartbeat before.
 *
 * Every 5 minutes with two consumers, it costs some 0.60 USD a month, 0.50 of it for the metric and the two alarms (docs/cost.md).
 *
 * @throws `BAD_SETTINGS` if `every` is out of range
 *
 * @example
 * ```ts
 * new Mailroom(this, 'Mailroom', { heartbeat: { every: Duration.minutes(5) } });
 * ```
 */
export class OutboxHeartbeat extends Construct {
  /** Sends the heartbeats. */
  readonly function: ServiceFunction;
  /** Runs the function on a schedule. */
  readonly rule: Rule;
  /** The interval between heartbeats. */
  readonly every: Duration;

  constructor(scope: Construct, id: string, props: OutboxHeartbeatProps) {
    super(scope, id);
    refuseNames(`The heartbeat ${this.node.path}`, props, NAMES);
    this.every = props.every ?? Duration.minutes(5);
    refuse(`The heartbeat ${this.node.path}`, [
      ...between('every', this.every, EVERY_MIN, EVERY_MAX, ''),
      ...wholeMinutes('every', this.every),
      ...mailroomFunctionPropsProblems(props.functionProps),
    ]);
    const { table } = props;
    this.function = ownFunction(this, 'Function', 'heartbeat', props, {
      service: SERVICE,
      description: 'Mailroom heartbeat: an event that every consumer acknowledges',
      environment: heartbeatSettings.encode({
        service: HEARTBEAT.source,
        publishes: [HEARTBEAT.type],
        tableName: table.tableName,
        shards: props.shards,
        bornLeaseMs: props.streamLease.toMilliseconds(),
        everyMs: this.every.toMilliseconds(),
      }),
    });
    table.grantHeartbeat(this.function);
    grantDirectory(this, table, this.function);
    this.rule = scheduleRuns(this, this.function, {
      description: 'Sends the heartbeats of the Mailroom.',
      every: this.every,
      maxEventAge: EVERY_MIN,
    });
  }
}

/** A consumer that waits longer for messages than heartbeats are apart would always be late. */
export function heartbeatWindowProblems(window = Duration.seconds(0), every?: Duration): string[] {
  return unless(
    every === undefined || window.toMilliseconds() < every.toMilliseconds(),
    `queue.batchingWindow is ${say(window)}, but must be shorter than the interval between heartbeats, ${every && say(every)}. Otherwise ` +
      "each heartbeat would be late. Lower queue.batchingWindow or raise the Mailroom's heartbeat.every.",
  );
}
