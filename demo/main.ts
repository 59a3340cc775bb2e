import { Command, InvalidArgumentError } from 'commander';
import { errorMessage, MailroomError } from '../lambdas/runtime/errors.ts';
import { deployLocal } from '../localstack/deploy.ts';
import { type Engine, parsePort, startEngine } from '../localstack/engine.ts';
import { howToStop, leaveRunning } from '../localstack/left-running.ts';
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

/** How long nothing may move before the run counts as stuck: longer than a born lease and two sweeps. */
const STUCK_MS = 150_000;

/** Every so many orders, the first one too, the goods are sold out: it is charged, refunded and cancelled. */
const SOLD_OUT_EVERY = 10;

/** How often the tables are read while the run goes on. */
const READ_EVERY_MS = 1_000;

/** The run: orders in, and everything read back once it has come to rest. */
async function run(engine: Engine, options: DemoOptions): Promise<Receipt> {
  const outputs = await deployLocal({ endpoint: engine.endpoint, onProgress: say });
  Object.assign(process.env, localEnvironment(engine.endpoint));
  const runId = `demo-${Date.now().toString(36)}`;
  const reader = createReader(outputs);
  const shop = createShop({ outputs, endpoint: engine.endpoint, runId });
  await shop.stockUp();
  const deadLettersBefore = await reader.deadLetters();

  say(
    `Placing ${options.orders} orders, ${options.rate} a second; every ${SOLD_OUT_EVERY}th is for goods that are sold out, and some ` +
      'requests and messages are sent twice',
  );
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
    });
  let refused = false;
  placement.catch(() => {
    refused = true; // thrown below, by the promise itself
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
    showProgress(placed, options.orders, progress);
    if (refused) break;
    if (!placingBefore && sent.length === 0 && progress.atRest) break;
    const seen = JSON.stringify([placed, progress, readings.queued]);
    if (seen !== lastSeen) [lastSeen, movedAt] = [seen, Date.now()];
    if (Date.now() - movedAt > STUCK_MS) break;
  }
  endProgress();
  const repeats = await placement;
  return receiptOf(readings, { orders: options.orders, repeats, resent, deadLettersBefore });
}

async function demo(options: DemoOptions): Promise<void> {
  const engine = await startEngine({ port: options.port, detached: options.keep, onProgress: say });
  if (options.keep && engine.startedHere) await leaveRunning(engine);
  try {
    const receipt = await run(engine, options);
    say('');
    (options.json ? say : print)(printReceipt(receipt));
    if (options.keep) await sayHowToGoOn(engine);
    if (options.json) print(JSON.stringify(receipt));
    if (receipt.problems.length > 0) process.exitCode = 1;
  } finally {
    if (!options.keep) await engine.stop();
  }
}

async function sayHowToGoOn(engine: Engine): Promise<void> {
  say(`\n${await howToStop(engine)}`);
  say(`Look into it: npx mailroom status --endpoint ${engine.endpoint}`);
}

let shownAt = 0;

/** One line that is written over on a terminal; elsewhere a line every five seconds. */
function showProgress(placed: number, asked: number, progress: Progress): void {
  const line = `  placed ${placed}/${asked}  published ${progress.published}  processed ${progress.processed}  charged ${progress.charged}`;
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line}`);
  else if (Date.now() - shownAt >= 5_000) {
    shownAt = Date.now();
    say(line);
  }
}

function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\n');
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function positive(name: string, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`${name} is "${text}"; it must be a whole number from 1 to ${max}.`);
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
      'Places orders through the API of a local AWS while sending requests and messages twice, and prints a receipt that is ' +
        'read back from the tables and queues. Ends with 1 if anything was lost or doubled.',
    )
    .option('--orders <number>', 'how many orders', positive('--orders', 100_000), 200)
    .option('--rate <number>', 'orders a second', positive('--rate', 10_000), 10)
    .option(
      '--port <number>',
      'the port of the local AWS (or MAILROOM_PORT)',
      portArgument,
      parsePort(process.env.MAILROOM_PORT ?? String(DEFAULT_PORT)),
    )
    .option('--json', 'print the receipt as JSON, as the last line', false)
    .option('--keep', 'leave the local AWS running', false)
    .action(demo);
  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  // Our own errors say what to do; the stack of another one says where to look.
  console.error(error instanceof MailroomError ? error.message : error);
  process.exitCode = 1;
}
