import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import { headedList } from '../../terminal/listing.ts';
import { clipped } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { changedWords } from './changed-words.ts';

/** The changed rows of an audit. @param repairCommand - absent if their repair is shown; named once, by the missing events if there are any */
export function changedRowsText(
  { missing, changedRows }: AuditReport,
  repairCommand: string | undefined,
): string {
  const shown = headedList(
    'Changed by hand: rows that Mailroom does not write:',
    changedRows.map((row) => `${row.eventId} ${clipped(row.type ?? '?')}: ${changedWords(row)}`),
  );
  if (shown === '' || repairCommand === undefined || missing.length > 0) return shown;
  return [shown, 'To see the repair of each:', `  ${paint.dim(repairCommand)}`].join('\n');
}
