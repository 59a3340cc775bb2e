import type { Drift } from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { InconclusiveEvents } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import { placeText } from '../../deployment/place.ts';
import { headedList } from '../../terminal/listing.ts';
import { clipped, detailedTable, many, minuteAfter } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { time } from '../../terminal/times.ts';
import { answersOf, detailsOf } from './audit-answers.ts';
import { changedRowsText } from './changed-text.ts';
import { deliveriesText, deliveryJson } from './deliveries-text.ts';
import { missingText } from './missing-text.ts';
import { type AuditRepair, repairJson, repairText } from './repair-text.ts';

/** The result of the command: an audit and, with `--repair`, its repair. */
export interface AuditResult {
  readonly report: AuditReport;
  /** Also show the deliveries by day. @default false */
  readonly byDay?: boolean | undefined;
  readonly repair?: AuditRepair | undefined;
}

/** Commands to paste. */
interface AuditCommands {
  /** Audits again and prints what a repair would send. */
  readonly repair: string;
  /** Sends the missing events. */
  readonly apply: string;
  /** Finds what is not as declared. */
  readonly doctor: string;
  /** Restore the drifted resources; several if several differ. */
  readonly restore: readonly string[];
  /** Audits the same range again, and the time from which it can judge what is too recent now, epoch milliseconds. */
  readonly recheck: { readonly at: number; readonly command: string };
}

/** The document of `--json`. */
export function auditJson({ report, repair }: AuditResult) {
  const deliveries = report.deliveries.map(deliveryJson);
  const answers = Object.entries(report.consumers).map(
    ([name, ledger]) => [name, answersOf(ledger)] as const,
  );
  return {
    ...report,
    answers: Object.fromEntries(answers),
    verdict: verdictOf(report),
    deliveries,
    repair: repair === undefined ? null : repairJson(repair),
  };
}

