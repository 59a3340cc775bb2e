import { ArnFormat, Duration, Lazy, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Grant } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { FilterCriteria, FilterRule, StartingPosition, type Tracing } from 'aws-cdk-lib/aws-lambda';
import { DynamoEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { encodeRelayConfig } from '../lambdas/runtime/config.ts';
import { directoryPath } from '../lambdas/runtime/operations/directory.ts';
import { HAND_BACK_MS } from '../lambdas/runtime/relay/relay-timings.ts';
import { OUTBOX_PREFIX } from '../lambdas/runtime/store/rows.ts';
import { acknowledgeLastStop } from './acknowledgements.ts';
import { grantQueueKey, queueEncryption } from './encryption.ts';
import type { MailroomBus } from './event-bus.ts';
import type { MailroomTable } from './mailroom-table.ts';
import { failuresTo } from './queue-senders.ts';
import { refuse } from './refusal.ts';
import { QUEUE_RETENTION_MAX } from './retentions.ts';
import { scheduleRuns } from './scheduled-run.ts';
import { lambdaEntry, ServiceFunction } from './service-function.ts';
import { FUNCTION_TIMEOUT_MAX, type RelaySettings, relayProblems, SCHEDULE_MIN } from './timings.ts';

/** What may be chosen about a relay. */
export interface OutboxRelayOptions {
  /** How often the youngest minutes are swept; under a minute the sweep loops inside its minute. @default 1 minute */
  readonly sweepEvery?: Duration;
  /** How long one PutEvents call may take. @default 5 seconds */
  readonly publishTimeout?: Duration;
  /** How long a claim holds a row; more than twice the publish timeout and 2 seconds. @default 30 seconds */
  readonly claimLease?: Duration;
  /** After how many failures that are its own an event is DEAD. @default 10 */
  readonly maxAttempts?: number;
  /** How long a published row is kept, in whole days. @default 7 days */
  readonly publishedRetention?: Duration;
  /** The most records that the stream hands over at once, 1 to 10,000. @default 100 */
  readonly batchSize?: number;
  /** How many batches of one stream shard run at a time, 1 to 10. @default 1 */
  readonly parallelizationFactor?: number;
}

/** What an {@link OutboxRelay} needs. */
export interface OutboxRelayProps extends OutboxRelayOptions {
  /** The table whose outbox it empties. */
  readonly table: MailroomTable;
  /** The bus that it publishes to. */
  readonly bus: MailroomBus;
  /** Over how many shards the events of one minute spread, 1 to 256. */
  readonly shards: number;
  /** How long a new row belongs to the stream path. */
  readonly bornLease: Duration;
  /** The sources that it publishes; an event of another one waits. It is called at synth, when every producer is known. */
  readonly sources: () => readonly string[];
  /** What becomes of the failure queue and the logs when the stack is deleted. @default RETAIN_ON_UPDATE_OR_DELETE */
  readonly removalPolicy?: RemovalPolicy;
  /** Encrypts the failure queue and the logs. @default keys that AWS owns */
  readonly encryptionKey?: IKey;
  /** Whether X-Ray records the functions, as for a {@link ServiceFunction}. @default as there */
  readonly tracing?: Tracing;
}

const SERVICE = 'mailroom-relay';

/** What the stream path may need beside its leases: the pause before it hands a failed batch back, and a start. */
const STREAM_SLACK = Duration.seconds(30);

/** Retries of the mapping beside those that the stream handler asks for: what a handler that dies gets. */
const SPARE_STREAM_RETRIES = 4;

/** Records older than this are left to the sweep: the stream keeps a day, and new events should not wait. */
export const STREAM_RECORD_AGE_MAX = Duration.hours(1);

/** A sweep ends this long before the next begins. */
const SWEEP_PAUSE = Duration.seconds(5);

/** The longest run of one sweep, whatever its schedule (Lambda quotas: 15 minutes). */
const SWEEP_TIMEOUT_MAX = Duration.minutes(14);

/**
 * The relay: publishes what the outbox holds. One function follows the table's stream and publishes at once; the
 * other sweeps the table on a schedule and takes what the first one missed. Either alone loses nothing.
 *
 * @throws `BAD_SETTINGS` when the timings cannot work together
 *
 * @example
 * ```ts
 * new OutboxRelay(this, 'Relay', { table, bus, shards: 8, bornLease: Duration.seconds(30), sources: () => ['orders'] });
 * ```
 */
export class OutboxRelay extends Construct {
  /** Publishes new rows as the stream reports them. */
  readonly streamFunction: ServiceFunction;
  /** Publishes what is due and was not published. */
  readonly sweepFunction: ServiceFunction;
  /** Where the mapping leaves a letter about batches that it gave up on; the sweep publishes their events. */
  readonly failureQueue: Queue;
  /** How often the youngest minutes are swept. */
  readonly sweepEvery: Duration;

  constructor(scope: Construct, id: string, props: OutboxRelayProps) {
    super(scope, id);
    const settings = {
      shards: props.shards,
      bornLease: props.bornLease,
      publishTimeout: props.publishTimeout ?? Duration.seconds(5),
      claimLease: props.claimLease ?? Duration.seconds(30),
      sweepEvery: props.sweepEvery ?? SCHEDULE_MIN,
      maxAttempts: props.maxAttempts ?? 10,
      publishedRetention: props.publishedRetention ?? Duration.days(7),
    };
    refuse(`The relay ${this.node.path}`, relayProblems(settings));
    const config = {
      tableName: props.table.tableName,
      busName: props.bus.eventBusName,
      shards: settings.shards,
      claimLeaseMs: settings.claimLease.toMilliseconds(),
      publishTimeoutMs: settings.publishTimeout.toMilliseconds(),
      maxAttempts: settings.maxAttempts,
      publishedRetentionDays: settings.publishedRetention.toDays(),
      sweepEveryMs: settings.sweepEvery.toMilliseconds(),
    };
    const sourcesText = () =>
      encodeRelayConfig({ ...config, sources: props.sources() }).MAILROOM_SOURCES ?? '';
    const environment = {
      ...encodeRelayConfig(config),
      MAILROOM_SOURCES: Lazy.string({ produce: sourcesText }),
    };

    this.failureQueue = new Queue(this, 'Failures', {
      ...queueEncryption(props.encryptionKey),
      enforceSSL: true,
      removalPolicy: props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
      retentionPeriod: QUEUE_RETENTION_MAX,
    });
    acknowledgeLastStop(this.failureQueue, 'the failure destination of the stream mapping');
    this.streamFunction = this.publisher('Stream', props, environment, streamTimeout(settings));
    this.sweepFunction = this.publisher('Sweep', props, environment, sweepTimeout(settings.sweepEvery));
    props.table.grantSweep(this.sweepFunction);
    this.grantWatch(props.table);
    if (props.encryptionKey) grantQueueKey(props.encryptionKey, this.sweepFunction, this);
    this.followStream(props);
    this.scheduleSweep(settings.sweepEvery);
    this.sweepEvery = settings.sweepEvery;
  }

  private publisher(
    id: 'Stream' | 'Sweep',
    { table, bus, sources, removalPolicy, encryptionKey, tracing }: OutboxRelayProps,
    environment: Record<string, string>,
    timeout: Duration,
  ): ServiceFunction {
    const publisher = new ServiceFunction(this, id, {
      entry: lambdaEntry(`relay-${id.toLowerCase()}/handler`),
      service: SERVICE,
      description: `Mailroom relay, ${id.toLowerCase()} path`,
      timeout,
      environment,
      logRemovalPolicy: removalPolicy,
      encryptionKey,
      tracing,
    });
    table.grantRelay(publisher);
    bus.grantPublish(publisher, sources);
    return publisher;
  }

  /**
   * Lets the sweep look after dead letters: find the queues, see what is in its own, and when rejected messages were sent. The
   * queues of a consumer let it look by their own policies, because the consumer's stack is deployed after this one.
   */
  private grantWatch(table: MailroomTable): void {
    const grantee = this.sweepFunction;
    const directory = Stack.of(this).formatArn({
      service: 'ssm',
      resource: 'parameter',
      resourceName: directoryPath(table.tableName).slice(1),
      arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
    });
    // The right to a path is the right to everything below it (Systems Manager user guide, "Restricting access to Parameter
    // Store parameters using IAM policies").
    Grant.addToPrincipal({ grantee, actions: ['ssm:GetParametersByPath'], resourceArns: [directory] });
    this.failureQueue.grant(grantee, 'sqs:GetQueueAttributes', 'sqs:ReceiveMessage');
    table.grantRejected(grantee);
  }

  /** Only new outbox rows reach the function: marks, deletes and other rows are filtered out before it is paid for. */
  private followStream(props: OutboxRelayProps): void {
    this.streamFunction.addEventSource(
      new DynamoEventSource(props.table, {
        startingPosition: StartingPosition.TRIM_HORIZON,
        filters: [
          FilterCriteria.filter({
            eventName: FilterRule.isEqual('INSERT'),
            dynamodb: { Keys: { PK: { S: FilterRule.beginsWith(OUTBOX_PREFIX) } } },
          }),
        ],
        batchSize: props.batchSize ?? 100,
        parallelizationFactor: props.parallelizationFactor ?? 1,
        bisectBatchOnError: true,
        reportBatchItemFailures: true,
        retryAttempts: streamRetries(props.bornLease),
        maxRecordAge: STREAM_RECORD_AGE_MAX,
        onFailure: failuresTo(this.failureQueue),
      }),
    );
  }

  /** Two sweeps at once are safe, since every publish holds a claim: no concurrency is reserved (a new account has none to spare). */
  private scheduleSweep(sweepEvery: Duration): void {
    scheduleRuns(this, this.sweepFunction, {
      description: 'Runs the sweep of the Mailroom outbox.',
      every: schedulePeriod(sweepEvery),
      maxEventAge: SCHEDULE_MIN,
    });
  }
}

/**
 * How often the mapping hands a failed batch over again before the sweep is left to it: more often than the stream
 * handler hands one back while the born lease lasts, so that only a handler that dies reaches the failure queue.
 */
function streamRetries(bornLease: Duration): number {
  return Math.ceil(bornLease.toMilliseconds() / HAND_BACK_MS) + SPARE_STREAM_RETRIES;
}

/** Fresh records are published within their born lease and late ones within a claim: no batch outlasts both. */
function streamTimeout({ bornLease, claimLease }: RelaySettings): Duration {
  const needed =
    bornLease.toSeconds({ integral: false }) +
    claimLease.toSeconds({ integral: false }) +
    STREAM_SLACK.toSeconds();
  return Duration.seconds(Math.min(Math.ceil(needed), FUNCTION_TIMEOUT_MAX.toSeconds()));
}

function schedulePeriod(sweepEvery: Duration): Duration {
  return Duration.minutes(Math.max(1, sweepEvery.toMinutes({ integral: false })));
}

function sweepTimeout(sweepEvery: Duration): Duration {
  const untilNext = schedulePeriod(sweepEvery).toSeconds() - SWEEP_PAUSE.toSeconds();
  return Duration.seconds(Math.min(untilNext, SWEEP_TIMEOUT_MAX.toSeconds()));
}
