import { Command } from 'commander';
import { listOperations, SINCE_MS } from '../reports/operations/list-operations.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';
import { formatOption, windowOptions } from './options.ts';

/** `mailroom operations`. */
export function operationsCommand(io: Io): Command {
  const [since, at] = windowOptions('how far back', SINCE_MS);
  return new Command('operations')
    .description(
      'Lists what operators changed with this command: when, who, what and why. Entries are kept for 400 days.',
    )
    .addOption(since)
    .addOption(at)
    .addOption(formatOption())
    .action(reporting(io, listOperations));
}
