import { Command, InvalidArgumentError } from 'commander';
import { RATE_PER_S, REDRIVE_MAX, redrive } from '../changes/redrive/redrive.ts';
import { countArgument, durationArgument, SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { changing } from './command.ts';
import { reasonOption, verboseOption } from './options.ts';

/** `mailroom dlq redrive`. */
export function redriveCommand(io: Io): Command {
  return new Command('redrive')
    .description(
      'Shows what a redrive would do to each dead letter. With --apply, redrives those that would run again.',
    )
    .argument('<source>', SOURCE_ARGUMENT)
    .argument('[id...]', 'only these dead letters: their ids or event ids, or the first 8 or more characters')
    .option(
      '--apply',
      'redrive: of each cause 1 dead letter, then 10, then the rest; a cause that fails again is left out',
    )
    .option('--cause <text>', 'only dead letters with this text in their cause (any case)')
    .option('--limit <count>', `at most this many dead letters (default: ${REDRIVE_MAX})`, countArgument)
    .option('--rate <count/s>', 'at most this many dead letters per second', rateArgument, RATE_PER_S)
    .option(
      '--wait <duration>',
      'go on without a cause of which none had a result for this long (default: 60s; DEAD events: 180s)',
      durationArgument,
    )
    .option('--keep-going', 'try every dead letter once, whatever fails')
    .addOption(reasonOption())
    .addOption(verboseOption())
    .action(changing(io, redrive, 'source', 'ids'));
}

function rateArgument(text: string): number {
  const [, count] = /^(\d{1,4})(?:\/s)?$/.exec(text) ?? [];
  if (count !== undefined && Number(count) >= 1) return Number(count);
  throw new InvalidArgumentError(
    'Expected a whole number of dead letters per second from 1 to 9999, such as 10/s.',
  );
}
