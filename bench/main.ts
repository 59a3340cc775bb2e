import '../localstack/quiet-sdk.ts';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { Command } from 'commander';
import { table } from '../cli/terminal/output.ts';
import { errorMessage, MailroomError } from '../lambdas/runtime/base/errors.ts';
import { bundles } from './bundles.ts';
import { capacity } from './capacity.ts';
import { command } from './command.ts';
import { cost } from './cost.ts';
import { drain } from './drain.ts';
import { latency } from './latency.ts';
import { memory } from './memory.ts';
import type { FigureTable, Part, PartResult } from './part.ts';
import { withTables } from './part.ts';
import { peers } from './peers.ts';
import { relay } from './relay.ts';

interface BenchOptions {
  readonly json: boolean;
  readonly quick: boolean;
  readonly docs: boolean;
  readonly install: boolean;
  readonly packages?: string;
}

/** The parts, in the order in which they run. */
const PARTS: readonly Part[] = [cost, relay, memory, drain, latency, bundles, capacity, command, peers];

/** The files that contain the tables. */
const DOCS = ['docs/cost.md', 'docs/scaling.md', 'bench/README.md'];

async function bench(names: readonly string[], options: BenchOptions): Promise<void> {
  const results: PartResult[] = [];
  for (const part of choose(names)) {
    say(`${part.name}: ${part.title}`);
    const { quick, install, packages } = options;
    const result = await part.run({ say: (line) => say(`  ${line}`), quick, install, packages });
    results.push(result);
    for (const figures of result.tables) (options.json ? say : print)(terminalTable(figures));
  }
  if (options.docs) writeDocs(results.flatMap(({ tables }) => tables));
  if (options.json)
    print(JSON.stringify(Object.assign({ machine: machine() }, ...results.map(({ json }) => json))));
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

const program = new Command('npm run bench --')
  .description(
    'Measures the cost of an event and the speed of Mailroom, compared with the alternatives in the same run.',
  )
  .argument('[parts...]', 'run only these')
  .option('--json', 'print the figures as one JSON document on the last line', false)
  .option('--quick', 'use small sizes, as a smoke test; the figures mean little', false)
  .option('--docs', 'write the tables of this run to docs/ and bench/README.md', false)
  .option('--install', 'let peers install the packages that it measures, in a temporary folder', false)
  .option('--packages <folder>', 'with --install: take those packages from .tgz files in this folder')
  .addHelpText('after', () => `\nParts:\n${partList()}`)
  .action(bench);

try {
  await program.parseAsync();
} catch (error) {
  say(errorMessage(error));
  process.exitCode = 1;
}
