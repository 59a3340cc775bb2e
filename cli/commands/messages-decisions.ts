import { Command } from 'commander';
import { type OperatorChange, run } from '../changes/change.ts';
import { allow } from '../changes/settle/allow.ts';
import type { MessageDecision } from '../changes/settle/message-decision.ts';
import { resolve } from '../changes/settle/resolve.ts';
import { onceArgument } from '../terminal/arguments.ts';
import { fileText, type Io } from '../terminal/io.ts';
import { reporting } from './command.ts';
import { effectsCheckedOption, reasonOption } from './options.ts';

/** `mailroom messages resolve` and `mailroom messages allow`. */
export function decisionCommands(io: Io): readonly Command[] {
  const resolving =
    'Shows what resolving a message would change. With --apply, sets it PROCESSED without running it, because its work was ' +
    'done by hand.';
  const allowing =
    'Shows whether a message was rejected as EVENT_TOO_OLD. With --apply, allows it to run: use it only if you know that the ' +
    'message was never processed. Redrive it afterwards.';
  return [
    decisionCommand(io, 'resolve', resolving, resolve)
      .option(
        '--commit <file>',
        'rows and events to commit with it, as JSON; - reads standard input',
        onceArgument,
      )
      .option('--force', 'even if a worker holds it, its row is unreadable or its event is unknown')
      .addOption(effectsCheckedOption())
      .option('--apply', 'resolve it'),
    decisionCommand(io, 'allow', allowing, allow).option('--apply', 'allow it'),
  ];
}

function decisionCommand<Plan, Made, Document>(
  io: Io,
  name: string,
  description: string,
  change: OperatorChange<MessageDecision, Plan, Made, Document>,
): Command {
  return new Command(name)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .argument('<eventId>', 'the event id, its first 8 or more characters, or unreadable-<digest>')
    .addOption(reasonOption())
    .action(
      reporting<MessageDecision>(
        io,
        (deployment, given) => {
          const { commit } = given;
          const readCommit = commit === undefined ? undefined : () => fileText(io, '--commit', commit);
          return run(change, deployment, { ...given, ...(readCommit && { readCommit }) });
        },
        'consumer',
        'eventId',
      ),
    );
}
