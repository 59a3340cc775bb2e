import '../localstack/quiet-sdk.ts';
import { Command, InvalidArgumentError } from 'commander';
import { errorMessage, MailroomError } from '../lambdas/runtime/errors.ts';
import { deployLocal } from '../localstack/deploy.ts';
import { type Engine, parsePort, startEngine } from '../localstack/engine.ts';
import { howToStop, leaveRunning } from '../localstack/left-running.ts';
import { stepPrinter } from '../localstack/step-printer.ts';
import { DEFAULT_PORT, localEnvironment } from '../localstack/workspace.ts';
import { printReceipt, type Receipt } from './receipt.ts';
import { runDemo } from './run.ts';

interface DemoOptions {
  readonly orders: number;
  readonly rate: number;
  readonly port: number;
  readonly json: boolean;
  readonly keep: boolean;
}

const steps = stepPrinter(process.stderr);

/** Deploys the order system, and runs the demo on it. */
async function run(engine: Engine, { orders, rate }: DemoOptions): Promise<Receipt> {
  const outputs = await deployLocal({
    endpoint: engine.endpoint,
    onProgress: steps.step,
    onDetail: steps.detail,
  });
  Object.assign(process.env, localEnvironment(engine.endpoint));
  return await runDemo({ outputs, endpoint: engine.endpoint, orders, rate, steps });
}

async function demo(options: DemoOptions): Promise<void> {
  const engine = await startEngine({ port: options.port, detached: options.keep, onProgress: steps.step });
  if (options.keep && engine.startedHere) await leaveRunning(engine);
  try {
    const receipt = await run(engine, options);
    steps.say('');
    (options.json ? steps.say : print)(printReceipt(receipt));
    if (options.keep) await printNextSteps(engine);
    if (options.json) print(JSON.stringify(receipt));
    if (receipt.problems.length > 0) process.exitCode = 1;
  } finally {
    if (!options.keep) await engine.stop();
  }
}

async function printNextSteps(engine: Engine): Promise<void> {
  steps.say(`\n${await howToStop(engine)}`);
  steps.say(`To inspect it: npx mailroom status --endpoint ${engine.endpoint}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function positive(name: string, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`${name} is "${text}", but must be a whole number from 1 to ${max}.`);
  };
}

function portArgument(text: string): number {
  try {
    return parsePort(text);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

async function main(): Promise<void> {
  const program = new Command('npm run demo --')
    .description(
      'Places orders through the API of a local AWS, repeats requests and messages, and prints a receipt read back from ' +
        'the tables and queues. Exits with 1 if anything was lost or doubled.',
    )
    .option('--orders <number>', 'number of orders', positive('--orders', 100_000), 200)
    .option('--rate <number>', 'orders per second', positive('--rate', 10_000), 10)
    .option(
      '--port <number>',
      'port of the local AWS (or MAILROOM_PORT)',
      portArgument,
      parsePort(process.env.MAILROOM_PORT ?? String(DEFAULT_PORT)),
    )
    .option('--json', 'print the receipt as JSON on the last line', false)
    .option('--keep', 'leave the local AWS running', false)
    .action(demo);
  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  steps.fail();
  // A MailroomError's message contains the remedy; any other error needs its stack.
  console.error(error instanceof MailroomError ? error.message : error);
  process.exitCode = 1;
}
