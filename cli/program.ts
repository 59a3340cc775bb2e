import { Command } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import type { ExitCode } from './exit-code.ts';
import type { Io } from './io.ts';
import { reportError } from './report-error.ts';
import { statusCommand } from './status.ts';

/** Every command, a file each. */
const COMMANDS = [statusCommand];

/**
 * Runs the `mailroom` command.
 *
 * @param argv - the arguments after the command's name
 * @returns how it ends; it never throws
 */
export async function runMailroom(argv: readonly string[], io: Io): Promise<ExitCode> {
  const command = new Command('mailroom')
    .description('Sees and repairs a deployed Mailroom.')
    .version(packageJson.version)
    .option('--stage <name>', 'the Mailroom whose stack has this word in its name, e.g. dev')
    .option('--stack <name>', 'the stack of the Mailroom, where a stage is not enough')
    .option('--profile <name>', 'the AWS profile (or AWS_PROFILE)')
    .option('--region <name>', 'the AWS region (or AWS_REGION)')
    .option(
      '--endpoint <url>',
      'another AWS than the real one, e.g. http://127.0.0.1:4566 (or AWS_ENDPOINT_URL)',
    )
    .option('--json', 'print one JSON document')
    .showHelpAfterError('(mailroom <command> --help shows what it takes)')
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
    .exitOverride();
  for (const make of COMMANDS) command.addCommand(inherit(make(io), command));
  try {
    await command.parseAsync([...argv], { from: 'user' });
    return io.exitCode;
  } catch (error) {
    return reportError(error, argv.includes('--json'), io);
  }
}

/** Commands and their own commands end, complain and are helped as the whole does; its options may stand after them too. */
function inherit(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent);
  const options =
    command.commands.length === 0 ? parent.options.filter(({ long }) => long !== '--version') : [];
  for (const option of options) command.addOption(option);
  for (const child of command.commands) inherit(child, parent);
  return command;
}
