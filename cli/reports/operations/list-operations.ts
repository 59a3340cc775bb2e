import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { type Operation, readOperations } from '../../deployment/operations.ts';
import { type ExportFormat, exported } from '../../terminal/export.ts';
import { moreText } from '../../terminal/listing.ts';
import { clipped, detailedTable } from '../../terminal/output.ts';
import { reportOf } from '../../terminal/terminal.ts';
import { time } from '../../terminal/times.ts';
import { type WindowOptions, windowOf } from '../../terminal/window.ts';

/** The default of `--since`. */
export const SINCE_MS = 7 * DAY_MS;

/** The columns of `--format csv`. */
const COLUMNS = { at: true, by: true, command: true, subject: true, reason: true } as const;

interface OperationsOptions extends Partial<WindowOptions> {
  readonly format?: ExportFormat;
}

/** An operation as it is shown. */
type ListedOperation = Pick<Operation, keyof typeof COLUMNS>;

/** The changes of operators. */
export async function listOperations(deployment: Deployment, options: OperationsOptions) {
  const { format } = options;
  const { since, until, text } = windowOf({ since: SINCE_MS, ...options }, deployment.clock.now());
  const { operations: rows, ...found } = await readOperations(deployment.stored, since, until);
  const { more, unreadable } = found;
  const operations = rows.map(
    ({ at, by, command, subject, reason }): ListedOperation => ({ at, by, command, subject, reason }),
  );
  return reportOf({ operations, ...found }, operations, (seen) =>
    format !== undefined
      ? exported(operations, format, COLUMNS)
      : [
          seen.length === 0
            ? `Nothing was changed ${text}.`
            : operationsText(seen) + moreText(more, 'There are more: shorten the range with --since.'),
          ...(unreadable === 0 ? [] : [`Unreadable entries in these months: ${unreadable}.`]),
        ].join('\n'),
  );
}

function operationsText(operations: readonly ListedOperation[]): string {
  return detailedTable(
    ['when', 'command'],
    operations.map(({ at, by, command, subject, reason }) => ({
      cells: [time(at), command],
      details: [clipped(subject), `by ${clipped(by)}`, `why: ${clipped(reason)}`],
    })),
  );
}
