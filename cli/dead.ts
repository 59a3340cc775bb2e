import { Command, Option } from 'commander';
import type { DeadPointer } from '../lambdas/runtime/store/rows.ts';
import { isUnreadable, type UnreadableRow } from '../lambdas/runtime/store/stored-rows.ts';
import { requeueCommand } from './dead-requeue.ts';
import { countArgument } from './frame/arguments.ts';
import { byCause, causesText, newest } from './frame/causes.ts';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { MORE_GROUPED, MORE_LISTED, moreText, when } from './frame/listing.ts';
import { clipped, table } from './frame/output.ts';
import { readDeadPointers } from './reading/dead-reader.ts';
import { unreadableText } from './reading/row-text.ts';
import { readSweepState } from './reading/rows-reader.ts';

/** The most DEAD events of one shard that are read. */
const POINTERS_MAX = 5_000;

interface ListOptions {
  readonly by?: 'cause';
  readonly limit: number;
}

/** One DEAD event as `--json` prints it. */
interface ListedEvent {
  readonly eventId: string;
  readonly type: string | null;
  /** When it became DEAD, epoch milliseconds. */
  readonly at: number | null;
  readonly fingerprint: string | null;
  /** Of an event whose pointer cannot be read, why not. */
  readonly lastError: string;
}

/** `mailroom dead`. */
export function deadCommand(io: Io): Command {
  return new Command('dead')
    .description('The events that could not be published.')
    .addCommand(listCommand(io))
    .addCommand(requeueCommand(io));
}

function listCommand(io: Io): Command {
  return new Command('list')
    .description('Lists the DEAD events. They are never deleted: each waits for somebody.')
    .addOption(new Option('--by <what>', 'group them').choices(['cause']))
    .option('--limit <count>', 'list at most so many', countArgument, 100)
    .action(
      withSession(io, async ({ directory, table: rows, output, clock }, options: ListOptions) => {
        const { shards } = await readSweepState(directory, rows);
        const found = await readDeadPointers(rows, shards, POINTERS_MAX);
        const events = found.items.map(listedEvent).sort(newest);
        const now = clock.now();
        if (options.by !== undefined) {
          const causes = byCause(events);
          output.result(
            { causes, more: found.more },
            causes,
            (seen) => causesText(seen, now) + moreText(found.more, MORE_GROUPED),
          );
          return EXIT.ok;
        }
        const listed = events.slice(0, options.limit);
        const more = found.more || events.length > listed.length;
        output.result(
          { events: listed, more },
          listed,
          (seen) => eventsText(seen, now) + moreText(more, MORE_LISTED),
        );
        return EXIT.ok;
      }),
    );
}

function listedEvent(pointer: DeadPointer | UnreadableRow): ListedEvent {
  const { SK: eventId } = pointer;
  if (isUnreadable(pointer))
    return {
      eventId,
      type: null,
      at: null,
      fingerprint: null,
      lastError: unreadableText(pointer.unreadable),
    };
  const { type, deadAt, fingerprint, lastError } = pointer;
  return { eventId, type, at: deadAt, fingerprint, lastError };
}

function eventsText(events: readonly ListedEvent[], now: number): string {
  if (events.length === 0) return 'There are none.';
  return table(
    ['event', 'type', 'dead since', 'error'],
    events.map(({ eventId, type, at, lastError }) => [
      clipped(eventId),
      clipped(type ?? '?'),
      when(at, now),
      clipped(lastError),
    ]),
  );
}
