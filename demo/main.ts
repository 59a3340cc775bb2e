import '../localstack/quiet-sdk.ts';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { DatabaseEngine } from '../lambdas/runtime/base/database-engine.ts';
import { errorMessage, MailroomError } from '../lambdas/runtime/base/errors.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import { deployLocal } from '../localstack/deploy.ts';
import { type Engine, parsePort, startEngine } from '../localstack/engine.ts';
import { howToStop, leaveRunning } from '../localstack/left-running.ts';
import { stepPrinter } from '../localstack/step-printer.ts';
import { DEFAULT_PORT, localEnvironment } from '../localstack/workspace.ts';
import type { BridgeKind, DemoBridge } from './bridge.ts';
import type { DemoDatabase } from './database.ts';
import { paymentRejection, startSweep } from './operator.ts';
import { openDemoPage, RUN_MAX_MS } from './page.ts';
import type { Receipt } from './receipt.ts';
import { printReceipt } from './receipt-text.ts';
import { RATE_MAX, runDemo } from './run.ts';
import { startDemoDatabase } from './start-database.ts';

interface DemoOptions {
  /** @default 200, with `ui` orders until the run is ended */
  readonly orders?: number;
  /** @default what the machine carries, at most 10, with `ui` 1 */
  readonly rate?: number;
  readonly port?: number;
  readonly json: boolean;
  readonly verbose: boolean;
  readonly keep: boolean;
  readonly ui: boolean;
  readonly bridge?: BridgeKind;
  readonly postgres?: boolean;
  readonly mysql?: boolean;
  /** False with `--no-open`. */
  readonly open: boolean;
}

const ORDERS = 200;

/** Orders per second. */
const RATE_WITH_PAGE = 1;

const steps = stepPrinter(process.stderr);

/** Deploys the order system. The SDK clients of this process reach it from then on. */
async function deploy(engine: Engine, { bridge, database }: Beside): Promise<Outputs> {
  const outputs = await deployLocal({
    endpoint: engine.endpoint,
    context: { ...bridge?.context, ...database?.context },
    onProgress: steps.step,
    onDetail: steps.detail,
  });
  Object.assign(process.env, localEnvironment(engine.endpoint));
  database?.startRelay(outputs);
  await startSweep(engine.endpoint);
  return outputs;
}

async function demo(options: DemoOptions): Promise<void> {
  const beside: { -readonly [K in keyof Beside]: Beside[K] } = {};
  try {
    beside.bridge = await bridgeOf(options);
    beside.database = await databaseOf(options);
    await demoWith(options, beside);
  } finally {
    await beside.database?.close();
    await beside.bridge?.close();
  }
}

/** The servers that run beside the local AWS. */
interface Beside {
  readonly bridge?: DemoBridge | undefined;
  readonly database?: DemoDatabase | undefined;
}

/** Starts the broker of `--bridge`. Nothing of brokers is loaded without that. */
async function bridgeOf({ bridge }: DemoOptions): Promise<DemoBridge | undefined> {
  if (bridge === undefined) return undefined;
  const { startBridge } = await import('./bridge.ts');
  return await startBridge(bridge, steps);
}

/** Starts the database of `--postgres` or `--mysql`. */
async function databaseOf(options: DemoOptions): Promise<DemoDatabase | undefined> {
  const engine = engineOf(options);
  return engine && (await startDemoDatabase(engine, steps.step));
}

function engineOf({ postgres, mysql }: DemoOptions): DatabaseEngine | undefined {
  if (postgres) return 'postgres';
  return mysql ? 'mysql' : undefined;
}

async function demoWith(options: DemoOptions, beside: Beside): Promise<void> {
  const engine = await startEngine({ port: options.port, detached: options.keep, onProgress: steps.step });
  if (options.keep && engine.startedHere) await leaveRunning(engine);
  try {
    // An engine that stays would have a system without its server; one in a container does not reach the server.
    const needs = beside.bridge === undefined ? `--${engineOf(options)}` : '--bridge';
    if ((beside.bridge ?? beside.database) !== undefined && engine.process === undefined)
      throw new MailroomError(
        'NOT_THIS_ENGINE',
        `${needs} needs a MiniStack that the demo starts, and the engine at ${engine.endpoint} is another. Stop it (npm run local:stop), ` +
          'or choose another port with --port.',
      );
    const run = options.ui ? runWithPage : runOnly;
    const problems = await run(engine, options, beside);
    if (options.keep) await printNextSteps(engine);
    if (problems > 0) process.exitCode = 1;
  } finally {
    if (!options.keep) await engine.stop();
  }
}

