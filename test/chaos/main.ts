import '../../localstack/quiet-sdk.ts';
import { Command, InvalidArgumentError } from 'commander';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { parsePort } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { SCENARIOS } from './catalog.ts';
import { createCleanup } from './cleanup.ts';
import { startOrderSystem } from './order-system.ts';
import { runScenario } from './runner.ts';
import type { Outcome, Scenario } from './scenario.ts';
import { DEFAULT_SETTINGS, type Settings } from './settings.ts';

interface Options extends Settings {
  readonly list: boolean;
  readonly json: boolean;
  readonly port?: number;
}

/** More take hours, and the engine holds all of them in memory. */
const SPIKE_ORDERS_MAX = 20_000;

const SEED_MAX = 2 ** 32 - 1;

/** How a run is stopped from outside, and what it then ends with. */
const STOP_SIGNALS = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const;

/** Starts the order system, runs the scenarios one after the other on it, and stops it again; the same on each database. */
async function chaos(names: readonly string[], options: Options): Promise<void> {
  const chosen = choose(names);
  if (options.list) {
    for (const { name, title } of chosen) print(`${name.padEnd(width(chosen))}  ${title}`);
    return;
  }
  const cleanup = createCleanup();
  let stopped = false;
  for (const [signal, exitCode] of STOP_SIGNALS) {
    process.once(signal, () => {
      stopped = true;
      say('Stopping');
      cleanup.run().finally(() => process.exit(exitCode));
    });
  }
  const show = (line: string): void => {
    if (!stopped) (options.json ? say : print)(line);
  };
  const outcomes: Outcome[] = [];
  try {
    for (const database of [undefined, 'postgres', 'mysql'] as const) {
      const scenarios = chosen.filter(({ engine }) => engine === database);
      if (stopped || scenarios.length === 0) continue;
      const port = options.port ?? (await freePort());
      const system = await startOrderSystem({ port, database, cleanup, onProgress: say });
      for (const scenario of scenarios) {
        if (!stopped) outcomes.push(await runScenario(scenario, { system, print: show, settings: options }));
      }
      await cleanup.run();
    }
  } catch (error) {
    if (!stopped) throw error; // else the engine was stopped under it
  } finally {
    await cleanup.run();
  }
  if (stopped) return;
  show(`\n${table(outcomes)}`);
  if (options.json) print(JSON.stringify({ scenarios: outcomes.map(asJson) }));
  if (outcomes.some(({ passed }) => !passed)) process.exitCode = 1;
}

function choose(names: readonly string[]): readonly Scenario[] {
  const unknown = names.filter((name) => SCENARIOS.every((scenario) => scenario.name !== name));
  if (unknown.length > 0) {
    const list = SCENARIOS.map(({ name, title }) => `  ${name.padEnd(width(SCENARIOS))}  ${title}`);
    throw new MailroomError(
      'UNKNOWN_SCENARIO',
      `There is no scenario ${unknown.map((name) => `"${name}"`).join(', ')}. There are:\n${list.join('\n')}`,
    );
  }
  return names.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => names.includes(name));
}

/** `null` is what could not be counted. */
function asJson({ name, passed, lost, duplicated, seconds }: Outcome) {
  return { name, passed, lost: lost ?? null, doubled: duplicated ?? null, seconds };
}

function table(outcomes: readonly Outcome[]): string {
  const wide = width([...outcomes, { name: 'scenario' }]);
  const row = (cells: readonly [string, string, unknown, unknown, unknown]) =>
    [
      cells[0].padEnd(wide),
      cells[1].padEnd(7),
      ...cells.slice(2).map((cell) => String(cell ?? '?').padStart(8)),
    ].join('  ');
  return [
    row(['scenario', 'verdict', 'lost', 'duplicated', 'seconds']),
    ...outcomes.map(({ name, passed, lost, duplicated, seconds }) =>
      row([name, passed ? 'passed' : 'FAILED', lost, duplicated, seconds.toFixed(1)]),
    ),
  ].join('\n');
}

function width(named: readonly { readonly name: string }[]): number {
  return Math.max(...named.map(({ name }) => name.length));
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function portArgument(text: string): number {
  try {
    return parsePort(text);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It is "${text}"; it must be a whole number from ${min} to ${max}.`);
  };
}

async function main(): Promise<void> {
  const program = new Command('npm run chaos --')
    .description(
      'Breaks the order system on its own local AWS, on purpose, and reads back whether an order was lost or ' +
        'duplicated. Ends with 1 if any scenario failed.',
    )
    .argument('[names...]', 'the scenarios to run; all of them when none is named')
    .option('--list', 'say which scenarios there are', false)
    .option('--json', 'print the verdicts as JSON, as the last line', false)
    .option('--port <number>', 'the port of the local AWS; a free one when not given', portArgument)
    .option(
      '--spike-orders <number>',
      'how many orders spike places',
      wholeNumber(1, SPIKE_ORDERS_MAX),
      DEFAULT_SETTINGS.spikeOrders,
    )
    .option(
      '--seed <number>',
      'of the calls that worker-kill, postgres-killed and mysql-killed draw',
      wholeNumber(0, SEED_MAX),
      DEFAULT_SETTINGS.seed,
    )
    .action(chaos);
  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  // Our own errors say what to do; the stack of another one says where to look.
  console.error(error instanceof MailroomError ? error.message : error);
  process.exitCode = 1;
}
