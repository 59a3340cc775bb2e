import { Command } from 'commander';
import { GROUPED_MAX, LISTED_MAX, listDeadLetters } from '../reports/dead-letters/list-dead-letters.ts';
import { countArgument, SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';
import { discardCommand } from './dlq-discard.ts';
import { redriveCommand } from './dlq-redrive.ts';
import { resendCommand } from './dlq-resend.ts';
import { showCommand } from './dlq-show.ts';
import { byOption, verboseOption } from './options.ts';

/** `mailroom dlq`: the dead letters of every source. */
export function dlqCommand(io: Io): Command {
  return new Command('dlq')
    .description(
      'Lists, redrives, discards and resends dead letters: DEAD events and messages in dead-letter queues.',
    )
    .addCommand(listCommand(io))
    .addCommand(showCommand(io))
    .addCommand(redriveCommand(io))
    .addCommand(discardCommand(io))
    .addCommand(resendCommand(io));
}

function listCommand(io: Io): Command {
  return new Command('list')
    .description('Lists dead letters with their cause and the time of their permanent deletion.')
    .argument('[source]', `${SOURCE_ARGUMENT} (default: every source)`)
    .addOption(byOption())
    .option(
      '--limit <count>',
      `at most this many of each source, oldest first (default: ${GROUPED_MAX}; with --verbose or --json ${LISTED_MAX})`,
      countArgument,
    )
    .addOption(verboseOption())
    .action(reporting(io, listDeadLetters, 'source'));
}