/** Places the orders, and prints the receipt. @returns the number of problems */
async function runOnly(engine: Engine, options: DemoOptions, beside: Beside): Promise<number> {
  const outputs = await deploy(engine, beside);
  const { orders = ORDERS, rate } = options;
  const { endpoint } = engine;
  const rejectPayment = await paymentRejection(endpoint);
  const receipt = await runDemo({
    outputs,
    endpoint,
    orders,
    rate,
    steps,
    rejectPayment,
    withLateCustomer: true,
    ...beside,
  });
  report(receipt, options);
  return receipt.problems.length;
}

/**
 * The same on the page, which stays until Ctrl-C: its first tab starts a run, and a button each one after it. All runs use one
 * deployment.
 */
async function runWithPage(engine: Engine, options: DemoOptions, beside: Beside): Promise<number> {
  const stop = new AbortController();
  // The second Ctrl-C ends the process. The engine ends with it.
  process.once('SIGINT', () => stop.abort());
  const outputs = await deploy(engine, beside);
  const { signal } = stop;
  const { orders, rate = RATE_WITH_PAGE, open: opens } = options;
  const { ui, panel } = await openDemoPage({ engine, outputs, orders, opens, steps, signal });
  let problems = 0;
  void ui.opened.then(panel.startRun);
  try {
    for (;;) {
      const ends = await Promise.race([panel.nextRun(), ui.ended]);
      if (typeof ends === 'string') return problems;
      const receipt = await runDemo({
        ...{ outputs, endpoint: engine.endpoint, orders, rate, steps, ends, signal },
        onPlaced: panel.placed,
        onSettling: panel.settling,
        faults: panel.faults,
        withLateCustomer: true,
        ...beside,
      });
      problems += receipt.problems.length;
      report(receipt, options);
      panel.finish(receipt);
      steps.say('The web console stays open and can start another run. Ctrl-C ends it and the demo.');
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    steps.say('Stopped before the run was over, so there is no receipt.');
    process.exitCode = 130; // as shells report SIGINT
    return 0;
  } finally {
    await ui.stop();
  }
}

function report(receipt: Receipt, { json, verbose }: DemoOptions): void {
  steps.say('');
  (json ? steps.say : print)(printReceipt(receipt, { isVerbose: verbose }));
  if (json) print(JSON.stringify(receipt));
}

async function printNextSteps(engine: Engine): Promise<void> {
  steps.say(`\n${await howToStop(engine)}`);
  steps.say(`To inspect it: npx cdk-mailroom status --endpoint ${engine.endpoint}`);
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
        'the tables and queues. Exits with 1 if anything was lost or duplicated.',
    )
    .option(
      '--orders <number>',
      `number of orders (default: ${ORDERS}, with --ui until you end the run or ${RUN_MAX_MS / 60_000} minutes have passed)`,
      positive('--orders', 100_000),
    )
    .option(
      '--rate <number>',
      `orders per second (default: what the machine carries, at most ${RATE_MAX}; with --ui ${RATE_WITH_PAGE})`,
      positive('--rate', 10_000),
    )
    .option(
      '--port <number>',
      `port of the local AWS (default: MAILROOM_PORT, else AWS_ENDPOINT_URL, else ${DEFAULT_PORT})`,
      portArgument,
    )
    .option('--json', 'print the receipt as JSON on the last line', false)
    .option('--verbose', 'print every count of the receipt', false)
    .option('--keep', 'leave the local AWS running', false)
    .option(
      '--ui',
      'open the web console, which shows the events as they move, breaks parts and repairs them',
      false,
    )
    .addOption(
      new Option(
        '--bridge <broker>',
        'also forward the events of orders to a broker that the demo starts, and count what arrives there. jetstream and rabbitmq need Debian ' +
          '12, kafka needs Java 17 and Maven',
      )
        .choices(['jetstream', 'kafka', 'rabbitmq'])
        .conflicts('keep'),
    )
    .addOption(
      new Option(
        '--postgres',
        'keep the orders, their outbox and the inbox of order-status in a PostgreSQL that the demo downloads and starts; the other services keep theirs in DynamoDB',
      ).conflicts('keep'),
    )
    .addOption(
      new Option(
        '--mysql',
        'the same with a MariaDB, which the demo downloads without installing it. Needs Debian 12',
      ).conflicts(['keep', 'postgres']),
    )
    .option('--no-open', 'with --ui: open no browser; print the file that opens the web console')
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
