import { Command } from 'commander';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { isEventId, outboxKeyOf } from '../lambdas/runtime/store/event-id.ts';
import { recordOperation } from '../lambdas/runtime/store/operation-record.ts';
import { requeueDead } from '../lambdas/runtime/store/outbox-decisions.ts';
import { eventIdArgument, reasonArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import type { Session } from './frame/session.ts';
import { choose } from './letters/letter-choice.ts';
import { takeLetters } from './letters/letters.ts';
import { eachOf } from './reading/rows-reader.ts';

interface RequeueOptions {
  readonly all?: boolean;
  readonly cause?: string;
  readonly reason: string;
}

const DEAD = { place: 'dead', kind: 'dead' } as const;

/** `mailroom dead requeue`. */
export function requeueCommand(io: Io): Command {
  return new Command('requeue')
    .description('Makes DEAD events PENDING again: the next sweep publishes them.')
    .argument('[eventId...]', 'the ids of the events', eventIds)
    .option('--all', 'every DEAD event')
    .option('--cause <text>', 'with --all: only those with this text in their cause')
    .requiredOption('--reason <text>', 'why; stored on the rows', reasonArgument)
    .action(
      withSession<[string[] | undefined], RequeueOptions>(io, async (session, options, named = []) => {
        const ids = await chosen(session, named, options);
        const note = { by: await session.operator(), reason: options.reason };
        if (ids.length > 0) {
          const subject = `${ids.length} events: ${ids.slice(0, 20).join(', ')}${ids.length > 20 ? ' …' : ''}`;
          await recordOperation(session, { ...note, command: 'dead requeue', subject });
        }
        const happened = await eachOf(ids, (id) => requeueDead(session, id, note));
        const requeued = ids.filter((_, i) => happened[i]);
        const notDead = ids.filter((_, i) => !happened[i]);
        const result = { requeued, notDead };
        session.output.result(result, result, (seen) => text(seen.requeued, seen.notDead));
        return EXIT.ok;
      }),
    );
}

/** Variadic: commander hands over one after the other. */
function eventIds(text: string, before: string[] | undefined): string[] {
  return [...(before ?? []), eventIdArgument(text)];
}

async function chosen(
  session: Session,
  named: readonly string[],
  { all = false, cause }: RequeueOptions,
): Promise<readonly string[]> {
  if (all === named.length > 0 || (cause !== undefined && !all)) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      'Say which DEAD events: either their ids, or --all, which --cause narrows down.',
    );
  }
  if (all) {
    const { letters } = await takeLetters(session, DEAD, { limit: Number.POSITIVE_INFINITY, hideS: 0 });
    const ids = choose(DEAD, letters, { ...(cause !== undefined && { cause }) }).map(({ id }) => id);
    return ids.filter(isEventId); // a pointer that names no event leads to nothing that could be requeued
  }
  const rows = await eachOf(named, (id) => session.table.get(outboxKeyOf(id), { consistent: true }));
  const unknown = named.filter((_, i) => rows[i] === undefined);
  if (unknown.length === 0) return named;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `There is no event ${unknown.join(', ')} in the outbox of ${session.directory.mailroom.stack}. Nothing was changed.`,
  );
}

function text(requeued: readonly string[], notDead: readonly string[]): string {
  if (requeued.length + notDead.length === 0) return 'There is no such DEAD event.';
  return [
    ...(requeued.length > 0 ? [`${requeued.length} requeued; the next sweep publishes them.`] : []),
    ...(notDead.length > 0 ? [`Not DEAD, left as they are: ${notDead.join(', ')}.`] : []),
  ].join('\n');
}
