import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import { headedList } from '../../terminal/listing.ts';
import { clipped } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { time } from '../../terminal/times.ts';

/** The missing events of an audit. @param repairCommand - absent if their repair is shown */
export function missingText(
  { missing, changedRows }: AuditReport,
  doctor: string,
  repairCommand: string | undefined,
): string {
  const shown = headedList(
    'Missing: published but never received:',
    missing.map(
      ({ eventId, consumer, type, publishedAt, resentAt, row }) =>
        `${eventId} ${clipped(type)}, by ${consumer}, published ${time(publishedAt)}${row === null ? '' : `, ${row}, its message is gone`}${resentAt === null ? '' : `, sent again ${time(resentAt)}`}`,
    ),
  );
  const again = missing.filter(({ resentAt }) => resentAt !== null).length;
  const cause =
    again === 0
      ? []
      : [
          prose(
            `${again} of them missing again after a repair, so what loses them is still there. To find it first:`,
          ),
          `  ${paint.dim(doctor)}`,
        ];
  if (shown === '' || repairCommand === undefined) return [shown, ...cause].join('\n');
  return [
    shown,
    ...cause,
    changedRows.length === 0
      ? 'To see what would be sent to which consumer:'
      : 'To see what would be sent to which consumer, and the repair of each changed row:',
    `  ${paint.dim(repairCommand)}`,
  ].join('\n');
}
