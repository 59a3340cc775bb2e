import './quiet-sdk.ts';
import { Command, InvalidArgumentError } from 'commander';
import { errorMessage, MailroomError } from '../lambdas/runtime/base/errors.ts';
import type { Outputs } from './cdk-process.ts';
import { deployLocal } from './deploy.ts';
import { nextSteps, shellExports, startEmptyEngine } from './empty-engine.ts';
import { type Engine, parsePort, startEngine } from './engine.ts';
import { reachableUrl } from './function-url.ts';
import { howToStop, leaveRunning, stopLeftRunning } from './left-running.ts';
import { stepPrinter } from './step-printer.ts';
import { DEFAULT_PORT } from './workspace.ts';

const steps = stepPrinter(process.stderr);

/** `npm run local`: starts an engine in the background, deploys every stack and prints how to use them. */
async function start(port: number | undefined, empty: boolean): Promise<void> {
  if (empty) return await startEmpty(port ?? defaultPort());
  const engine = await startEngine({ port, detached: true, onProgress: steps.step });
  if (engine.startedHere) await leaveRunning(engine);
  const outputs = await deployLocal({
    endpoint: engine.endpoint,
    onProgress: steps.step,
    onDetail: steps.detail,
  });
  steps.end();
  await printUsage(engine, outputs);
}

/** `npm run local -- --empty`: the same as `mailroom local`. */
async function startEmpty(port: number): Promise<void> {
  const engine = await startEmptyEngine(port, steps.step);
  steps.end();
  for (const line of shellExports(engine.endpoint)) console.log(line);
  steps.say(await nextSteps(engine, 'script'));
}

/** `npm run local:stop`: stops the engine that `npm run local` started on this port, and nothing else. */
async function stop(port: number): Promise<void> {
  const stopped = await stopLeftRunning(port);
  steps.say(
    stopped
      ? `Stopped the local AWS on port ${port}.`
      : `No engine started by npm run local is running on port ${port}.`,
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
  for (const line of shellExports(engine.endpoint)) console.log(`  ${line}`);
  console.log(`\n${await howToStop(engine)}`);
}

function defaultPort(): number {
  return parsePort(process.env.MAILROOM_PORT ?? String(DEFAULT_PORT));
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
  const program = new Command('local').description('Runs a local AWS with the order system deployed to it.');
  const flag = (fallbacks: string) =>
    [
      '--port <number>',
      `port of the local AWS (default: ${fallbacks}, else ${DEFAULT_PORT})`,
      portArgument,
    ] as const;
  program
    .command('start')
    .description(
      'start an engine in the background if none is running, deploy all stacks and print their outputs',
    )
    .option('--empty', 'deploy nothing: an engine for your own app', false)
    .option(...flag('MAILROOM_PORT, else AWS_ENDPOINT_URL'))
    .action(async (options: { port?: number; empty: boolean }) => await start(options.port, options.empty));
  program
    .command('stop')
    .description('stop the engine that start has started')
    .option(...flag('MAILROOM_PORT'))
    .action(async (options: { port?: number }) => await stop(options.port ?? defaultPort()));
  await program.parseAsync(argv, { from: 'user' });
}

await mainOrFail();

async function mainOrFail(): Promise<void> {
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    steps.fail();
    // A MailroomError's message contains the remedy; any other error needs its stack.
    console.error(error instanceof MailroomError ? error.message : error);
    process.exitCode = 1;
  }
}
