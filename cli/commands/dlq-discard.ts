import { Command } from 'commander';
import { DISCARD_MAX, discard } from '../changes/discard/discard.ts';
import { SOURCE_ARGUMENT } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { changing } from './command.ts';
import { effectsCheckedOption, reasonOption, verboseOption } from './options.ts';

/** `mailroom dlq discard`. */
export function discardCommand(io: Io): Command {
  return new Command('discard')
    .description('Shows which dead letters would be discarded. With --apply, discards them and stores why.')
    .argument('<source>', SOURCE_ARGUMENT)
    .argument('[id...]', 'dead letters: their ids or event ids, or the first 8 or more characters')
    .option('--cause <text>', 'dead letters with this text in their cause (any case)')
    .option('--all', `every dead letter of the source (at most ${DISCARD_MAX} per run)`)
    .option('--reject', "have the consumer commit what its handler's rejected function returns")
    .addOption(effectsCheckedOption())
    .option('--apply', 'discard them')
    .addOption(reasonOption())
    .addOption(verboseOption())
    .action(changing(io, discard, 'source', 'ids'));
}
