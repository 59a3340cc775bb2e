import { Duration, type RemovalPolicy } from 'aws-cdk-lib';
import type { CfnGlobalTable } from 'aws-cdk-lib/aws-dynamodb';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { IRole } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Tracing } from 'aws-cdk-lib/aws-lambda';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { serviceNameProblems } from '../checks/names.ts';
import type { MailroomFunctionProps } from '../functions/function-props.ts';
import { publishesProblems } from './declared-events.ts';
import type { OutboxAuditOptions } from './outbox-audit.ts';
import type { OutboxHeartbeatOptions } from './outbox-heartbeat.ts';
import type { OutboxRelayOptions } from './outbox-relay.ts';
import type { PayloadOptions } from './payload-bucket.ts';

/** Properties of a `Mailroom`. */
export interface MailroomProps {
  /**
   * A bus to join, on which several Mailrooms meet: a `MailroomBus` of this app, or one imported with `EventBus.fromEventBusName` or
   * `fromEventBusArn`. Each service on it is published by one Mailroom, and the bus denies its source to everyone else.
   *
   * @default the Mailroom makes its own bus, which no other can join
   */
  readonly bus?: IEventBus;
  /**
   * The number of shards over which the events of one minute are spread, 1 to 256. You can change it at any time: the sweep
   * keeps reading every shard that was ever used.
   *
   * @default 8
   */
  readonly shards?: number;
  /**
   * The time that a new outbox row is reserved for the stream relay before the sweep may publish it; more than the publish timeout
   * plus 7 seconds.
   *
   * @default 30 seconds
   */
  readonly streamLease?: Duration;
  /**
   * The removal policy of the table, the bus, the relay's failure queue and its logs. Use `DESTROY` only for
   * stages with disposable data. The bucket of `payloads` is always retained, because CloudFormation deletes only an empty one.
   *
   * @default they are retained
   */
  readonly removalPolicy?: RemovalPolicy;
  /** Read and write units per second that the table can serve immediately. @default the initial throughput of a new table */
  readonly warmThroughput?: CfnGlobalTable.WarmThroughputProperty;
  /**
   * The only role that the table's policy lets delete or overwrite inbox rows.
   *
   * @default no role
   */
  readonly breakGlassRole?: IRole;
  /**
   * The retention of an archive of every event, in whole days; that of a joined bus is a property of the bus. A new consumer can receive events that are at most this old;
   * inbox rows are kept longer by the same time.
   *
   * @default no archive
   */
  readonly archive?: Duration;
  /**
   * Encrypts the table, the bus and its archive, and the queues and logs of the relay, the audit and every consumer. Roles get
   * the grants that they need; operators need `kms:Decrypt` and `kms:GenerateDataKey` on it. docs/security.md states its cost,
   * and how to turn it on in a running system. Do not disable the key while events are in flight: EventBridge drops events that
   * it cannot decrypt, and only the audit finds them.
   *
   * @default keys that AWS owns, free of charge
   */
  readonly encryptionKey?: IKey;
  /**
   * The roles that may send messages to the consumers' queues, which redriving dead-letter messages requires, with the `mailroom`
   * command as in the SQS console. The queues' policies deny it to every other principal. Import a role that has a path, such as
   * one of IAM Identity Center, with `Role.fromRoleArn`.
   *
   * @default every principal whose own policies allow it, except the roles of the Mailroom's functions
   */
  readonly operators?: readonly IRole[];
  /** X-Ray tracing of the relay, the audit and every consumer, as for a `ServiceFunction`. @default as for a `ServiceFunction` */
  readonly tracing?: Tracing;
  /**
   * Other settings of the relay, the audit and the heartbeat: their VPC, architecture, layers, log settings, … Consumers have their
   * own `functionProps`. docs/deploying.md lists the endpoints that they need in a VPC.
   *
   * @default none
   */
  readonly functionProps?: MailroomFunctionProps;
  /**
   * Sources that the relay publishes in addition to those of the producers and consumers in this app: names of services that
   * write to this Mailroom from other apps. An event of any other source waits in the outbox.
   *
   * @default none
   */
  readonly sources?: readonly string[];
  /**
   * Keeps payloads above a threshold in a bucket, and only a reference in the event; functions take part with `lambdaPayloads`. See docs/payloads.md.
   *
   * @default each event carries its payload: an event of 1 MB or more is refused
   */
  readonly payloads?: PayloadOptions;
  /**
   * Publishes scheduled events up to 1 minute after their `deliverAt` instead of 1 to 3 minutes, for about 25 % more reads of the sweep:
   * each of its passes also reads the running minute and the one before it. It has no effect if `relay.sweepEvery` is less than a
   * minute: the sweep then reads the running minute that often anyway.
   *
   * @default false
   */
  readonly punctual?: boolean;
  /** @default the default of each option */
  readonly relay?: OutboxRelayOptions;
  /**
   * Runs the audit on a schedule; `{}` uses the defaults. To turn it off again, deploy the consumers' stacks first (`cdk deploy
   * --exclusively`), because their queues name the audit's role.
   *
   * @default no schedule: run `mailroom audit` by hand
   */
  readonly audit?: OutboxAuditOptions;
  /**
   * Sends a heartbeat on a schedule, an event that every consumer acknowledges; `{}` uses the defaults. Consumers of other apps take
   * part once they are deployed with this version.
   *
   * @default no heartbeat
   */
  readonly heartbeat?: OutboxHeartbeatOptions;
}

/** Options of a producer that publishes at once. */
export interface PublishAtOnceOptions {
  /**
   * The length of the producer's turn, from the creation of an event: its transaction, PutEvents and the mark end in it, and `commit`
   * returns at its end at the latest. If any of them fails, the stream relay publishes 2 seconds after the turn. 100 ms to 5 seconds.
   *
   * @default 1 second
   */
  readonly timeout?: Duration;
}

/** Properties of a producer. */
export interface ProducerProps {
  /** The service's name: the `source` of its events. */
  readonly service: string;
  /**
   * The events that the function publishes, as definitions of the catalog or `{ source, type }`, each owned by the service. The
   * outbox refuses any other (`NOT_DECLARED`).
   */
  readonly publishes: readonly EventRef[];
  /** Partition keys of the service's own rows, with `*` as a trailing wildcard, e.g. `ORDER#*`. @default none */
  readonly domainKeys?: readonly string[];
  /**
   * Lets the function publish its events right after their transaction; `{}` uses the defaults. Its code must opt in too:
   * `lambdaOutbox({ publishAtOnce: lambdaPublisher })`. docs/scaling.md says what it saves and costs.
   *
   * @default the relay publishes its events
   */
  readonly publishAtOnce?: PublishAtOnceOptions;
}

/** The length of the turn of a producer that publishes at once. */
export function turnOf({ timeout = Duration.seconds(1) }: PublishAtOnceOptions): Duration {
  return timeout;
}

/** Validates a producer. */
export function producerProblems({ service, publishes }: ProducerProps): string[] {
  const nothing =
    'publishes is empty. List the events that the function publishes, e.g. [OrderPlaced]. For a function that only ' +
    'writes rows of its service, call mailroom.table.grantDomain instead.';
  return [
    ...serviceNameProblems('service', service),
    ...(publishes.length === 0 ? [nothing] : publishesProblems(service, publishes)),
  ];
}
