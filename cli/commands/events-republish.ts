import { Command } from 'commander';
import { republish } from '../changes/republish.ts';
import type { Io } from '../terminal/io.ts';
import { changing } from './command.ts';
import { reasonOption } from './options.ts';

/** `mailroom events republish`. */
export function republishCommand(io: Io): Command {
  return new Command('republish')
    .description(
      'Shows what publishing a PUBLISHED event again would do at each consumer. With --apply, publishes it to the bus under its own id.',
    )
    .argument('<eventId>', 'the event id, or its first 8 or more characters')
    .addOption(reasonOption())
    .option('--apply', 'publish it')
    .action(changing(io, republish, 'eventId'));
}
