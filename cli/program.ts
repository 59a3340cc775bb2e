import { createRequire } from 'node:module';
import { Command, type OutputConfiguration } from 'commander';
import { auditCommand } from './audit.ts';
import { dlqCommand } from './dlq.ts';
import type { ExitCode, Io } from './frame/io.ts';
import { plain } from './frame/paint.ts';
import { reportError } from './frame/report-error.ts';
import { logCommand } from './log.ts';
import { messageCommand } from './message.ts';
import { messagesCommand } from './messages.ts';
import { statusCommand } from './status.ts';
import { sweepCommand } from './sweep.ts';
import { whyCommand } from './why.ts';

/** By the package's own name: it is read from the TypeScript in the repository, and from what is built of it. */
const { version } = createRequire(import.meta.url)('cdk-mailroom/package.json') as { version: string };

/** Every command, a file each, in the order in which the help lists them. */
const COMMANDS = [
  statusCommand,
  whyCommand,
  messagesCommand,
  messageCommand,
  dlqCommand,
  sweepCommand,
  auditCommand,
  logCommand,
];

/** The heading of the options that every command takes. */
const EVERYWHERE = 'Where, and how it is shown:';

const EXAMPLES = `
Examples:
  $ mailroom status --stage dev             what waits, what is dead
  $ mailroom why 01a1fba6-4458-7a41-9c37-3f5d2b8e1103
                                            where an event is, what is wrong, what to do
  $ mailroom messages list --failed --by cause

It ends with 0: all is well, 1: action required, 2: called wrongly, 3: not found, 4: AWS refused or did not answer, 5: the command itself failed.`;

/**
 * Runs the `mailroom` command.
 *
 * @param argv - the arguments after the command's name
 * @returns how it ends; it never throws
 */
export async function runMailroom(argv: readonly string[], io: Io): Promise<ExitCode> {
  const json = argv.includes('--json');
  const command = new Command('mailroom')
    .description('Sees and repairs a deployed Mailroom.')
    .optionsGroup(EVERYWHERE)
    .option('--stage <name>', 'the Mailroom whose stack has this word in its name, e.g. dev')
    .option('--stack <name>', 'the stack of the Mailroom, where a stage is not enough')
    .option('--profile <name>', 'the AWS profile (or AWS_PROFILE)')
    .option('--region <name>', 'the AWS region (or AWS_REGION)')
    .option(
      '--endpoint <url>',
      'another AWS than the real one, e.g. http://127.0.0.1:4566 (or AWS_ENDPOINT_URL)',
    )
    .option('--json', 'print one JSON document')
    .optionsGroup('Options:')
    .version(version)
    .addHelpText('after', EXAMPLES)
    .configureOutput(outputOf(io, json))
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  if (!json) command.showHelpAfterError('(mailroom <command> --help shows what it takes)');
  for (const make of COMMANDS) command.addCommand(inherit(make(io), command));
  try {
    await command.parseAsync([...argv], { from: 'user' });
    return io.exitCode;
  } catch (error) {
    return reportError(error, json, io);
  }
}

/** Where commander writes. With `--json` its complaint is one JSON document, which {@link reportError} writes. */
function outputOf(io: Io, json: boolean): OutputConfiguration {
  return {
    writeOut: (text) => io.out(plain(text, io, io.outIsTerminal)),
    writeErr: (text) => {
      if (!json) io.err(plain(text, io, io.errIsTerminal));
    },
  };
}

/** Commands and their own commands end, complain and are helped as the whole does. */
function inherit(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inherit(child, parent);
  return command;
}
