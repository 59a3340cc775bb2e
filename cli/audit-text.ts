import type { AuditReport } from '../lambdas/runtime/operations/audit/audit.ts';
import { clipped, table, time } from './frame/output.ts';
import { paint } from './frame/paint.ts';

/** The most entries of a list that are shown to people; `--json` has them all. */
const SHOWN_MAX = 20;

/**
 * An audit for people: first whether everything is accounted for, then by consumer, then what is wrong and what to type.
 *
 * @param repairCommand - what sends the missing events
 */
export function auditText(report: AuditReport, repairCommand: string): string {
  const { since, until, events, published, pending, dead, discarded, unreadable } = report;
  const parts = [
    `${verdict(report)}  ${time(since)} to ${time(until)}`,
    `${events} events: ${published} published, ${pending} pending, ${dead} dead, ${discarded} discarded${unreadable === 0 ? '' : `, ${unreadable} unreadable`}`,
    consumersText(report),
    missingText(report, repairCommand),
    unprovenText(report),
    list(
      'Written more than once for one cause:',
      report.doubled.map(
        ({ type, aggregateId, causationId, eventIds }) =>
          `${clipped(type)} of ${clipped(aggregateId)}, caused by ${clipped(causationId)}: ${eventIds.join(', ')}`,
      ),
    ),
    list(
      'Deployed otherwise than declared (npx cdk deploy <stack> --revert-drift sets it right):',
      report.drift.map(({ consumer, text }) => `${consumer}: ${text}`),
    ),
    unreadableText(report),
    list('Not everything could be seen:', report.incomplete),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

/** The findings that require action; empty when every event is accounted for. */
export function auditFindings(report: AuditReport): string[] {
  const { missing, doubled, drift, unreadableRows, incomplete, repaired } = report;
  const left = missing.length - repaired;
  return [
    ...(left > 0 ? [`${left} missing`] : []),
    ...(doubled.length > 0 ? [`${doubled.length} doubled`] : []),
    ...(drift.length > 0 ? [`${drift.length} drifted`] : []),
    ...(unreadableRows.length > 0 ? [`${unreadableRows.length} unreadable`] : []),
    ...(incomplete.length > 0 ? ['not all was seen'] : []),
  ];
}

function verdict(report: AuditReport): string {
  const findings = auditFindings(report);
  if (findings.length > 0) return paint.bold(paint.red(findings.join(', ')));
  const { repaired } = report;
  return paint.bold(paint.green(repaired > 0 ? `${repaired} sent again` : 'every event is accounted for'));
}

function consumersText({ consumers }: AuditReport): string {
  const rows = Object.entries(consumers).map(([name, counts]) => [
    name,
    ...COUNTS.map(([count]) =>
      ALARMING.has(count) && counts[count] > 0 ? paint.red(String(counts[count])) : counts[count],
    ),
  ]);
  if (rows.length === 0) return paint.dim('There is no consumer.');
  return table(['consumer', ...COUNTS.map(([, head]) => head)], rows);
}

/** The counts of a consumer, and their heads. */
const COUNTS = [
  ['expected', 'expected'],
  ['processed', 'processed'],
  ['inFlight', 'in flight'],
  ['failed', 'failed'],
  ['rejected', 'rejected'],
  ['discarded', 'discarded'],
  ['unreadable', 'unreadable'],
  ['deadLetters', 'dead letters'],
  ['waiting', 'waiting'],
  ['unproven', 'unproven'],
  ['missing', 'missing'],
] as const;

const ALARMING: ReadonlySet<string> = new Set(['unreadable', 'missing']);

function missingText({ missing, repaired }: AuditReport, repairCommand: string): string {
  if (missing.length === 0) return '';
  const shown = list(
    'Published, and never received:',
    missing.map(
      ({ eventId, consumer, type, publishedAt }) =>
        `${eventId} ${clipped(type)}, by ${consumer}, published ${time(publishedAt)}`,
    ),
  );
  const todo =
    repaired > 0
      ? `Sent to just the consumers that had not received them: ${repaired}. Look again in a few minutes.`
      : `To send each to just that consumer:\n  ${paint.dim(repairCommand)}`;
  return `${shown}\n${todo}`;
}

function unprovenText({ consumers }: AuditReport): string {
  const unproven = Object.values(consumers).reduce((sum, counts) => sum + counts.unproven, 0);
  if (unproven === 0) return '';
  return (
    'Unproven: there is no inbox row, and perhaps there should be none. Such events were published before the consumer was declared ' +
    'as it is now (--earlier counts them as missing), or are older than its inbox keeps a row (they are never sent again).'
  );
}

function unreadableText({ unreadableRows }: AuditReport): string {
  if (unreadableRows.length === 0) return '';
  const shown = list(
    'Rows that cannot be read:',
    unreadableRows.map(
      ({ eventId, consumer, problem }) =>
        `${clipped(eventId)}, ${consumer === null ? 'outbox' : `inbox of ${consumer}`}: ${clipped(problem)}`,
    ),
  );
  return `${shown}\nRun the audit of the version that is deployed. If it cannot read them either, the rows were changed by hand.`;
}

function list(head: string, lines: readonly string[]): string {
  if (lines.length === 0) return '';
  const more = lines.length > SHOWN_MAX ? [`and ${lines.length - SHOWN_MAX} more: --json lists them`] : [];
  return [head, ...[...lines.slice(0, SHOWN_MAX), ...more].map((line) => `  ${line}`)].join('\n');
}
