import { Command } from 'commander';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { discardMessage } from '../lambdas/runtime/operations/message-operations.ts';
import { isEventId } from '../lambdas/runtime/store/event-id.ts';
import { type Note, recordOperation } from '../lambdas/runtime/store/operation-record.ts';
import { discardDead } from '../lambdas/runtime/store/outbox-decisions.ts';
import { reasonArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT, type ExitCode } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { clipped, table } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { shell } from './frame/shell.ts';
import { choose } from './letters/letter-choice.ts';
import { expiry, letterJson, nameCells } from './letters/letter-text.ts';
import { settled } from './letters/letter-verdict.ts';
import {
  type DeadItem,
  type DeathPlace,
  deathPlace,
  inboxId,
  putBack,
  takeLetters,
} from './letters/letters.ts';
import { eachOf } from './reading/rows-reader.ts';

interface DiscardOptions {
  readonly letter?: readonly string[];
  readonly all?: boolean;
  readonly reason: string;
  readonly apply?: boolean;
}

/** The outcome of a discard for one dead letter, planned or done: a `handled` one is deleted; `busy` and `unreadable` ones stay. */
type Fate = 'discard' | 'discarded' | 'handled' | 'busy' | 'unreadable';

interface Planned {
  readonly letter: DeadItem;
  readonly fate: Fate;
}

/** The most letters of one run. */
const LIMIT = 1_000;

/** Letters are hidden while they are discarded, seconds; so long if the command dies. */
const DISCARD_HIDES_S = 300;

/** `mailroom dlq discard`. */
export function discardCommand(io: Io): Command {
  return new Command('discard')
    .description('Says which letters would be given up for good; with --apply it does so, and stores why.')
    .argument('<place>', 'dead, stream, rule:<consumer> or consumer:<consumer>')
    .option('--letter <id...>', 'these: ids of letters or of events')
    .option('--all', `every letter of the place (at most ${LIMIT} at a time)`)
    .requiredOption('--reason <text>', 'why; stored with each of them', reasonArgument)
    .option('--apply', 'do it')
    .action(
      withSession<[string], DiscardOptions>(io, async (session, options, name) => {
        const place = deathPlace(session.directory, name);
        if ((options.letter === undefined) === (options.all !== true)) {
          throw new MailroomError(
            'BAD_ARGUMENT',
            `Say which letters of ${name}: either --letter <id…>, or --all.`,
          );
        }
        const taken = await takeLetters(session, place, { limit: LIMIT, hideS: DISCARD_HIDES_S });
        try {
          const now = session.clock.now();
          const plan = choose(place, taken.letters, options).map((letter): Planned => {
            return { letter, fate: fateOf(place, letter, now) };
          });
          const result = options.apply ? await discardAll(session, place, plan, options) : plan;
          session.output.result(discardJson(place, result, options), { place, result, options }, (seen) =>
            text(session, seen.place, seen.result, seen.options),
          );
          return exitOf(result, options);
        } finally {
          await putBack(session.queues, place, taken.letters);
        }
      }),
    );
}

function fateOf(place: DeathPlace, letter: DeadItem, now: number): Fate {
  // A pointer that names no event leads to nothing that could be discarded.
  if (place.kind === 'dead' && !isEventId(letter.id)) return 'unreadable';
  return settled(letter.row, now) ?? 'discard';
}

async function discardAll(
  session: Session,
  place: DeathPlace,
  plan: readonly Planned[],
  { reason }: DiscardOptions,
): Promise<Planned[]> {
  const note = { by: await session.operator(), reason };
  if (plan.some(({ fate }) => !stays(fate))) {
    const ids = plan.map(({ letter }) => letter.eventId ?? letter.id);
    const subject = `${place.place}: ${ids.length} letters: ${ids.slice(0, 20).join(', ')}${ids.length > 20 ? ' …' : ''}`;
    await recordOperation(session, { ...note, command: 'dlq discard', subject });
  }
  return eachOf(plan, async ({ letter, fate }) => ({
    letter,
    fate: stays(fate) ? fate : await discard(session, place, letter, note),
  }));
}

/** First the row says so, then the letter goes: one that comes back in between is absorbed. */
async function discard(session: Session, place: DeathPlace, letter: DeadItem, note: Note): Promise<Fate> {
  const { queues } = session;
  if (place.kind === 'dead') return (await discardDead(session, letter.id, note)) ? 'discarded' : 'handled';
  const { consumer, url } = place;
  if (consumer !== undefined) {
    const { name, inboxRetentionDays } = consumer;
    const eventId = inboxId(letter);
    const { status } = await discardMessage(session, {
      ...note,
      consumer: name,
      eventId,
      inboxRetentionDays,
    });
    if (status === 'leased') return 'busy';
    if (status === 'unreadable') return status;
    if (letter.received !== undefined) await queues.remove(url, letter.received);
    return status === 'processed' ? 'handled' : 'discarded';
  }
  if (letter.received !== undefined) await queues.remove(url, letter.received);
  return 'discarded';
}

function exitOf(result: readonly Planned[], { apply }: DiscardOptions): ExitCode {
  return apply && result.some(({ fate }) => stays(fate)) ? EXIT.attention : EXIT.ok;
}

function stays(fate: Fate): fate is 'busy' | 'unreadable' {
  return fate === 'busy' || fate === 'unreadable';
}

/** What `--json` prints. */
export function discardJson(
  place: Pick<DeathPlace, 'place'>,
  result: readonly Planned[],
  { apply, reason }: Pick<DiscardOptions, 'apply' | 'reason'>,
) {
  return {
    place: place.place,
    applied: apply ?? false,
    reason,
    letters: result.map(({ letter, fate }) => ({ ...letterJson(letter), outcome: fate })),
  };
}

const FATES: Readonly<Record<Fate, string>> = {
  discard: 'discard',
  discarded: 'discarded',
  handled: 'handled already, delete',
  busy: 'busy, stays',
  unreadable: 'row unreadable, stays',
};

function text(
  session: Session,
  place: DeathPlace,
  result: readonly Planned[],
  { apply, reason, letter: named }: DiscardOptions,
): string {
  if (result.length === 0) return `There is nothing to discard in ${place.place}.`;
  const now = session.clock.now();
  const rows = result.map(({ letter, fate }) => [
    FATES[fate],
    ...nameCells(letter),
    expiry(letter, now),
    clipped(letter.fingerprint ?? '-'),
  ]);
  const which = named === undefined ? ['--all'] : ['--letter', ...named];
  const again = shell`dlq discard ${[place.place, ...which]} --reason ${reason} --apply`;
  return [
    `${place.place}: ${result.length} letters`,
    table(['outcome', 'letter', 'event', 'type', 'deleted', 'cause'], rows),
    ...(place.kind === 'stream'
      ? ['The events that these letters point at are not discarded: the sweep publishes them.']
      : []),
    ...(apply ? [] : [`Nothing was changed; to do it: ${session.commandLine(again)}`]),
  ].join('\n');
}
