import { Command } from 'commander';
import { run } from '../changes/change.ts';
import { resend } from '../changes/resend/resend.ts';
import type { ResendOptions } from '../changes/resend/resend-report.ts';
import { durationArgument, onceArgument } from '../terminal/arguments.ts';
import { fileText, type Io } from '../terminal/io.ts';
import { reporting } from './command.ts';
import { reasonOption } from './options.ts';

/** `mailroom dlq resend`. */
export function resendCommand(io: Io): Command {
  return new Command('resend')
    .description(
      'Shows what the event of a dead letter would be with other data. With --apply, sends that as a new event to the consumer of the ' +
        'dead letter only; the old event never runs there again.',
    )
    .argument('<source>', 'rule:<consumer> or consumer:<consumer>')
    .argument('<id>', 'the id of the dead letter or of its event, or the first 8 or more characters')
    .requiredOption(
      '--data <file>',
      'the whole new data of the event, as JSON; - reads standard input',
      onceArgument,
    )
    .option('--apply', 'send it')
    .addOption(reasonOption())
    .option(
      '--wait <duration>',
      'wait at most this long until it is processed (default: 60s)',
      durationArgument,
    )
    .option(
      '--repeat-effects',
      'also if side effects of the old event have started: they run again under new keys',
    )
    .option('--payload', 'add the values to the changes')
    .action(
      reporting<ResendOptions>(
        io,
        (deployment, options) =>
          run(resend, deployment, { ...options, readData: () => fileText(io, '--data', options.data) }),
        'source',
        'id',
      ),
    );
}
