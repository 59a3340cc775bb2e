import { Command, InvalidArgumentError } from 'commander';
import { SHARDS_MAX } from '../../lambdas/runtime/store/outbox-partition.ts';
import { sweepNow } from '../changes/sweep.ts';
import { countArgument, durationArgument, reasonArgument } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';

/** `mailroom sweep`. */
export function sweepCommand(io: Io): Command {
  return new Command('sweep')
    .description(
      'Publishes the due PENDING events of a range now. The scheduled sweep does this too; use this command for events that it ' +
        'missed or that cannot wait.',
    )
    .requiredOption(
      '--since <duration>',
      'the start of the range, as time before now, e.g. 6h',
      durationArgument,
    )
    .option('--until <duration>', 'the end of the range, as time before now (default: now)', durationArgument)
    .option(
      '--shards <number>',
      'also look for events in shards up to this number, of a producer with a higher MAILROOM_SHARDS; the sweep reads those that have ' +
        'one from now on (default: the shards that it reads)',
      shardsArgument,
    )
    .option('--reason <text>', 'why; stored with the change', reasonArgument, 'not given')
    .action(reporting(io, sweepNow));
}

function shardsArgument(text: string): number {
  const shards = countArgument(text);
  if (shards <= SHARDS_MAX) return shards;
  throw new InvalidArgumentError(`Expected at most ${SHARDS_MAX}: the shard is one byte of an event id.`);
}
