import '../../localstack/quiet-sdk.ts';
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import pMap from 'p-map';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import {
  exploreScenario,
  replaySchedule,
  timelineText,
  type Violation,
} from '../../testing/explorer/exploration.ts';
import { HOLES, nearestViolation } from './holes.ts';
import { ROUNDS, type Round, roundText, scenariosOf } from './rounds.ts';
import type { Walk, Walked, WalkMessage } from './walk.ts';

interface Options {
  readonly actors?: 2 | 3;
  readonly faults?: number;
  readonly stalls?: number;
  readonly deviations?: number;
  readonly seed?: string;
  readonly holes: boolean;
  readonly list: boolean;
  readonly json: boolean;
}

/** One scenario in one round, and what was found in it. */
interface Found extends Walk {
  readonly report: Walked;
}

async function explore(filter: string | undefined, options: Options): Promise<void> {
  const rounds = roundsOf(options);
  if (options.list) {
    for (const { name } of scenariosOf(ROUNDS[0] ?? fail())) print(name);
    return;
  }
  if (options.seed !== undefined) return replay(options.seed);
  if (options.holes) return showHoles(filter);
  const startedAt = Date.now();
  const walks = await longestFirst(
    rounds.flatMap((round) => chosen(filter, round).map((scenario): Walk => ({ round, scenario }))),
  );
  const report = (line: string) => (options.json ? say : print)(line);
  const walked = await pMap(
    walks,
    async (walk) => {
      const found = await inOwnProcess(walk);
      report(lineOf(walk, found));
      for (const violation of found.violations) report(`\n${violationText(walk.round, violation)}\n`);
      return { ...walk, report: found };
    },
    { concurrency: availableParallelism() },
  );
  const total = totals(walked);
  const seconds = Math.round((Date.now() - startedAt) / 100) / 10;
  report(
    `\n${total.schedules} schedules, ${total.crashPoints} crash points, ${total.violations} violations, ${seconds} s`,
  );
  if (options.json) print(JSON.stringify({ ...total, seconds }));
  if (total.violations > 0) process.exitCode = 1;
}

/** The rounds as they stand, or the one that the options say. */
function roundsOf({ actors, faults, stalls, deviations }: Options): readonly Round[] {
  if ([actors, faults, stalls, deviations].every((option) => option === undefined)) return ROUNDS;
  return [{ actors: actors ?? 2, budget: { faults: faults ?? 1, stalls: stalls ?? 0 }, deviations }];
}

function chosen(filter: string | undefined, round: Round): string[] {
  const names = scenariosOf(round).map(({ name }) => name);
  const matching = names.filter((name) => filter === undefined || name.includes(filter));
  if (matching.length > 0) return matching;
  throw new MailroomError(
    'UNKNOWN_SCENARIO',
    `No scenario has "${filter}" in its name. There are:\n${names.map((name) => `  ${name}`).join('\n')}`,
  );
}

/** Sorts walks so that no long one begins last: a schedule of n steps has about n^d others that deviate d times. */
async function longestFirst(walks: readonly Walk[]): Promise<Walk[]> {
  const sized = await pMap(walks, async (walk) => {
    const scenario = scenariosOf(walk.round).find(({ name }) => name === walk.scenario) ?? fail();
    const { states } = await exploreScenario(scenario, { deviationsMax: 0 });
    return { walk, size: states ** (walk.round.deviations ?? states) };
  });
  return sized.sort((a, b) => b.size - a.size).map(({ walk }) => walk);
}

function inOwnProcess(walk: Walk): Promise<Walked> {
  return new Promise((resolve, reject) => {
    const walker = fork(fileURLToPath(new URL('./walk.ts', import.meta.url)));
    const startedAt = Date.now();
    let saidAt = startedAt;
    walker.on('message', (message: WalkMessage) => {
      if (message.kind === 'done') return resolve(message.report);
      if (Date.now() - saidAt < SAY_EVERY_MS) return;
      saidAt = Date.now();
      say(`  … ${walk.scenario}: ${message.schedules} schedules`);
    });
    walker.once('error', reject);
    walker.once('exit', (code) => {
      if (code !== 0) reject(new Error(`The walk of "${walk.scenario}" ended with ${code}`));
    });
    walker.send(walk);
  });
}

/** How often a long walk says how far it is, milliseconds. */
const SAY_EVERY_MS = 10_000;

