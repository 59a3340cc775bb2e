import { Command } from 'commander';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { LISTED_MAX, listMessages } from '../reports/messages/messages-report.ts';
import { countArgument } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';
import { decisionCommands } from './messages-decisions.ts';
import { byOption, formatOption, windowOptions } from './options.ts';

/** `mailroom messages`. */
export function messagesCommand(io: Io): Command {
  const command = new Command('messages')
    .description(
      'Lists messages that consumers could not process or have not claimed, and resolves or allows one.',
    )
    .addCommand(listCommand(io));
  for (const decision of decisionCommands(io)) command.addCommand(decision);
  return command;
}

function listCommand(io: Io): Command {
  const [since, at] = windowOptions('with --waiting: how far back', HOUR_MS);
  return new Command('list')
    .description('Lists messages that failed and are retried, and messages that were rejected.')
    .option('--failed', 'only messages that are retried')
    .option('--rejected', 'only messages that were rejected')
    .option('--waiting', 'only messages that are unclaimed: published, and without a row of the consumer')
    .addOption(since)
    .addOption(at)
    .option('--consumer <name>', 'only messages of this consumer')
    .addOption(byOption())
    .option('--limit <count>', 'list at most this many', countArgument, LISTED_MAX)
    .addOption(formatOption())
    .action(reporting(io, listMessages));
}
