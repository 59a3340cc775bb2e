import { Command, InvalidArgumentError } from 'commander';
import { errorMessage, MailroomError } from '../lambdas/runtime/errors.ts';
import { deployLocal } from '../localstack/deploy.ts';
import { type Engine, parsePort, startEngine } from '../localstack/engine.ts';
import { howToStop, leaveRunning } from '../localstack/left-running.ts';
import { stepPrinter } from '../localstack/step-printer.ts';
import { DEFAULT_PORT, localEnvironment } from '../localstack/workspace.ts';
import { createReader, type Readings } from './readings.ts';
import { type Progress, printReceipt, progressOf, type Receipt, receiptOf } from './receipt.ts';
import { createShop, pause, type Resent } from './shop.ts';

interface DemoOptions {
  readonly orders: number;
  readonly rate: number;
  readonly port: number;
  readonly json: boolean;
  readonly keep: boolean;
}

/** A run without any progress for this long is stuck: longer than a born lease and two sweeps. */
const STUCK_MS = 150_000;

/** One in this many orders, starting with the first, is for sold-out goods: it is charged, refunded and cancelled. */
const SOLD_OUT_EVERY = 10;

/** The interval at which the tables are read during the run. */
const READ_EVERY_MS = 1_000;

const steps = stepPrinter(process.stderr);

/** Places the orders, and reads everything back once the run has settled. */
async function run(engine: Engine, options: DemoOptions): Promise<Receipt> {
  const outputs = await deployLocal({
    endpoint: engine.endpoint,
    onProgress: steps.step,
    onDetail: steps.detail,
  });
  Object.assign(process.env, localEnvironment(engine.endpoint));
  const runId = `demo-${Date.now().toString(36)}`;
  const reader = createReader(outputs);
  const shop = createShop({ outputs, endpoint: engine.endpoint, runId });
  await shop.stockUp();
  const deadLettersBefore = await reader.deadLetters();

  steps.say(`Every ${SOLD_OUT_EVERY}th order is for sold-out goods; some requests and messages repeat.`);
  steps.step(`Placing ${options.orders} orders, ${options.rate} per second`);
  let placed = 0;
  let placing = true;
  const resent: Resent[] = [];
  const placement = shop
    .placeOrders(options.orders, {
      ratePerSecond: options.rate,
      soldOutEvery: SOLD_OUT_EVERY,
      onPlaced: () => {
        placed += 1;
      },
    })
    .finally(() => {
      placing = false;
      steps.step('Waiting until the queues are empty');
    });
  let refused = false;
  placement.catch(() => {
    refused = true; // `await placement` below throws the error
  });

  let readings: Readings;
  let progress: Progress;
  let [lastSeen, movedAt] = ['', Date.now()];
  for (;;) {
    await pause(READ_EVERY_MS);
    const placingBefore = placing;
    readings = await reader.read(runId);
    const sent = await shop.resendSome(readings.events);
    resent.push(...sent);
    progress = progressOf(readings, options.orders);
    steps.detail(placing ? `${placed} placed` : activity(progress, readings.queued));
    if (refused) break;
    if (!placingBefore && sent.length === 0 && progress.atRest) break;
    const seen = JSON.stringify([placed, progress, readings.queued]);
    if (seen !== lastSeen) [lastSeen, movedAt] = [seen, Date.now()];
    if (Date.now() - movedAt > STUCK_MS) break;
  }
  const repeats = await placement;
  return receiptOf(readings, { orders: options.orders, repeats, resent, deadLettersBefore });
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

/** The counts of a run, narrow enough to follow the step on a line of 80 columns. */
function activity({ processed, expected }: Progress, queued: number): string {
  return `${processed}/${expected} processed, ${queued} queued`;
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
