import { Command } from 'commander';
import { pause, resume } from '../changes/pause.ts';
import type { Io } from '../terminal/io.ts';
import { changing } from './command.ts';
import { reasonOption } from './options.ts';

/** `mailroom pause`. */
export function pauseCommand(io: Io): Command {
  return switchCommand(
    io,
    'pause',
    'Shows what a pause of a consumer would mean. With --apply, disables the event source mapping of its function: messages wait in ' +
      'its queue until you resume it.',
    'payments',
    'bank migration',
  );
}

/** `mailroom resume`. */
export function resumeCommand(io: Io): Command {
  return switchCommand(
    io,
    'resume',
    'Shows what waits for a paused consumer. With --apply, enables the event source mapping of its function.',
    'payments',
    'the bank is back',
  );
}

function switchCommand(
  io: Io,
  to: 'pause' | 'resume',
  description: string,
  example: string,
  reason: string,
): Command {
  return new Command(to)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .option('--apply', `${to} it`)
    .addOption(reasonOption())
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom ${to} ${example}
  $ npx cdk-mailroom ${to} ${example} --apply --reason "${reason}"`,
    )
    .action(changing(io, to === 'pause' ? pause : resume, 'consumer'));
}
