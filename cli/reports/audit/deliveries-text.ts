import type {
  ErrorBudget,
  PeriodDeliveries,
} from '../../../lambdas/runtime/operations/audit/audit-deliveries.ts';
import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import { table } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { duration } from '../../terminal/times.ts';

/** A day's deliveries in the document of `--json`; `rate` is the processed share of the published events, 0 to 1. */
export function deliveryJson({ consumer, from, published, processed, withinSlo }: PeriodDeliveries) {
  return { consumer, day: dayOf(from), published, processed, withinSlo, rate: processed / published };
}

/** The deliveries of each consumer by day, above its error budget. */
export function deliveriesText({ deliveries, errorBudgets }: AuditReport): string {
  const consumers = [...new Set(deliveries.map(({ consumer }) => consumer))].sort();
  if (consumers.length === 0) return paint.dim('No deliveries to count.');
  const texts = consumers.map((name) => {
    const budget = errorBudgets.find(({ consumer }) => consumer === name);
    const days = deliveries.filter(({ consumer }) => consumer === name);
    const rows = days.map(({ from, published, processed, withinSlo }) => [
      dayOf(from),
      published,
      processed,
      ...(withinSlo === null ? [] : [withinSlo]),
      percentText(processed / published),
    ]);
    const inTime = budget === undefined ? [] : ['within SLO'];
    const shown = table(['day (UTC)', 'published', 'processed', ...inTime, 'rate'], rows);
    return [`Deliveries to ${name}`, shown, ...(budget === undefined ? [] : [budgetText(budget)])].join('\n');
  });
  return texts.join('\n\n');
}

function budgetText({ latencyMs, percentile, allowed, missed, left }: ErrorBudget): string {
  const rest =
    left < 0
      ? `${allowed} allowed; ${paint.red(`the budget is overspent by ${-left}`)}`
      : `${left} more allowed`;
  return prose(
    `SLO ${percentile} % within ${duration(latencyMs)}: ${missed} late or not processed; ${rest}.`,
  );
}

/** Rounded down: 100 % means that all were processed. */
function percentText(share: number): string {
  return `${(Math.floor(share * 10_000) / 100).toFixed(2)} %`;
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
