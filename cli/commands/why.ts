import { Command } from 'commander';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { why } from '../reports/why/why.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';
import { windowOptions } from './options.ts';

/** `mailroom why`. */
export function whyCommand(io: Io): Command {
  const [since, at] = windowOptions(
    'how far back and ahead to search for an id other than an event id',
    HOUR_MS,
  );
  return new Command('why')
    .description('Shows where an event is, what is wrong and what to do. Exits with 1 if action is required.')
    .argument(
      '<id>',
      'an event id or its first 8 or more characters, an aggregate id (such as an order), a correlation id, any value in the data ' +
        "of an event, an external event's own id, or the id of a dead letter",
    )
    .addOption(since)
    .addOption(at)
    .option('--story', 'add the history of the event and of the events that it caused')
    .option('--payload', 'add the story and the data of each event')
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom why 01a1fba6-4458-7a41-9c37-3f5d2b8e1103
  $ npx cdk-mailroom why 3f0c6a52-0b59-4b6e-9d1e-0a3f4c5d6e7f --since 6h
  $ npx cdk-mailroom why 3f0c6a52-0b59-4b6e-9d1e-0a3f4c5d6e7f --at 14:00`,
    )
    .action(reporting(io, why, 'id'));
}
