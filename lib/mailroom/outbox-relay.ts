import { Duration, Lazy, RemovalPolicy } from 'aws-cdk-lib';
import type { IEventBus, Rule } from 'aws-cdk-lib/aws-events';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { FilterCriteria, StartingPosition, type Tracing } from 'aws-cdk-lib/aws-lambda';
import { DynamoEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { relaySettings } from '../../lambdas/runtime/base/config.ts';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { HAND_BACK_MS, STREAM_FILTER } from '../../lambdas/runtime/relay/stream-settings.ts';
import { refuse, refuseNames } from '../checks/refusal.ts';
import { QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import {
  FUNCTION_TIMEOUT_MAX,
  type RelaySettings,
  relayProblems,
  SCHEDULE_MIN,
  turnMax,
} from '../checks/timings.ts';
import { acknowledgeLastStop } from '../functions/acknowledged-warnings.ts';
import { type MailroomFunctionProps, mailroomFunctionPropsProblems } from '../functions/function-props.ts';
import type { ServiceFunction } from '../functions/service-function.ts';
import { publishOn } from './bus-publishers.ts';
import { grantDirectory } from './directory-parameter.ts';
import { grantQueueKey, queueEncryption } from './encryption.ts';
import type { MailroomTable } from './mailroom-table.ts';
import { ownFunction, scheduleRuns, timeoutUntilNext } from './own-function.ts';
import { DEAD_LETTERS_OF_NONE, failuresTo } from './queue-senders.ts';

/** Options of a relay. */
export interface OutboxRelayOptions {
  /** The interval at which the youngest minutes are swept; below a minute, the sweep loops within its invocation. @default 1 minute */
  readonly sweepEvery?: Duration;
  /** The timeout of one PutEvents call. @default 5 seconds */
  readonly publishTimeout?: Duration;
  /** The time that a claim holds a row; more than twice the publish timeout plus 2 seconds. @default 30 seconds */
  readonly claimLease?: Duration;
  /** The number of failures after which an event is DEAD; only failures of the event itself count. @default 10 */
  readonly maxAttempts?: number;
  /** The retention of a published row, in whole days. @default 7 days */
  readonly publishedRetention?: Duration;
  /** The maximum number of records per stream batch, 1 to 10,000. @default 100 */
  readonly batchSize?: number;
  /** The number of batches of one stream shard processed concurrently, 1 to 10. @default 1 */
  readonly parallelizationFactor?: number;
  /**
   * The time that Lambda gathers records before it invokes the stream relay, in whole seconds up to 3. A window makes batches of
   * rare events larger, so they cost less, and delays each event by up to its length.
   *
   * @default no window
   */
  readonly batchingWindow?: Duration;
  /** Memory of both functions in MB; the CPU share is proportional to it. @default 512 */
  readonly memoryMb?: number;
}

/** Properties of an {@link OutboxRelay}. */
export interface OutboxRelayProps extends OutboxRelayOptions {
  /** The table whose outbox it publishes. */
  readonly table: MailroomTable;
  /** The bus that it publishes to. */
  readonly bus: IEventBus;
  /** The number of shards over which the events of one minute are spread, 1 to 256. */
  readonly shards: number;
  /** The time that a new row is reserved for the stream relay. */
  readonly streamLease: Duration;
  /** The sources that it publishes; events of other sources wait. Called at synth, when every producer is known. */
  readonly sources: () => readonly string[];
  /** Publishes scheduled events up to a minute late, as for a `Mailroom`. @default false */
  readonly punctual?: boolean;
  /** The removal policy of the failure queue and the logs. @default RETAIN_ON_UPDATE_OR_DELETE */
  readonly removalPolicy?: RemovalPolicy;
  /** Encrypts the failure queue and the logs. @default keys that AWS owns */
  readonly encryptionKey?: IKey;
  /** X-Ray tracing of the functions, as for a {@link ServiceFunction}. @default as for a {@link ServiceFunction} */
  readonly tracing?: Tracing;
  /** Other settings of the functions, as for a `Mailroom`. @default none */
  readonly functionProps?: MailroomFunctionProps;
}

const SERVICE = 'mailroom-relay';

/** Time that the stream relay may need in addition to its leases: the pause before it returns a failed batch, and a cold start. */
const STREAM_SLACK = Duration.seconds(30);

/** Retries of the mapping in addition to those that the stream handler requests: for a handler that crashes. */
const SPARE_STREAM_RETRIES = 4;

/** Older records are left to the sweep. The stream keeps them for a day, and new events should not wait behind them. */
export const STREAM_RECORD_AGE_MAX = Duration.hours(1);

const NAMES: PropNames<OutboxRelayProps> = {
  table: 'required',
  bus: 'required',
  shards: 'required',
  streamLease: 'required',
  sources: 'required',
  sweepEvery: 'optional',
  publishTimeout: 'optional',
  claimLease: 'optional',
  maxAttempts: 'optional',
  publishedRetention: 'optional',
  batchSize: 'optional',
  parallelizationFactor: 'optional',
  batchingWindow: 'optional',
  memoryMb: 'optional',
  punctual: 'optional',
  removalPolicy: 'optional',
  encryptionKey: 'optional',
  tracing: 'optional',
  functionProps: 'optional',
};

/**
 * The relay: publishes the events in the outbox. The stream relay publishes new rows as the table's stream reports them; the sweep
 * reads the outbox on a schedule and publishes what the stream relay missed. Either one alone loses nothing.
 *
 * @throws `BAD_SETTINGS` if the timings cannot work together
 *
 * @example
 * ```ts
 * new OutboxRelay(this, 'Relay', { table, bus, shards: 8, streamLease: Duration.seconds(30), sources: () => ['orders'] });
 * ```
 */
export class OutboxRelay extends Construct {
  /** The stream relay: publishes new rows as the stream reports them. */
  readonly streamFunction: ServiceFunction;
  /** The sweep: publishes rows that are due and still unpublished. */
  readonly sweepFunction: ServiceFunction;
  /** Runs the sweep on a schedule. */
  readonly sweepRule: Rule;
  /** Receives a dead letter for each batch that the mapping stopped retrying; the sweep publishes the batch's events. */
  readonly failureQueue: Queue;
  /** The interval at which the youngest minutes are swept. */
  readonly sweepEvery: Duration;
  /** The retention of a published row. */
  readonly publishedRetention: Duration;
  /** The longest turn of a producer that publishes at once: after it, the stream relay still has to claim and publish. */
  readonly turnMax: Duration;

  constructor(scope: Construct, id: string, props: OutboxRelayProps) {
    super(scope, id);
    refuseNames(`The relay ${this.node.path}`, props, NAMES);
    const settings = {
      shards: props.shards,
      streamLease: props.streamLease,
      publishTimeout: props.publishTimeout ?? Duration.seconds(5),
      claimLease: props.claimLease ?? Duration.seconds(30),
      sweepEvery: props.sweepEvery ?? SCHEDULE_MIN,
      maxAttempts: props.maxAttempts ?? 10,
      publishedRetention: props.publishedRetention ?? Duration.days(7),
      batchingWindow: props.batchingWindow,
    };
    refuse(`The relay ${this.node.path}`, [
      ...relayProblems(settings),
      ...mailroomFunctionPropsProblems(props.functionProps),
    ]);
    const config = {
      tableName: props.table.tableName,
      busName: props.bus.eventBusName,
      shards: settings.shards,
      claimLeaseMs: settings.claimLease.toMilliseconds(),
      publishTimeoutMs: settings.publishTimeout.toMilliseconds(),
      maxAttempts: settings.maxAttempts,
      publishedRetentionDays: settings.publishedRetention.toDays(),
      sweepEveryMs: settings.sweepEvery.toMilliseconds(),
      // A sweep that loops within its minute reads the running minute anyway.
      punctual: (props.punctual && settings.sweepEvery.toSeconds() >= SCHEDULE_MIN.toSeconds()) || undefined,
    };
    const sourcesText = () =>
      relaySettings.encode({ ...config, sources: props.sources() }).MAILROOM_SOURCES ?? '';
    const environment = {
      ...relaySettings.encode(config),
      MAILROOM_SOURCES: Lazy.string({ produce: sourcesText }),
    };

    this.failureQueue = new Queue(this, 'Failures', {
      ...queueEncryption(props.encryptionKey),
      ...DEAD_LETTERS_OF_NONE,
      enforceSSL: true,
      removalPolicy: props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
      retentionPeriod: QUEUE_RETENTION_MAX,
    });
    acknowledgeLastStop(this.failureQueue, 'the failure destination of the stream mapping');
    this.streamFunction = this.publisher('Stream', props, environment, streamTimeout(settings));
    props.table.grantHigherShards(this.streamFunction);
    const untilNext = timeoutUntilNext(schedulePeriod(settings.sweepEvery));
    this.sweepFunction = this.publisher('Sweep', props, environment, untilNext);
    props.table.grantSweep(this.sweepFunction);
    this.grantWatch(props.table);
    if (props.encryptionKey) grantQueueKey(props.encryptionKey, this.sweepFunction, this);
    this.followStream(props);
    this.sweepRule = this.scheduleSweep(settings.sweepEvery);
    this.sweepEvery = settings.sweepEvery;
    this.publishedRetention = settings.publishedRetention;
    this.turnMax = turnMax(settings);
  }

  private publisher(
    id: 'Stream' | 'Sweep',
    props: OutboxRelayProps,
    environment: Record<string, string>,
    timeout: Duration,
  ): ServiceFunction {
    const publisher = ownFunction(this, id, id === 'Stream' ? 'relay-stream' : 'relay-sweep', props, {
      service: SERVICE,
      description: `Mailroom relay, ${id.toLowerCase()} path`,
      timeout,
      memoryMb: props.memoryMb,
      environment,
    });
    props.table.grantRelay(publisher);
    publishOn(props.bus, publisher, props.sources);
    return publisher;
  }

  /**
   * Lets the sweep watch dead letters: find the queues, read its own failure queue, and read when rejected messages were sent. A
   * consumer's queues grant access in their own policies, because the consumer's stack is deployed after this one.
   */
  private grantWatch(table: MailroomTable): void {
    const grantee = this.sweepFunction;
    grantDirectory(this, table, grantee);
    this.failureQueue.grant(grantee, 'sqs:GetQueueAttributes', 'sqs:ReceiveMessage');
    table.grantRejected(grantee);
  }

  /** Only new outbox rows invoke the function: the filter drops marks, deletes and other rows at no charge. */
  private followStream(props: OutboxRelayProps): void {
    this.streamFunction.addEventSource(
      new DynamoEventSource(props.table, {
        startingPosition: StartingPosition.TRIM_HORIZON,
        filters: [FilterCriteria.filter(STREAM_FILTER)],
        batchSize: props.batchSize ?? 100,
        parallelizationFactor: props.parallelizationFactor ?? 1,
        maxBatchingWindow: props.batchingWindow,
        bisectBatchOnError: true,
        reportBatchItemFailures: true,
        retryAttempts: streamRetries(props.streamLease),
        maxRecordAge: STREAM_RECORD_AGE_MAX,
        onFailure: failuresTo(this.failureQueue),
      }),
    );
  }

  /**
   * Two concurrent sweeps are safe, because every publish holds a claim; so no concurrency is reserved (a new account has none to
   * spare).
   */
  private scheduleSweep(sweepEvery: Duration): Rule {
    return scheduleRuns(this, this.sweepFunction, {
      description: 'Runs the sweep of the Mailroom outbox.',
      every: schedulePeriod(sweepEvery),
      maxEventAge: SCHEDULE_MIN,
    });
  }
}

/**
 * The number of times that the mapping retries a failed batch before it leaves the batch to the sweep: more often than the stream handler
 * returns one within the stream lease, so that only a crashing handler reaches the failure queue.
 */
function streamRetries(streamLease: Duration): number {
  return Math.ceil(streamLease.toMilliseconds() / HAND_BACK_MS) + SPARE_STREAM_RETRIES;
}

/** Fresh records are published within their stream lease and late ones within a claim, so no batch outlasts both. */
function streamTimeout({ streamLease, claimLease }: RelaySettings): Duration {
  const needed =
    streamLease.toSeconds({ integral: false }) +
    claimLease.toSeconds({ integral: false }) +
    STREAM_SLACK.toSeconds();
  return Duration.seconds(Math.min(Math.ceil(needed), FUNCTION_TIMEOUT_MAX.toSeconds()));
}

function schedulePeriod(sweepEvery: Duration): Duration {
  return Duration.minutes(Math.max(1, sweepEvery.toMinutes({ integral: false })));
}
