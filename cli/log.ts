import { Command } from 'commander';
import { type OperationRow, operationKey } from '../lambdas/runtime/store/rows.ts';
import { isUnreadable, readOperation } from '../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../lambdas/runtime/store/table.ts';
import { withSession } from './frame/command.ts';
import { type ExportFormat, exported, formatOption } from './frame/export.ts';
import { EXIT, type Io } from './frame/io.ts';
import { moreText } from './frame/listing.ts';
import { clipped, detailedTable, time } from './frame/output.ts';
import { type WindowOptions, windowOf, windowOptions } from './frame/window.ts';
import { eachOf, readPartition } from './reading/rows-reader.ts';

const DAY_MS = 86_400_000;

/** The default of `--since`. */
const SINCE_MS = 7 * DAY_MS;

/** The most changes that are read of one month. */
const CHANGES_MAX = 10_000;

/** The columns of `--format csv`. */
const COLUMNS = { at: true, by: true, command: true, subject: true, reason: true } as const;

interface LogOptions extends WindowOptions {
  readonly format?: ExportFormat;
}

/** `mailroom log`. */
export function logCommand(io: Io): Command {
  const [since, at] = windowOptions('how far back', SINCE_MS);
  return new Command('log')
    .description(
      'Lists what operators changed with this command: when, who, what and why. Entries are kept for 400 days.',
    )
    .addOption(since)
    .addOption(at)
    .addOption(formatOption())
    .action(
      withSession(io, async (session, options: LogOptions) => {
        const { format } = options;
        const { since, until, text } = windowOf(options, session.clock.now());
        const found = await readOperations(session.table, since, until);
        const { operations, more, unreadable } = found;
        session.output.result(found, operations, (seen) =>
          format !== undefined
            ? exported(operations, format, COLUMNS)
            : [
                seen.length === 0
                  ? `Nothing was changed ${text}.`
                  : operationsText(seen) + moreText(more, 'There are more: shorten the range with --since.'),
                ...(unreadable === 0 ? [] : [`Unreadable entries in these months: ${unreadable}.`]),
              ].join('\n'),
        );
        return EXIT.ok;
      }),
    );
}

/** Newest first. */
async function readOperations(stored: Table, since: number, until: number) {
  const months = await eachOf(monthsOf(since, until), (pk) => readPartition(stored, { pk }, CHANGES_MAX));
  const rows = months.flatMap((month) => month.items.map(readOperation));
  const items = rows.filter(
    (row): row is OperationRow => !isUnreadable(row) && row.at >= since && row.at <= until,
  );
  return {
    operations: items
      .sort((a, b) => b.at - a.at)
      .map(({ at, by, command, subject, reason }) => ({ at, by, command, subject, reason })),
    more: months.some((month) => month.more),
    unreadable: rows.filter(isUnreadable).length,
  };
}

/** The partitions of the months that overlap a range of time. */
function monthsOf(since: number, until: number): string[] {
  const months = new Set<string>();
  for (let at = since; at < until; at += DAY_MS) months.add(operationKey(at, '').PK);
  return [...months.add(operationKey(until, '').PK)];
}

function operationsText(operations: Awaited<ReturnType<typeof readOperations>>['operations']): string {
  return detailedTable(
    ['when', 'command'],
    operations.map(({ at, by, command, subject, reason }) => ({
      cells: [time(at), command],
      details: [clipped(subject), `by ${clipped(by)}`, `why: ${clipped(reason)}`],
    })),
  );
}
