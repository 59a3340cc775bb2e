import type { AuditConfig } from '../../base/config.ts';
import type { Telemetry } from '../../observe/telemetry.ts';
import { type ConsumerEntry, type Directory, sloOf } from '../directory.ts';
import type { AuditRange } from './audit.ts';
import type { AuditReport } from './audit-report.ts';

/** Creates the telemetry for the deliveries of a consumer. @param at - the time of its metrics, epoch milliseconds */
export type DeliveryTelemetry = (
  consumer: string,
  at: number,
) => Pick<Telemetry, 'gauge' | 'duration' | 'flush'>;

/** Emits each consumer's backlog, including zero. */
export function sendBacklogs(telemetryOf: DeliveryTelemetry, { backlogs }: AuditReport, now: number): void {
  for (const { consumer, events, oldestMs, overThreeAttempts } of backlogs) {
    const telemetry = telemetryOf(consumer, now);
    telemetry.gauge('Backlog', events);
    telemetry.duration('OldestUnprocessedAge', oldestMs);
    telemetry.gauge('MessagesOverThreeAttempts', overThreeAttempts);
    telemetry.flush();
  }
}

/** Dependencies of {@link sendDeliveries}. */
interface DeliveryMetricsDeps {
  readonly config: AuditConfig;
  readonly directory: Directory;
  readonly deliveryTelemetry: DeliveryTelemetry;
}

/**
 * Emits each consumer's deliveries, by period of the events' commits. Runs overlap, so a period is emitted several times; each time
 * with the period's start as its time, and with counts that only grow. With the statistic Maximum over one period, each event
 * therefore counts once, whether a run is late, repeated or left out:
 *
 *     run 1   |==A==|==B==|==C==|
 *     run 2         |==B==|==C==|==D==|       B: Maximum(B of run 1, B of run 2)
 *
 * A period is emitted only if the run read all of it, and an SLO only if each event is late, or not, in the last run that reads it.
 *
 * @param report - an audit with periods of `everyMs`
 * @param range - the range that it was to read; at the edges of a gap its counts are lower than those of an earlier run
 */
export function sendDeliveries(
  { config, directory, deliveryTelemetry }: DeliveryMetricsDeps,
  { deliveries, readUntil }: AuditReport,
  { since }: Pick<AuditRange, 'since'>,
): void {
  const { everyMs } = config;
  const measured = new Set(
    directory.consumers.filter((consumer) => isMeasured(consumer, config)).map(({ name }) => name),
  );
  for (const { consumer, from, published, processed, withinSlo } of deliveries) {
    const isWhole = from >= since && from + everyMs <= readUntil;
    if (!isWhole || !measured.has(consumer)) continue;
    const telemetry = deliveryTelemetry(consumer, from);
    telemetry.gauge('DeliveriesPublished', published);
    telemetry.gauge('DeliveriesProcessed', processed);
    if (withinSlo !== null) telemetry.gauge('DeliveriesWithinSlo', withinSlo);
    telemetry.flush();
  }
}

/** The last run that reads a period may begin one interval before the period is out of reach, and the period is as long. */
function isMeasured(consumer: ConsumerEntry, { sinceMs, everyMs }: AuditConfig): boolean {
  return (sloOf(consumer)?.latencyMs ?? 0) <= sinceMs - 2 * everyMs;
}