/** An audit as text: the verdict, the counts of each consumer, then each finding with its remedy, and the repair. */
export function auditText({ report, byDay, repair }: AuditResult, commands: AuditCommands): string {
  const { since, until, events, published, pending, dead, discarded, cancelled, unreadable } = report;
  const parts = [
    repair === undefined ? '' : prose(placeText(repair.place)),
    prose(`${verdict(report)}  ${time(since)} to ${time(until)}`),
    prose(
      `${many(events, 'event')}: ${published} published, ${pending} pending, ${dead} dead, ${discarded} discarded${cancelled === 0 ? '' : `, ${cancelled} cancelled`}${unreadable === 0 ? '' : `, ${unreadable} unreadable`}`,
    ),
    consumersText(report),
    recentText(report, commands.recheck),
    byDay === true ? deliveriesText(report) : '',
    missingText(report, commands.doctor, repair === undefined ? commands.repair : undefined),
    inconclusiveText(report, commands.repair),
    unprovenText(report),
    headedList(
      'Duplicated: equal events written from one cause:',
      report.duplicated.map(
        ({ type, aggregateId, causationId, eventIds }) =>
          `${clipped(type)} of ${clipped(aggregateId)}, caused by ${clipped(causationId)}: ${eventIds.join(', ')}`,
      ),
    ),
    driftText(report, commands.restore),
    changedRowsText(report, repair === undefined ? commands.repair : undefined),
    unreadableText(report),
    notAuditedText(report, 'external'),
    notAuditedText(report, 'postgres'),
    notAuditedText(report, 'mysql'),
    notAuditedText(report, 'source'),
    headedList('Not read, so the audit is incomplete:', report.incomplete),
    repair === undefined ? '' : repairText(repair, report, commands.apply),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

/** The findings that require action; empty if nothing is missing, inconclusive or wrong. */
export function auditFindings(report: AuditReport): string[] {
  const { missing, inconclusive, duplicated, drift, unreadableRows, incomplete } = report;
  const left = missing.length - report.repaired;
  const changed = report.changedRows.length - report.repairedRows;
  const doubtful = inconclusive.reduce((sum, { events }) => sum + events, 0);
  const lost = inconclusive.reduce((sum, { missingAtLeast }) => sum + missingAtLeast, 0);
  return [
    ...(left > 0 ? [`${left} missing`] : []),
    ...(doubtful > 0 ? [`${doubtful} inconclusive${lost > 0 ? ` (at least ${lost} missing)` : ''}`] : []),
    ...(duplicated.length > 0 ? [`${duplicated.length} duplicated`] : []),
    ...drift.map(({ consumer, problem }) => `${consumer}: ${DRIFTED[problem]}`),
    ...(changed > 0 ? [`${changed} changed by hand`] : []),
    ...(unreadableRows.length > 0 ? [`${unreadableRows.length} unreadable`] : []),
    ...(incomplete.length > 0 ? ['incomplete'] : []),
  ];
}

/** The differences in the words of the headline. */
const DRIFTED: Readonly<Record<Drift['problem'], string>> = {
  'no-rule': 'its rule does not exist',
  'rule-disabled': 'its rule is disabled',
  pattern: 'its rule matches other events',
  target: 'its rule does not deliver to its queue',
  'target-input': 'its rule changes events',
  'no-queue': 'its queue does not exist',
};

/** The headline of an audit: its findings, or that there are none. */
function verdictOf(report: AuditReport): string {
  return auditFindings(report).join(', ') || allClear(report);
}

function verdict(report: AuditReport): string {
  const color = auditFindings(report).length > 0 ? paint.red : paint.green;
  return paint.bold(color(verdictOf(report)));
}

/** The verdict of an audit that found nothing wrong. Events within the grace period are too recent to be judged. */
function allClear({ repaired, repairedRows, consumers }: AuditReport): string {
  const recent = recentOf(consumers);
  const done = [
    ...(repaired > 0 ? [`${repaired} missing, now sent`] : []),
    ...(repairedRows > 0 ? [`${repairedRows} changed by hand, now put right`] : []),
  ];
  if (done.length > 0) return done.join(', ');
  return recent > 0 ? `nothing is missing; ${recent} too recent to judge` : 'every event is accounted for';
}

/** The messages that are unclaimed within the grace period. */
function recentOf(consumers: AuditReport['consumers']): number {
  return Object.values(consumers).reduce((sum, { waiting }) => sum + waiting, 0);
}

/** The messages that are too recent to judge, and the time from which they can be. An audit that did not read everything says so instead. */
function recentText(
  { consumers, incomplete }: AuditReport,
  { at, command }: AuditCommands['recheck'],
): string {
  const recent = recentOf(consumers);
  if (recent === 0 || incomplete.length > 0) return '';
  const text = `${recent} unclaimed so far, and too recent to judge. From ${minuteAfter(at)} on, this can:`;
  return `${prose(text)}\n  ${paint.dim(command)}`;
}

function consumersText({ consumers }: AuditReport): string {
  const bad = (count: number) => (count > 0 ? paint.red(String(count)) : count);
  const rows = Object.entries(consumers).map(([name, ledger]) => {
    const { processed, open, missing, cannotTell } = answersOf(ledger);
    const details = detailsOf(ledger);
    return {
      cells: [name, ledger.expected, processed, open, bad(missing), bad(cannotTell)],
      details: details.length === 0 ? [] : [details.join(', ')],
    };
  });
  if (rows.length === 0) return paint.dim('No consumers.');
  return detailedTable(['consumer', 'expected', 'processed', 'open', 'missing', 'cannot tell'], rows);
}

function inconclusiveText({ inconclusive }: AuditReport, repairCommand: string): string {
  const shown = headedList(
    'Inconclusive: not received in time, so lost unless the queue of the consumer holds them:',
    inconclusive.map(doubtText),
  );
  if (shown === '') return '';
  return `${shown}\nTo audit again once that is certain:\n  ${paint.dim(repairCommand)}`;
}

function doubtText({ consumer, events, queued, missingAtLeast, conclusiveAt }: InconclusiveEvents): string {
  const lost = missingAtLeast > 0 ? `, so at least ${missingAtLeast} are missing` : '';
  const orAge =
    conclusiveAt === null ? '' : `; from ${time(conclusiveAt)} on, also if its oldest message is younger`;
  return (
    `${consumer}: ${many(events, 'event')}; its queue has about ${many(queued, 'message')}${lost}. ` +
    `Certain once the queue is empty${orAge}.`
  );
}

function driftText({ drift }: AuditReport, restore: readonly string[]): string {
  const shown = headedList(
    'Deployed resources that differ from their declaration:',
    drift.map(({ consumer, text }) => `${consumer}: ${text}`),
  );
  return shown === ''
    ? ''
    : [shown, 'To restore them:', ...restore.map((line) => `  ${paint.dim(line)}`)].join('\n');
}

function unprovenText({ consumers }: AuditReport): string {
  const unproven = Object.values(consumers).reduce((sum, counts) => sum + counts.unproven, 0);
  if (unproven === 0) return '';
  return prose(
    'Unproven events have no inbox row, and may not need one: they were published before the current declaration of the consumer ' +
      '(--earlier counts them as missing), or are older than its inbox retention (--repair never sends them).',
  );
}

const NOT_AUDITED = {
  external: 'Not audited, because external events have no outbox row:',
  postgres: 'Not audited, because the inbox is in PostgreSQL, which --database reads:',
  mysql: 'Not audited, because the inbox is in MySQL, which --database reads:',
  source:
    'Not audited, because another source than SQS delivers the events, and an absent row proves nothing:',
} as const;

function notAuditedText({ notAudited }: AuditReport, reason: keyof typeof NOT_AUDITED): string {
  return headedList(
    NOT_AUDITED[reason],
    notAudited
      .filter(({ because }) => because === reason)
      .map(({ consumer, events }) => {
        const names = events.map(({ source, type }) => `${clipped(type)} of ${clipped(source)}`);
        return `${consumer}: ${names.join(', ')}`;
      }),
  );
}

function unreadableText({ unreadableRows }: AuditReport): string {
  if (unreadableRows.length === 0) return '';
  const shown = headedList(
    'Rows that cannot be read:',
    unreadableRows.map(
      ({ eventId, consumer, problem }) =>
        `${clipped(eventId)}, ${consumer === null ? 'outbox' : `inbox of ${consumer}`}: ${clipped(problem)}`,
    ),
  );
  const todo =
    'Run the audit with the deployed version of cdk-mailroom. If that cannot read the rows either, they were changed by hand.';
  return `${shown}\n${prose(todo)}`;
}