/** Runs one schedule, and shows it. The seed says the round, the scenario and the way. */
async function replay(seed: string): Promise<void> {
  const { bounds, name, way } = parseSeed(seed);
  const scenario = scenariosOf(bounds).find((candidate) => candidate.name === name);
  if (scenario === undefined) throw new MailroomError('BAD_SEED', `There is no scenario "${name}"`);
  const { what, timeline } = await replaySchedule(scenario, way);
  print(timelineText(timeline));
  print(`\n${what ?? 'Nothing is wrong with it.'}`);
  if (what !== undefined) process.exitCode = 1;
}

/** Takes each rule away, and shows the shortest way in which it is missed. */
async function showHoles(filter = ''): Promise<void> {
  const holes = HOLES.filter((hole) => hole.rule.includes(filter));
  if (holes.length === 0) {
    throw new MailroomError(
      'NO_SUCH_RULE',
      `No hole has "${filter}" in its rule; --holes without a text shows all.`,
    );
  }
  for (const { rule, scenario, deviations } of holes) {
    const violation = await nearestViolation(scenario, deviations);
    if (violation === undefined) process.exitCode = 1;
    print(`Without the rule "${rule}":`);
    print(
      violation === undefined
        ? 'NOTHING IS FOUND\n'
        : `${violation.what}\n${timelineText(violation.timeline)}\n`,
    );
  }
}

const SEED = /^([23])\/(\d+)\/(\d+)\/(.+)\/([\d.]+)$/;

function parseSeed(seed: string) {
  const [, actors, faults, stalls, name = '', way = ''] = SEED.exec(seed) ?? [];
  if (actors === undefined) {
    throw new MailroomError(
      'BAD_SEED',
      `"${seed}" is not a seed; one looks like "2/1/0/relay: a requeue and a sweep/0.0.3" and is printed below a violation`,
    );
  }
  const budget = { faults: Number(faults), stalls: Number(stalls) };
  return { bounds: { actors: actors === '3' ? 3 : 2, budget } as Round, name, way };
}

function violationText({ actors, budget }: Round, { scenario, what, seed, timeline }: Violation): string {
  const whole = `${actors}/${budget.faults}/${budget.stalls}/${scenario}/${seed}`;
  return `${what}\n${timelineText(timeline)}\nAgain: npm run explore -- --seed "${whole}"`;
}

function lineOf({ round, scenario }: Walk, { schedules, crashPoints, violations }: Walked): string {
  const found = violations.length === 0 ? 'ok' : `${violations.length} VIOLATIONS`;
  return `${found}  ${scenario}: ${schedules} schedules, ${crashPoints.length} crash points (${roundText(round)})`;
}

/** A crash point of several rounds or scenarios counts once: it is the same place. */
function totals(walked: readonly Found[]) {
  return {
    schedules: walked.reduce((sum, { report }) => sum + report.schedules, 0),
    crashPoints: new Set(walked.flatMap(({ report }) => report.crashPoints)).size,
    violations: walked.reduce((sum, { report }) => sum + report.violations.length, 0),
  };
}

function whole(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0)
    throw new InvalidArgumentError('It must be a whole number.');
  return number;
}

function two(text: string): number {
  if (text === '2' || text === '3') return Number(text);
  throw new InvalidArgumentError('It must be 2 or 3.');
}

function fail(): never {
  throw new Error('unreachable');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

const program = new Command('npm run explore --')
  .description(
    'Runs the real relay, inbox and consumer through every order of their calls, every crash and every failure, within\n' +
      `bounds, and checks after each schedule that nothing is lost and nothing duplicated. Without options:\n${ROUNDS.map(
        (round) => `  ${roundText(round)}`,
      ).join('\n')}`,
  )
  .argument('[filter]', 'only the scenarios with this text in their name')
  .option('--actors <2|3>', 'how many act at the same time', two)
  .option('--faults <number>', 'crashes, failed calls, lost answers in one schedule', whole)
  .option('--stalls <number>', 'how often time passes while a call is under way', whole)
  .option('--deviations <number>', 'how often a schedule may leave the ordinary way', whole)
  .option('--seed <seed>', 'run the one schedule that a violation named, and show it')
  .option('--holes', 'take the rules away one at a time, and show what happens without each', false)
  .option('--list', 'list the scenarios', false)
  .option('--json', 'print { schedules, crashPoints, violations, seconds } as the last line', false)
  .action(explore);

program.parseAsync().catch((error: unknown) => {
  say(error instanceof MailroomError ? error.message : `The exploration failed: ${errorMessage(error)}`);
  process.exitCode = 1;
});
