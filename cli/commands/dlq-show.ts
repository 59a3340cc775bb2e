import { Command } from 'commander';
import { showDeadLetter } from '../reports/dead-letters/show-dead-letter.ts';
import { SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';

/** `mailroom dlq show`. */
export function showCommand(io: Io): Command {
  return new Command('show')
    .description(
      'Shows one dead letter, also one that cannot be read. Its body is printed only with --payload.',
    )
    .argument('<source>', SOURCE_ARGUMENT)
    .argument('<id>', 'the id of the dead letter or of its event, or the first 8 or more characters')
    .option('--payload', 'add its body')
    .action(reporting(io, showDeadLetter, 'source', 'id'));
}
