import '../localstack/quiet-sdk.ts';
import { Command, InvalidArgumentError, Option } from 'commander';
import { EXIT, type ExitCode } from '../cli/terminal/io.ts';
import { COLUMNS, prose } from '../cli/terminal/prose.ts';
import { errorMessage, MailroomError } from '../lambdas/runtime/base/errors.ts';
import { type Engine, startEngine } from '../localstack/engine.ts';
import { freePort } from '../localstack/free-port.ts';
import { stepPrinter } from '../localstack/step-printer.ts';
import { leftForGood } from './left-behind.ts';
import { planText, requireConsent, type VerifyPlan } from './plan.ts';
import { leftText, printVerifyReceipt, type VerifyReceipt } from './receipt.ts';
import { verify } from './run.ts';
import { runTests } from './run-tests.ts';
import { stacksOf } from './stacks.ts';
import { randomName, readName } from './system-name.ts';
import { awsTarget, checkTarget, localTarget, type TargetOptions, type VerifyTarget } from './target.ts';

interface VerifyOptions extends TargetOptions {
  readonly orders: number;
  readonly burst: boolean;
  readonly destroy?: string;
  readonly yes: boolean;
  readonly json: boolean;
}

/** Orders per second: little enough for the concurrency of a new account. */
const RATE = 5;

/** 2,000 orders in 5 minutes, as in docs/scaling.md. */
const BURST = { orders: 2_000, rate: 2_000 / 300 };

/** Most orders of a run: the tests scan the tables. */
const ORDERS_MAX = 1_000;

const EXIT_CODES = `
Exit codes:
    0  every test passed or cannot be shown here, and everything is destroyed
    1  a test failed, or something is left
    2  wrong usage, no such account, or no consent; nothing was changed
  130  stopped with Ctrl-C, and everything is destroyed`;

const steps = stepPrinter(process.stderr);

async function verifyCommand(options: VerifyOptions): Promise<void> {
  checkTarget(options, process.env);
  const name = options.destroy ?? randomName();
  const engine = options.local === true ? await localEngine() : undefined;
  try {
    const target =
      engine === undefined ? await awsTarget(options, process.env) : localTarget(engine, process.env);
    const load = options.burst ? BURST : { orders: options.orders, rate: RATE };
    const plan = { target, name, ...load, destroyOnly: options.destroy !== undefined };
    const receipt = await run(plan, options.yes);
    steps.say('');
    process.stdout.write(`${options.json ? JSON.stringify(receipt) : printVerifyReceipt(receipt, target)}\n`);
    process.exitCode = exitCodeOf(receipt);
  } finally {
    await engine?.stop();
  }
}

/** The engine at `AWS_ENDPOINT_URL`, or a new one that ends with this process. */
async function localEngine(): Promise<Engine> {
  const { AWS_ENDPOINT_URL } = process.env;
  const where = AWS_ENDPOINT_URL ? { env: { AWS_ENDPOINT_URL } } : { port: await freePort() };
  return await startEngine({ ...where, onProgress: steps.step });
}

async function run(plan: VerifyPlan, yes: boolean): Promise<VerifyReceipt> {
  const { target, name } = plan;
  steps.say(planText(plan));
  await requireConsent(plan, yes, { input: process.stdin, output: process.stderr });
  const signal = stopSignal(target, name);
  return await verify(plan, {
    stacks: stacksOf(target, name, { onProgress: steps.step, onDetail: steps.detail }),
    steps,
    signal,
    test: (outputs, onResult) => runTests({ ...plan, outputs, steps, signal, onResult }),
    leftBehind: leftForGood,
  });
}

/** Aborted by the first Ctrl-C, so that everything is destroyed. The second one ends this process. */
function stopSignal(target: VerifyTarget, name: string): AbortSignal {
  const stop = new AbortController();
  const onSignal = (): void => {
    if (stop.signal.aborted) {
      steps.fail();
      console.error(leftText(target, name));
      process.exit(EXIT.stopped);
    }
    steps.say('Stopping: destroying what was deployed. Press Ctrl-C again to leave it.');
    stop.abort(new Error('Stopped'));
  };
  for (const ending of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(ending, onSignal);
  return stop.signal;
}

function exitCodeOf({ verdict }: VerifyReceipt): ExitCode {
  return { passed: EXIT.ok, failed: EXIT.attention, stopped: EXIT.stopped }[verdict];
}

function ordersArgument(text: string): number {
  const orders = Number(text);
  if (Number.isInteger(orders) && orders >= 1 && orders <= ORDERS_MAX) return orders;
  throw new InvalidArgumentError(`Expected a whole number from 1 to ${ORDERS_MAX}.`);
}

function nameArgument(text: string): string {
  try {
    return readName(text);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

async function main(): Promise<void> {
  const program = new Command('npm run verify --')
    .description(
      'Deploys the order system under a random name, runs the main tests and those that need an account (IAM, redrives, ' +
        'faults) against it, prints a receipt, and destroys everything it deployed.',
    )
    .option('--profile <name>', 'the AWS profile whose account is used and charged')
    .option('--region <name>', "the AWS region (default: the profile's)")
    .option('--local', 'a local engine: the one at AWS_ENDPOINT_URL, or a new one')
    .option('--orders <number>', 'number of orders', ordersArgument, 20)
    .addOption(
      new Option('--burst', `${BURST.orders.toLocaleString('en')} orders in 5 minutes`)
        .default(false)
        .conflicts('orders'),
    )
    .option('--destroy <name>', 'only destroy what an earlier run left', nameArgument)
    .option('--yes', 'do not ask before deploying to an account', false)
    .option('--json', 'print the receipt as one JSON document', false)
    .addHelpText('after', EXIT_CODES)
    .configureHelp({ helpWidth: COLUMNS })
    .exitOverride((error) => process.exit(error.exitCode === 0 ? EXIT.ok : EXIT.usage))
    .action(verifyCommand);
  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  steps.fail();
  // A MailroomError's message contains the remedy; any other error needs its stack.
  console.error(error instanceof MailroomError ? prose(error.message, 0) : error);
  process.exitCode = error instanceof MailroomError ? EXIT.usage : EXIT.defect;
}
