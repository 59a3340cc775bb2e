import { Command } from 'commander';
import { type OperationRow, operationKey } from '../lambdas/runtime/store/rows.ts';
import { isUnreadable, readOperation } from '../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../lambdas/runtime/store/table.ts';
import { durationArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT, type Io } from './frame/io.ts';
import { moreText } from './frame/listing.ts';
import { clipped, detailedTable, duration, time } from './frame/output.ts';
import { eachOf, readPartition } from './reading/rows-reader.ts';

const DAY_MS = 86_400_000;

/** The default of `--since`. */
const SINCE_MS = 7 * DAY_MS;

/** The most changes that are read of one month. */
const CHANGES_MAX = 10_000;

/** `mailroom log`. */
export function logCommand(io: Io): Command {
  return new Command('log')
    .description(
      'Lists what operators changed with this command: when, who, what and why. Entries are kept for 400 days.',
    )
    .option('--since <duration>', 'how far back, e.g. 1h, 7d (default: 7d)', durationArgument)
    .action(
      withSession(io, async (session, options: { readonly since?: number }) => {
        const sinceMs = options.since ?? SINCE_MS;
        const now = session.clock.now();
        const found = await readOperations(session.table, now - sinceMs, now);
        const { operations, more, unreadable } = found;
        session.output.result(found, operations, (seen) =>
          [
            seen.length === 0
              ? `Nothing was changed in the last ${duration(sinceMs)}.`
              : operationsText(seen) + moreText(more, 'There are more: shorten the range with --since.'),
            ...(unreadable === 0 ? [] : [`Unreadable entries in these months: ${unreadable}.`]),
          ].join('\n'),
        );
        return EXIT.ok;
      }),
    );
}

/** Newest first. */
async function readOperations(stored: Table, since: number, now: number) {
  const months = await eachOf(monthsOf(since, now), (pk) => readPartition(stored, { pk }, CHANGES_MAX));
  const rows = months.flatMap((month) => month.items.map(readOperation));
  const items = rows.filter((row): row is OperationRow => !isUnreadable(row) && row.at >= since);
  return {
    operations: items
      .sort((a, b) => b.at - a.at)
      .map(({ at, by, command, subject, reason }) => ({ at, by, command, subject, reason })),
    more: months.some((month) => month.more),
    unreadable: rows.filter(isUnreadable).length,
  };
}

/** The partitions of the months that overlap a range of time. */
function monthsOf(since: number, now: number): string[] {
  const months = new Set<string>();
  for (let at = since; at < now; at += DAY_MS) months.add(operationKey(at, '').PK);
  return [...months.add(operationKey(now, '').PK)];
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
