import '../localstack/quiet-sdk.ts';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { table } from '../cli/terminal/output.ts';
import { errorMessage, MailroomError } from '../lambdas/runtime/base/errors.ts';
import { brokers } from './brokers.ts';
import { bundles } from './bundles.ts';
import { burst } from './burst.ts';
import type { CapacityTarget } from './capacity/plan.ts';
import { capacity } from './capacity.ts';
import { command } from './command.ts';
import { cost } from './cost.ts';
import { latency } from './latency.ts';
import { mysql } from './mysql.ts';
import type { FigureTable, Part, PartResult } from './part.ts';
import { withTables } from './part.ts';
import { postgres } from './postgres.ts';
import { relay } from './relay.ts';

interface BenchOptions {
  readonly json: boolean;
  readonly quick: boolean;
  readonly docs: boolean;
  readonly install: boolean;
  readonly rate?: number;
  readonly peak?: number;
  readonly payload: number;
  readonly consumers: number;
}

/** The parts, in the order in which they run. */
const PARTS: readonly Part[] = [
  cost,
  relay,
  latency,
  bundles,
  capacity,
  burst,
  command,
  postgres,
  mysql,
  brokers,
];

/** The files that contain the tables. */
const DOCS = [
  'docs/cost.md',
  'docs/mysql.md',
  'docs/queues.md',
  'docs/scaling.md',
  'docs/sources.md',
  'bench/README.md',
  'bench/bundles/README.md',
];

async function bench(names: readonly string[], options: BenchOptions): Promise<void> {
  const results: PartResult[] = [];
  for (const part of choose(names)) {
    say(`${part.name}: ${part.title}`);
    const { quick, install } = options;
    const target = targetOf(options);
    const result = await part.run({ say: (line) => say(`  ${line}`), quick, install, target });
    results.push(result);
    for (const figures of result.tables) (options.json ? say : print)(terminalTable(figures));
  }
  if (options.docs) writeDocs(results.flatMap(({ tables }) => tables));
  if (options.json)
    print(JSON.stringify(Object.assign({ machine: machine() }, ...results.map(({ json }) => json))));
}

function targetOf({ rate, peak = rate, payload, consumers }: BenchOptions): CapacityTarget | undefined {
  if (rate === undefined || peak === undefined) return undefined;
  if (peak < rate)
    program.error(`error: --peak is ${peak}, but must be at least --rate, ${rate}. Raise --peak or omit it.`);
  return { eventsPerSecond: rate, peakEventsPerSecond: peak, payloadBytes: payload, consumers };
}

/** Reads a number of an option, within bounds outside which a plan makes no sense. */
function numberFrom(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    const isWhole = Number.isInteger(min) && !Number.isInteger(value);
    if (value >= min && value <= max && !isWhole) return value;
    const kind = Number.isInteger(min) ? 'whole number' : 'number';
    throw new InvalidArgumentError(`It must be a ${kind} from ${min} to ${max.toLocaleString('en-US')}.`);
  };
}

function choose(names: readonly string[]): readonly Part[] {
  const unknown = names.filter((name) => PARTS.every((part) => part.name !== name));
  if (unknown.length > 0) {
    throw new MailroomError(
      'UNKNOWN_PART',
      `Unknown part: ${unknown.map((name) => `"${name}"`).join(', ')}. Choose from:\n${partList()}`,
    );
  }
  return names.length === 0 ? PARTS : PARTS.filter(({ name }) => names.includes(name));
}

function writeDocs(tables: readonly FigureTable[]): void {
  for (const name of DOCS) {
    const file = new URL(`../${name}`, import.meta.url);
    writeFileSync(file, withTables(readFileSync(file, 'utf8'), tables));
    say(`Wrote the tables of this run to ${name}`);
  }
}

function partList(): string {
  return PARTS.map(({ name, title }) => `  ${name.padEnd(10)}${title}`).join('\n');
}

function terminalTable({ title, head, rows }: FigureTable): string {
  return `\n${title}\n\n${table(head, rows)}\n`;
}

/** The environment that absolute times depend on. */
function machine() {
  return { node: process.version, cpus: cpus().length, model: cpus()[0]?.model ?? 'unknown' };
}

function print(line: string): void {
  console.log(line);
}

function say(line: string): void {
  console.error(line);
}

const rate = numberFrom(0.001, 100_000_000);
// An event above 64 KB counts as several on the bus (EventBridge pricing), which a plan does not model.
const payloadBytes = numberFrom(1, 60_000);
// One rule per consumer: a bus has at most 300 (EventBridge user guide, "Quotas").
const consumerCount = numberFrom(1, 300);

const program = new Command('npm run bench --')
  .description(
    'Measures the cost of an event and the speed of Mailroom, compared with the alternatives in the same run.',
  )
  .argument('[parts...]', 'run only these')
  .option('--json', 'print the figures as one JSON document on the last line', false)
  .option('--quick', 'use small sizes, as a smoke test; the figures mean little', false)
  .option('--docs', 'write the tables of this run to docs/ and bench/', false)
  .option(
    '--install',
    'let a part download what it measures: packages in a temporary folder, brokers in .local',
    false,
  )
  .option('--rate <events>', 'with capacity: plan for this average of events per second', rate)
  .option('--peak <events>', 'with --rate: events per second in the busiest seconds (default: --rate)', rate)
  .option('--payload <bytes>', "with --rate: size of an event's payload as JSON", payloadBytes, 200)
  .option('--consumers <count>', 'with --rate: number of consumers of each event', consumerCount, 1)
  .addHelpText('after', () => `\nParts:\n${partList()}`)
  .action(bench);

try {
  await program.parseAsync();
} catch (error) {
  say(errorMessage(error));
  process.exitCode = 1;
}
