import type { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import { createLogger } from './logger.ts';

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
  | 'DeadLetters'
  | 'FirstDeadLetterExpiry'
  | 'WatchFailures'
  | 'MessagesReceived'
  | 'MessagesProcessed'
  | 'MessagesDuplicate'
  | 'MessagesLeased'
  | 'MessagesFailed'
  | 'TableFailures'
  | 'MessagesRejected'
  | 'AttemptsOverThree'
  | 'LeasesExpired'
  | 'FenceRefused'
  | 'ProcessLatency'
  | 'UnstableEffects'
  | 'EffectsInDoubt'
  | 'EventsMissing'
  | 'EventsDoubled'
  | 'RowsUnreadable'
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
  /** Adds to a counter. @param value - @default 1 */
  count(name: MetricName, value?: number): void;
  /** Records a current count, including zero. */
  gauge(name: MetricName, value: number): void;
  /** Records a duration or an age, milliseconds. */
  duration(name: MetricName, ms: number): void;
  /** Sends the recorded metrics; called once at the end of each invocation. */
  flush(): void;
}

/** Fields of a log line. Never parts of a payload. */
export type LogFields = Readonly<Record<string, string | number>>;

/** Telemetry whose log lines carry additional fields. */
export function withLogFields(telemetry: Telemetry, fields: LogFields): Telemetry {
  // Mailroom passes one object of fields, or nothing.
  return withExtras(telemetry, (extra) => ({ ...fields, ...(extra[0] as object | undefined) }));
}

/** Telemetry that changes what is logged beside the message. */
export function withExtras(telemetry: Telemetry, change: (extra: unknown[]) => object): Telemetry {
  const { log } = telemetry;
  const changed =
    (level: keyof typeof log): (typeof log)[typeof level] =>
    (message, ...extra) =>
      log[level](message, { ...change(extra) });
  return {
    log: { debug: changed('debug'), info: changed('info'), warn: changed('warn'), error: changed('error') },
    // Not copied with a spread: the methods may be those of a class.
    count: (...call) => telemetry.count(...call),
    gauge: (...call) => telemetry.gauge(...call),
    duration: (...call) => telemetry.duration(...call),
    flush: () => telemetry.flush(),
  };
}

/**
 * Telemetry with Powertools: JSON logs, and metrics in embedded metric format.
 *
 * @param options.service - the Powertools service name, a dimension of every metric
 * @param options.tableName - the Mailroom table, a second dimension: it distinguishes the Mailrooms of an account
 * @param options.consumer - the consumer's name, a third dimension @default none
 * @param options.at - the time of the metrics that the first flush sends, epoch milliseconds @default the time at which they are sent
 *
 * @example
 * ```ts
 * const telemetry = powertoolsTelemetry({ service: 'payments', tableName: config.tableName, consumer: 'payments' });
 * ```
 */
export function powertoolsTelemetry(options: {
  readonly service: string;
  readonly tableName: string;
  readonly consumer?: string;
  readonly at?: number;
}): Telemetry {
  const log = createLogger(options.service);
  const metrics = new Metrics({
    namespace: 'Mailroom',
    serviceName: options.service,
    defaultDimensions: {
      table: options.tableName,
      ...(options.consumer === undefined ? {} : { consumer: options.consumer }),
    },
  });
  if (options.at !== undefined) metrics.setTimestamp(options.at);
  return {
    log,
    count: (name, value = 1) => {
      if (value > 0) metrics.addMetric(name, MetricUnit.Count, value);
    },
    gauge: (name, value) => metrics.addMetric(name, MetricUnit.Count, value),
    duration: (name, ms) => metrics.addMetric(name, MetricUnit.Milliseconds, ms),
    flush: () => {
      if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
    },
  };
}
