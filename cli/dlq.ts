import { Command } from 'commander';
import { depthOf } from '../lambdas/runtime/operations/dead-letters.ts';
import { discardCommand } from './dlq-discard.ts';
import { redriveCommand } from './dlq-redrive.ts';
import { countArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { clipped, table, time } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { expiry, letterJson, nameCells } from './letters/letter-text.ts';
import {
  type DeadItem,
  type DeathPlace,
  deathPlace,
  deathPlaces,
  putBack,
  takeLetters,
} from './letters/letters.ts';
import { eachOf } from './reading/rows-reader.ts';

/** `mailroom dlq`: the letters of all four places in which a message can be dead. */
export function dlqCommand(io: Io): Command {
  return new Command('dlq')
    .description('Lists, redrives and discards what is dead: DEAD events, and letters in dead-letter queues.')
    .addCommand(listCommand(io))
    .addCommand(redriveCommand(io))
    .addCommand(discardCommand(io));
}

interface ListOptions {
  readonly limit: number;
}

/** How long letters stay hidden if listing them is interrupted, seconds. */
const LIST_HIDES_S = 15;

function listCommand(io: Io): Command {
  return new Command('list')
    .description('Lists what is dead, where, why, and when it is deleted for ever.')
    .argument('[place]', 'dead, stream, rule:<consumer> or consumer:<consumer>; all of them if left out')
    .option('--limit <count>', 'at most so many letters of each place', countArgument, 100)
    .action(
      withSession<[string | undefined], ListOptions>(io, async (session, { limit }, name) => {
        const { directory } = session;
        const places = name === undefined ? deathPlaces(directory) : [deathPlace(directory, name)];
        const listed = await eachOf(places, (place) => list(session, place, limit));
        const now = session.clock.now();
        session.output.result(listJson(listed, now), listed, (seen) => listText(seen, now));
        return EXIT.ok;
      }),
    );
}

/** What was found in one place. */
export interface Listed {
  readonly place: DeathPlace;
  readonly total: number;
  readonly letters: readonly DeadItem[];
}

async function list(session: Session, place: DeathPlace, limit: number): Promise<Listed> {
  if (place.kind !== 'dead' && (await depthOf(session.queues, place.url)) === undefined) {
    session.output.say(`${place.place}: its queue does not exist. mailroom status names it.`);
    return { place, total: 0, letters: [] };
  }
  const { letters, total } = await takeLetters(session, place, { limit, hideS: LIST_HIDES_S });
  await putBack(session.queues, place, letters);
  return { place, total, letters };
}

/** What `--json` prints. */
export function listJson(listed: readonly Listed[], now: number) {
  return {
    at: now,
    places: listed.map(({ place, total, letters }) => ({
      place: place.place,
      count: total,
      letters: letters.map(letterJson),
    })),
  };
}

function listText(listed: readonly Listed[], now: number): string {
  const held = listed.filter(({ total, letters }) => total > 0 || letters.length > 0);
  if (held.length === 0) return 'Nothing is dead.';
  const texts = held.map(({ place, total, letters }) => {
    const rows = letters.map((letter) => [
      ...nameCells(letter),
      letter.sentAt === undefined ? '?' : time(letter.sentAt),
      expiry(letter, now),
      clipped(letter.fingerprint ?? '-'),
    ]);
    const more = total > letters.length ? `, ${letters.length} shown` : '';
    return `${place.place}: ${total}${more}\n${table(['letter', 'event', 'type', 'since', 'deleted', 'cause'], rows)}`;
  });
  return texts.join('\n\n');
}
