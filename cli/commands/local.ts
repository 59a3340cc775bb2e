import { Command, InvalidArgumentError, Option } from 'commander';
import { errorMessage, isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { engineVariables, nextSteps, shellExports, startEmptyEngine } from '../../localstack/empty-engine.ts';
import { parsePort } from '../../localstack/engine.ts';
import { stopLeftRunning } from '../../localstack/left-running.ts';
import { type StepPrinter, stepPrinter } from '../../localstack/step-printer.ts';
import { DEFAULT_PORT } from '../../localstack/workspace.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import { jsonLine } from '../terminal/escaped.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { paint, plain } from '../terminal/paint.ts';
import { refuseSelection } from './command.ts';

interface LocalOptions extends GlobalOptions {
  readonly port?: number;
}

/** A run of the command. */
interface LocalRun {
  readonly io: Io;
  readonly port: number;
  readonly json: boolean;
  readonly steps: StepPrinter;
}

/** `mailroom local`: a local AWS for the user's own app, and how to reach it. */
export function localCommand(io: Io): Command {
  const local = new Command('local')
    .description(
      'Starts a local AWS without any stacks in the background, for your own app. Prints the variables that point a shell at it. ' +
        'Needs Python 3.10 or later, or Docker; the first run installs the engine (MiniStack) into your cache folder.',
    )
    .addOption(
      new Option('--port <number>', `the port (default: MAILROOM_PORT, else ${DEFAULT_PORT})`).argParser(
        portArgument,
      ),
    )
    .addHelpText(
      'after',
      `
Examples:
  $ eval "$(npx cdk-mailroom local)"
  $ npx cdk deploy --all --require-approval never
  $ npx cdk-mailroom local stop`,
    )
    .action(withPort(io, start));
  local
    .command('stop')
    .description('Stops the engine that mailroom local started, and deletes everything in it.')
    .action(withPort(io, stop));
  return local;
}

async function start({ io, port, json, steps }: LocalRun): Promise<void> {
  const engine = await startEmptyEngine(port, steps.step);
  steps.end();
  const { endpoint, kind, startedHere, logFile = null } = engine;
  if (json) {
    const environment = engineVariables(endpoint);
    io.out(`${jsonLine({ endpoint, port, engine: kind, startedHere, logFile, environment })}\n`);
    return;
  }
  io.out(`${shellExports(endpoint, io.env).join('\n')}\n`);
  steps.say(await nextSteps(engine, 'command'));
}

async function stop({ io, port, json, steps }: LocalRun): Promise<void> {
  const stopped = await stopLeftRunning(port);
  if (json) {
    io.out(`${jsonLine({ port, stopped })}\n`);
    return;
  }
  if (stopped) io.out(`unset ${Object.keys(engineVariables('')).join(' ')}\n`);
  steps.say(
    stopped
      ? `Stopped the local AWS on port ${port}. Unset its variables, as printed above, in every shell that has them.`
      : `No engine that mailroom local started is running on port ${port}.`,
  );
}

/** Runs `start` or `stop` with the port. Prints an error as it is, because some contain several lines of the log. */
function withPort(io: Io, run: (local: LocalRun) => Promise<void>) {
  return async (_options: object, command: Command): Promise<void> => {
    const options = command.optsWithGlobals<LocalOptions>();
    const { json = false } = options;
    refuseSelection(
      options,
      'mailroom local only runs an engine on this machine. Leave it out; --port selects the engine.',
    );
    const port = options.port ?? parsePort(io.env.MAILROOM_PORT ?? String(DEFAULT_PORT));
    const { errIsTerminal: isTTY } = io;
    const steps = stepPrinter({ isTTY, columns: io.outSize()?.columns ?? 0, write: (text) => io.err(text) });
    try {
      await run({ io, port, json, steps });
      io.exitCode = EXIT.ok;
    } catch (error) {
      steps.fail();
      if (json || io.signal.aborted || !isMailroomError(error)) throw error;
      io.err(plain(`${paint.red(error.code)}: ${error.message}\n`, io, isTTY));
      io.exitCode = EXIT.usage;
    }
  };
}

function portArgument(text: string): number {
  try {
    return parsePort(text);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}
