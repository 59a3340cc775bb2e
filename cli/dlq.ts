import { Command } from 'commander';
import { depthOf } from '../lambdas/runtime/operations/dead-letters.ts';
import { deadLetterJson, deadLetterTable } from './dead-letters/dead-letter-text.ts';
import {
  type DeadLetter,
  putBack,
  type ReceivedDeadLetters,
  receiveDeadLetters,
} from './dead-letters/dead-letters.ts';
import { type DeadLetterSource, deadLetterSource, deadLetterSources } from './dead-letters/sources.ts';
import { discardCommand } from './dlq-discard.ts';
import { redriveCommand } from './dlq-redrive.ts';
import { showCommand } from './dlq-show.ts';
import { byOption, countArgument, SOURCE_ARGUMENT } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { EXIT, type Io } from './frame/io.ts';
import { byCause, causesText } from './frame/listing.ts';
import type { Session } from './frame/session.ts';
import { eachOf } from './reading/rows-reader.ts';

/** `mailroom dlq`: the dead letters of every source. */
export function dlqCommand(io: Io): Command {
  return new Command('dlq')
    .description('Lists, redrives and discards dead letters: DEAD events and messages in dead-letter queues.')
    .addCommand(listCommand(io))
    .addCommand(showCommand(io))
    .addCommand(redriveCommand(io))
    .addCommand(discardCommand(io));
}

interface DlqListOptions {
  readonly by?: 'cause';
  readonly limit?: number;
}

/** The default limits for each source: listed, or grouped by cause. */
const LISTED_MAX = 100;
const GROUPED_MAX = 1_000;

/** If listing is interrupted, dead letters reappear after this many seconds. */
const LIST_HIDES_S = 15;

function listCommand(io: Io): Command {
  return new Command('list')
    .description('Lists dead letters with their cause and the time of their permanent deletion.')
    .argument('[source]', `${SOURCE_ARGUMENT} (default: every source)`)
    .addOption(byOption())
    .option(
      '--limit <count>',
      `at most this many of each source, oldest first (default: ${LISTED_MAX}; with --by ${GROUPED_MAX})`,
      countArgument,
    )
    .action(
      withSession<[string | undefined], DlqListOptions>(io, async (session, options, name) => {
        const { directory, clock, output } = session;
        const { by, limit = by === undefined ? LISTED_MAX : GROUPED_MAX } = options;
        const sources =
          name === undefined ? deadLetterSources(directory) : [deadLetterSource(directory, name)];
        const lists = await eachOf(sources, (source) => list(session, source, limit));
        const now = clock.now();
        output.result(listJson(lists, now, by), lists, (seen) => listText(seen, now, by));
        return EXIT.ok;
      }),
    );
}

/** The dead letters of one source. */
export interface SourceList extends ReceivedDeadLetters {
  readonly source: DeadLetterSource;
}

async function list(session: Session, source: DeadLetterSource, limit: number): Promise<SourceList> {
  if (source.kind !== 'dead' && (await depthOf(session.queues, source.url)) === undefined) {
    session.output.say(`The queue of ${source.name} does not exist. mailroom status prints its URL.`);
    return { source, total: 0, deadLetters: [] };
  }
  const received = await receiveDeadLetters(session, source, { limit, hideS: LIST_HIDES_S });
  await putBack(session.queues, source, received.deadLetters);
  return { source, ...received };
}

/** The document of `--json`. */
export function listJson(lists: readonly SourceList[], now: number, by?: 'cause') {
  return {
    at: now,
    deadLetterSources: lists.map(({ source, total, deadLetters }) => ({
      source: source.name,
      count: total,
      ...(by === undefined
        ? { deadLetters: deadLetters.map(deadLetterJson) }
        : { causes: causesOf(deadLetters), more: total > deadLetters.length }),
    })),
  };
}

function causesOf(deadLetters: readonly DeadLetter[]) {
  return byCause(
    deadLetters.map(({ id, eventId = id, fingerprint = null, sentAt = null }) => ({
      eventId,
      fingerprint,
      at: sentAt,
    })),
  );
}

function listText(lists: readonly SourceList[], now: number, by?: 'cause'): string {
  const held = lists.filter(({ total }) => total > 0);
  if (held.length === 0) return 'No dead letters.';
  const texts = held.map(({ source, total, deadLetters }) => {
    const more = total > deadLetters.length ? `, ${deadLetters.length} ${by ? 'read' : 'shown'}` : '';
    const shown = by
      ? causesText(causesOf(deadLetters), now)
      : deadLetterTable(
          deadLetters.map((deadLetter) => ({ deadLetter })),
          now,
        );
    return `${source.name}: ${total}${more}\n${shown}`;
  });
  return texts.join('\n\n');
}
