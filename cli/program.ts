import { createRequire } from 'node:module';
import { Command, type OutputConfiguration } from 'commander';
import { onceArgument } from './terminal/arguments.ts';
import type { ExitCode, Io } from './terminal/io.ts';
import { plain } from './terminal/paint.ts';
import { COLUMNS, prose } from './terminal/prose.ts';
import { reportError } from './terminal/report-error.ts';

/** Resolved by the package's name, which works in the repository and in the built package. */
const { version } = createRequire(import.meta.url)('@cdk-mailroom/cli/package.json') as { version: string };

/** The commands, in the order of the help. Each is loaded only if it may run: most of them load much that the others do not need. */
const COMMANDS: Readonly<Record<string, () => Promise<(io: Io) => Command>>> = {
  status: async () => (await import('./commands/status.ts')).statusCommand,
  ui: async () => (await import('./commands/ui.ts')).uiCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  why: async () => (await import('./commands/why.ts')).whyCommand,
  describe: async () => (await import('./commands/describe.ts')).describeCommand,
  logs: async () => (await import('./commands/logs.ts')).logsCommand,
  tail: async () => (await import('./commands/tail.ts')).tailCommand,
  events: async () => (await import('./commands/events.ts')).eventsCommand,
  messages: async () => (await import('./commands/messages.ts')).messagesCommand,
  dlq: async () => (await import('./commands/dlq.ts')).dlqCommand,
  order: async () => (await import('./commands/order.ts')).orderCommand,
  pause: async () => (await import('./commands/pause.ts')).pauseCommand,
  resume: async () => (await import('./commands/pause.ts')).resumeCommand,
  sweep: async () => (await import('./commands/sweep.ts')).sweepCommand,
  audit: async () => (await import('./commands/audit.ts')).auditCommand,
  ack: async () => (await import('./commands/ack.ts')).ackCommand,
  operations: async () => (await import('./commands/operations.ts')).operationsCommand,
  postgres: async () => (await import('./commands/postgres.ts')).postgresCommand,
  mysql: async () => (await import('./commands/mysql.ts')).mysqlCommand,
  cdc: async () => (await import('./commands/cdc.ts')).cdcCommand,
  local: async () => (await import('./commands/local.ts')).localCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
};

/** The command that needs all others. */
const COMPLETION = 'completion';

/** The heading of the options that every command takes. */
const EVERYWHERE = 'Global Options:';

const EXAMPLES = `
Examples:
  $ npx cdk-mailroom status --stage dev
  $ npx cdk-mailroom why 01a1fba6-4458-7a41-9c37-3f5d2b8e1103
  $ npx cdk-mailroom messages list --failed --by cause

Exit codes:
    0  no action required, or done
    1  action required
    2  wrong usage, or refused
    3  not found
    4  AWS denied the request or did not respond
    5  an internal error of the command
  130  stopped with Ctrl-C`;

/**
 * Runs the `mailroom` command.
 *
 * @param argv - the arguments after the command's name
 * @returns the exit code
 * @throws if a package of the command is not installed, and nothing else
 */
export async function runMailroom(argv: readonly string[], io: Io): Promise<ExitCode> {
  const json = argv.includes('--json');
  const command = await mailroomCommand(io, json, argv[0]);
  try {
    await command.parseAsync([...argv], { from: 'user' });
    return io.exitCode;
  } catch (error) {
    return reportError(error, json, io);
  }
}

/**
 * The `mailroom` command with its subcommands.
 *
 * @param json - an error is printed as one JSON document, not as text with a hint
 * @param first - the first argument: if it is the name of a command, the others are left out @default all commands
 */
export async function mailroomCommand(io: Io, json: boolean, first = ''): Promise<Command> {
  const only = first === COMPLETION || !Object.hasOwn(COMMANDS, first) ? undefined : COMMANDS[first];
  const makers = await Promise.all(
    (only === undefined ? Object.values(COMMANDS) : [only]).map((load) => load()),
  );
  const commands = makers.map((make) => make(io));
  const command = new Command('npx cdk-mailroom')
    .description('Inspects and repairs a deployed Mailroom.')
    .optionsGroup(EVERYWHERE)
    .option('--stage <name>', "a word in the name of the Mailroom's stack, e.g. dev", onceArgument)
    .option(
      '--stack <name>',
      "the name of the Mailroom's stack, or /mailroom/<table> (default: MAILROOM_STACK)",
      onceArgument,
    )
    .option('--profile <name>', 'the AWS profile (default: AWS_PROFILE)')
    .option('--region <name>', 'the AWS region (default: AWS_REGION)')
    .option(
      '--endpoint <url>',
      'the endpoint of a local AWS, e.g. http://127.0.0.1:4566 (default: AWS_ENDPOINT_URL)',
    )
    .option(
      '--database <url>',
      'the PostgreSQL or MySQL database that also has rows (default: MAILROOM_POSTGRES, else MAILROOM_MYSQL)',
      onceArgument,
    )
    .option('--json', 'print one JSON document')
    .optionsGroup('Options:')
    .version(version)
    .addHelpText('after', EXAMPLES)
    .configureOutput(outputOf(io, json, commands))
    .configureHelp({ showGlobalOptions: true, helpWidth: COLUMNS, minWidthToWrap: 20, subcommandTerm })
    .exitOverride();
  if (!json) command.showHelpAfterError(usageHint(''));
  for (const child of commands) command.addCommand(inherit(child, command, json));
  return command;
}

/** The output of commander. With `--json` an error is one JSON document, which {@link reportError} writes. */
function outputOf(io: Io, json: boolean, commands: readonly Command[]): OutputConfiguration {
  return {
    writeOut: (text) => io.out(plain(text, io, io.outIsTerminal)),
    writeErr: (text) => {
      if (!json) io.err(plain(text, io, io.errIsTerminal));
    },
    outputError: (text, write) => write(`${prose(text.trimEnd() + suggestion(text, commands))}\n`),
  };
}

/** Copies the settings for output, help and exit to a command and its subcommands. @param above - the words before its name */
function inherit(command: Command, parent: Command, json: boolean, above = ''): Command {
  command.copyInheritedSettings(parent);
  const words = `${above} ${command.name()}`;
  if (!json) command.showHelpAfterError(usageHint(words));
  for (const child of command.commands) inherit(child, parent, json, words);
  return command;
}

/** A command in a list of commands, without the word `[options]` that nearly all would have: the descriptions get its room. */
function subcommandTerm(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const word = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? `<${word}>` : `[${word}]`;
  });
  return [command.name(), ...words].join(' ');
}

function usageHint(words: string): string {
  return `(Run npx cdk-mailroom${words} --help for usage.)`;
}

/** The commands that have a subcommand of the name that was not found: `dlq redrive` for `redrive`. */
function suggestion(error: string, commands: readonly Command[]): string {
  const [, wanted] = /unknown command '([^']+)'/.exec(error) ?? [];
  const meant = commands.filter(({ commands: own }) => own.some((child) => child.name() === wanted));
  if (meant.length === 0 || error.includes('Did you mean')) return '';
  return `\n(Did you mean ${meant.map((command) => `${command.name()} ${wanted}`).join(' or ')}?)`;
}
