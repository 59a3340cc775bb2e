import { Command, InvalidArgumentError } from 'commander';
import { errorMessage, MailroomError } from '../lambdas/runtime/errors.ts';
import { deployLocal, type Outputs } from './deploy.ts';
import { type Engine, parsePort, startEngine } from './engine.ts';
import { reachableUrl } from './function-url.ts';
import { howToStop, leaveRunning, stopLeftRunning } from './left-running.ts';
import { DEFAULT_PORT, localEnvironment } from './workspace.ts';

/** `npm run local`: an engine in the background with every stack deployed, and how to use it. */
async function start(port: number): Promise<void> {
  const engine = await startEngine({ port, detached: true, onProgress: say });
  if (engine.startedHere) await leaveRunning(engine);
  const outputs = await deployLocal({ endpoint: engine.endpoint, onProgress: say });
  await printUsage(engine, outputs);
}

/** `npm run local:stop`: ends the engine that `npm run local` started on this port, and nothing else. */
async function stop(port: number): Promise<void> {
  const stopped = await stopLeftRunning(port);
  say(
    stopped
      ? `The local AWS on port ${port} is stopped.`
      : `No engine that was started here runs on port ${port}.`,
  );
}

async function printUsage(engine: Engine, outputs: Outputs): Promise<void> {
  const { OrdersUrl, ...others } = outputs;
  const rows = [
    ...(OrdersUrl ? [['OrdersUrl', reachableUrl(engine.endpoint, OrdersUrl)] as const] : []),
    ...Object.entries(others).sort(([a], [b]) => a.localeCompare(b)),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  for (const [name, value] of rows) console.log(`${name.padEnd(width)}  ${value}`);
  console.log('\nFor other tools (aws, npx cdklocal):');
  for (const [name, value] of Object.entries(localEnvironment(engine.endpoint))) {
    // The rest of it only silences a warning.
    if (!name.startsWith('AWS_SDK_')) console.log(`  export ${name}=${value}`);
  }
  console.log(`\n${await howToStop(engine)}`);
}

function say(line: string): void {
  console.error(line);
}

function portArgument(text: string): number {
  try {
    return parsePort(text);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

/** The command line of `npm run local` and `npm run local:stop`. */
async function main(argv: readonly string[]): Promise<void> {
  const program = new Command('local').description('The local AWS with Mailroom deployed to it.');
  const port = parsePort(process.env.MAILROOM_PORT ?? String(DEFAULT_PORT));
  const portFlag = [
    '--port <number>',
    'the port of the engine (or MAILROOM_PORT)',
    portArgument,
    port,
  ] as const;
  program
    .command('start')
    .description(
      'start an engine if none runs, deploy all stacks, print their outputs; it goes on in the background',
    )
    .option(...portFlag)
    .action(async (options: { port: number }) => await start(options.port));
  program
    .command('stop')
    .description('end the engine that start has started')
    .option(...portFlag)
    .action(async (options: { port: number }) => await stop(options.port));
  await program.parseAsync(argv, { from: 'user' });
}

await mainOrFail();

async function mainOrFail(): Promise<void> {
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    // Our own errors say what to do; the stack of another one says where to look.
    console.error(error instanceof MailroomError ? error.message : error);
    process.exitCode = 1;
  }
}
