import type { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { Context } from 'aws-lambda';
import { MailroomError } from '../base/errors.ts';
import { createLogger, type ParentLogger } from './logger.ts';

/** The metrics that Mailroom emits, in the namespace `Mailroom`. Names are part of the public surface. */
export type MetricName =
  | 'EventsCommitted'
  | 'EventsPublished'
  | 'EventsRescued'
  | 'EventsRefused'
  | 'EventsDead'
  | 'PublishLatency'
  | 'PublishRetries'
  | 'BusFailures'
  | 'ClockDifference'
  | 'PendingEvents'
  | 'UndeclaredEvents'
  | 'OldestPendingAge'
  | 'DeadEvents'
  | 'OldestLeaseAge'
  | 'SweepFailures'
  | 'OldestSnapshotAge'
  | 'DeletedQueueRows'
  | 'QueueBytes'
  | 'SlotLagBytes'
  | 'DeadLetters'
  | 'FirstDeadLetterExpiry'
  | 'WatchFailures'
  | 'MessagesReceived'
  | 'MessagesProcessed'
  | 'MessagesDuplicate'
  | 'MessagesSkipped'
  | 'MessagesLeased'
  | 'MessagesLimited'
  | 'BatchesSplit'
  | 'MessagesFailed'
  | 'TableFailures'
  | 'MessagesRejected'
  | 'MessagesSuperseded'
  | 'MessagesStale'
  | 'MessagesOutOfOrder'
  | 'AttemptsOverThree'
  | 'LeasesExpired'
  | 'FenceRefused'
  | 'ProcessLatency'
  | 'UnstableEffects'
  | 'EffectsInDoubt'
  | 'EventsMissing'
  | 'EventsDuplicated'
  | 'RowsUnreadable'
  | 'RowsChanged'
  | 'Backlog'
  | 'OldestUnprocessedAge'
  | 'MessagesOverThreeAttempts'
  | 'DeliveriesPublished'
  | 'DeliveriesProcessed'
  | 'DeliveriesWithinSlo'
  | 'HeartbeatsLate';

/**
 * The port for Mailroom's logs and metrics; `powertoolsTelemetry` implements it. Payloads are never logged.
 */
export interface Telemetry {
  /** The destination of log lines. */
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;
  /** Called at the start of each invocation of a consumer or of Mailroom's own functions. @default nothing */
  startInvocation?(context: Partial<Context>): void;
  /** Adds to a counter. @param value - @default 1 */
  count(name: MetricName, value?: number): void;
  /** Records a current count, including zero. */
  gauge(name: MetricName, value: number): void;
  /** Records a duration or an age, milliseconds. */
  duration(name: MetricName, ms: number): void;
  /** Sends the recorded metrics; called once at the end of each invocation. */
  flush(): void;
}

/** The Lambda context of an invocation. Only the time left is required; the rest identifies the invocation in log lines. */
export type InvocationContext = Pick<Context, 'getRemainingTimeInMillis'> & Partial<Context>;

/** Fields of a log line. Never parts of a payload. */
export type LogFields = Readonly<Record<string, string | number>>;

/** Additions to Mailroom's own logs and metrics. */
export interface TelemetryOptions {
  /**
   * Your Powertools logger. Mailroom logs with a child of it, which takes over its level, its format and its current keys. A
   * `jsonReplacerFn` that replaces yours reduces errors to name, code, message, stack and causes.
   *
   * @default a new logger
   */
  readonly logger?: ParentLogger | undefined;
  /** Fields of every log line, such as your team. A field that Mailroom sets itself keeps its value. @default none */
  readonly logFields?: LogFields | undefined;
  /**
   * Dimensions of a second copy of each metric. The metrics with Mailroom's own dimensions, which alarms and dashboard read, stay as
   * they are. At most 10, none of them `service`, `table` or `consumer`. Each set of values adds one custom metric per metric
   * name, at 0.30 USD a month (CloudWatch pricing, us-east-1): never use an id.
   *
   * @default only Mailroom's own dimensions
   */
  readonly metricDimensions?: Readonly<Record<string, string>> | undefined;
}

/**
 * Telemetry with Powertools: JSON logs, and metrics in embedded metric format.
 *
 * @param options.service - the Powertools service name, a dimension of every metric
 * @param options.tableName - the Mailroom table, a second dimension: it distinguishes the Mailrooms of an account @default none
 * @param options.consumer - the consumer's name, a third dimension @default none
 * @param options.logger - like `logFields` and `metricDimensions`, as in {@link TelemetryOptions}
 * @param options.at - the time of the metrics that the first flush sends, epoch milliseconds @default the time at which they are sent
 *
 * @example
 * ```ts
 * const telemetry = powertoolsTelemetry({ service: 'payments', tableName: config.tableName, consumer: 'payments' });
 * ```
 *
 * @throws `BAD_CONFIG`, naming the dimension, if `metricDimensions` cannot be used
 */
export function powertoolsTelemetry(
  options: {
    readonly service: string;
    readonly tableName?: string;
    readonly consumer?: string;
    readonly at?: number;
  } & TelemetryOptions,
): Telemetry {
  const { metricDimensions: dimensions = {} } = options;
  refuseDimensions(dimensions);
  const log = createLogger(options.service, options);
  const metrics = new Metrics({
    namespace: 'Mailroom',
    serviceName: options.service,
    defaultDimensions: {
      ...(options.tableName === undefined ? {} : { table: options.tableName }),
      ...(options.consumer === undefined ? {} : { consumer: options.consumer }),
    },
  });
  if (options.at !== undefined) metrics.setTimestamp(options.at);
  const twice = Object.keys(dimensions).length > 0;
  const add = (name: MetricName, unit: (typeof MetricUnit)['Count' | 'Milliseconds'], value: number) => {
    // Powertools forgets added sets with each publish, which it may begin itself. The empty set keeps Mailroom's own dimensions.
    if (twice && !metrics.hasStoredMetrics()) metrics.addDimensions({}).addDimensions({ ...dimensions });
    metrics.addMetric(name, unit, value);
  };
  return {
    log,
    startInvocation: (context) => {
      log.refreshSampleRateCalculation?.();
      log.addContext?.(context as Context);
    },
    count: (name, value = 1) => {
      if (value > 0) add(name, MetricUnit.Count, value);
    },
    gauge: (name, value) => add(name, MetricUnit.Count, value),
    duration: (name, ms) => add(name, MetricUnit.Milliseconds, ms),
    flush: () => {
      if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
    },
  };
}

/** The telemetry of a function without its own `telemetry`. */
export function ownTelemetry(
  config: { readonly service: string; readonly tableName?: string; readonly consumer?: string },
  { logger, logFields, metricDimensions }: TelemetryOptions,
): Telemetry {
  return powertoolsTelemetry({ ...config, logger, logFields, metricDimensions });
}

/** The maximum number of additional dimensions. CloudWatch allows 30 in all (CloudWatch user guide, "Embedded metric format"). */
const DIMENSIONS_MAX = 10;

/**
 * The names of additional dimensions. They share one JSON object with Mailroom's own and with the metrics, whose names begin in
 * uppercase.
 */
const DIMENSION_NAME = /^(?!(?:service|table|consumer)$)[a-z][\w.-]{0,254}$/;

/** CloudWatch drops a metric with any other value, and Mailroom's own dimensions with it (CloudWatch API reference, "Dimension"). */
const DIMENSION_VALUE = /^(?=.*[^ ])[ -~]{1,1024}$/;

/** Refuses here what would otherwise throw, or replace a value, when the first metric is sent. */
function refuseDimensions(dimensions: Readonly<Record<string, string>>): void {
  const entries: readonly (readonly [string, unknown])[] = Object.entries(dimensions);
  const bad = (problem: string) => new MailroomError('BAD_CONFIG', `metricDimensions ${problem}`);
  if (entries.length > DIMENSIONS_MAX)
    throw bad(`has ${entries.length} dimensions; at most ${DIMENSIONS_MAX} are allowed.`);
  for (const [name, value] of entries) {
    if (!DIMENSION_NAME.test(name))
      throw bad(
        `contains "${name}". A name begins in lowercase, consists of letters, digits, ".", "_" and "-", and is not service, ` +
          "table or consumer, which are Mailroom's own. Rename it.",
      );
    if (typeof value !== 'string' || !DIMENSION_VALUE.test(value))
      throw bad(
        `contains "${name}" without a valid value; set a text of 1 to 1,024 printable ASCII characters.`,
      );
  }
}
