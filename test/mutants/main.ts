import '../../localstack/quiet-sdk.ts';
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { MUTANTS } from './catalog.ts';
import { changedSince } from './changed-files.ts';
import { type Mutant, problemOf, ROOT } from './mutant.ts';
import type { FailedTest } from './trial.ts';
import { createTrialWorkers, type TrialOutcome } from './trial-workers.ts';

interface Options {
  readonly only: string;
  readonly since?: string | true;
  readonly jobs: number;
  readonly search: boolean;
  readonly list: boolean;
  readonly json: boolean;
}

/** The fate of a mutant. The last three fail the run. */
type Fate = 'killed' | 'timed out' | 'equivalent' | 'SURVIVED' | 'NOT EQUIVALENT' | 'BROKEN';

interface Result {
  readonly mutant: Mutant;
  readonly fate: Fate;
  /** The tests that failed: the first one, or all of them with `--search`. */
  readonly failed: readonly FailedTest[];
  /** The reason for BROKEN. */
  readonly why?: string;
}

/** The time limit of all tests on the original code, milliseconds: they take half a minute on a quiet machine. */
const ALL_TESTS_MAX_MS = 900_000;

/** The tests of `--search`: the fast ones. */
const SEARCHED = ['test/unit/runtime', 'test/unit/stored-shape'];

async function run(options: Options): Promise<void> {
  const chosen = chosenBy(options);
  if (options.list) {
    for (const { rule } of chosen) print(rule);
    return;
  }
  const startedAt = Date.now();
  const say = options.json ? complain : print;
  const results = chosen.length === 0 ? [] : await tryAll(chosen, options, (result) => say(lineOf(result)));
  const seconds = Math.round((Date.now() - startedAt) / 100) / 10;
  report(results, seconds, say);
  if (options.json) print(JSON.stringify(summaryOf(results, seconds)));
  if (results.some(isFailure)) process.exitCode = 1;
}

async function tryAll(
  mutants: readonly Mutant[],
  { jobs, search }: Options,
  onResult: (result: Result) => void,
): Promise<Result[]> {
  const problems = mutants.map(problemOf).filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new MailroomError('BAD_MUTANT', problems.join('\n'));
  const searched = SEARCHED.flatMap(testsIn);
  const killersOf = ({ killers }: Mutant) => (search ? searched : killers);
  const workers = createTrialWorkers(jobs);
  try {
    // A test that fails without a mutant proves nothing.
    const tests = [...new Set(mutants.flatMap(killersOf))];
    const asItIs = await workers.tryOut({ tests, bail: true, maxMs: ALL_TESTS_MAX_MS });
    if (asItIs.kind !== 'tried' || asItIs.failed.length > 0)
      throw new MailroomError(
        'RED_BEFORE',
        `The tests fail on the original code: ${textOf(asItIs)}. Fix them first.`,
      );
    return await Promise.all(
      mutants.map(async (mutant) => {
        const outcome = await workers.tryOut({ mutant, tests: killersOf(mutant), bail: !search });
        const result = resultOf(mutant, outcome);
        onResult(result);
        return result;
      }),
    );
  } finally {
    workers.end();
  }
}

function resultOf(mutant: Mutant, outcome: TrialOutcome): Result {
  if (outcome.kind === 'timed out') return { mutant, fate: 'timed out', failed: [] };
  if (outcome.kind === 'broken') return { mutant, fate: 'BROKEN', failed: [], why: outcome.why };
  const { failed } = outcome;
  const survived = failed.length === 0;
  if (mutant.equivalent === undefined) return { mutant, fate: survived ? 'SURVIVED' : 'killed', failed };
  return { mutant, fate: survived ? 'equivalent' : 'NOT EQUIVALENT', failed };
}

function isFailure({ fate }: Result): boolean {
  return fate === 'SURVIVED' || fate === 'NOT EQUIVALENT' || fate === 'BROKEN';
}

function summaryOf(results: readonly Result[], seconds: number) {
  const rules = (...fates: readonly Fate[]) =>
    results.filter(({ fate }) => fates.includes(fate)).map(({ mutant }) => mutant.rule);
  return {
    mutants: results.length,
    killed: rules('killed', 'timed out').length,
    equivalent: rules('equivalent').length,
    timedOut: rules('timed out'),
    survived: rules('SURVIVED'),
    notEquivalent: rules('NOT EQUIVALENT'),
    broken: rules('BROKEN'),
    seconds,
  };
}

function report(results: readonly Result[], seconds: number, say: (line: string) => void): void {
  const { mutants, killed, equivalent } = summaryOf(results, seconds);
  const failures = results.filter(isFailure);
  say(
    `\n${mutants} mutants: ${killed} killed, ${equivalent} equivalent, ${failures.length} to look at, ${seconds} s`,
  );
  for (const failure of failures) say(lineOf(failure));
}

function lineOf({ mutant, fate, failed, why }: Result): string {
  const file = mutant.file.replace('lambdas/runtime/', '');
  const more = why ?? mutant.equivalent ?? failed.map(testText).join('\n           ');
  return `${fate.padEnd(10)} ${file}: ${mutant.rule}${more === '' ? '' : `\n           ${more}`}`;
}

function textOf(outcome: TrialOutcome): string {
  if (outcome.kind === 'tried') return outcome.failed.map(testText).join(', ');
  return outcome.kind === 'broken' ? outcome.why : outcome.kind;
}

function testText({ file, name }: FailedTest): string {
  return `${file} > ${name}`;
}

function chosenBy({ only: text, since }: Options): readonly Mutant[] {
  const chosen = MUTANTS.filter(({ rule, file }) => rule.includes(text) || file.includes(text));
  if (chosen.length > 0) {
    if (since === undefined) return chosen;
    const changed = changedSince(since === true ? undefined : since);
    return chosen.filter(({ file, killers }) => [file, ...killers].some((path) => changed.has(path)));
  }
  throw new MailroomError(
    'NO_SUCH_MUTANT',
    `No mutant has "${text}" in its rule or file name; --list shows all rules.`,
  );
}

function testsIn(folder: string): string[] {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.test.ts'),
  );
  return files.sort().map((file) => `${folder}/${file}`);
}

function whole(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError('It must be a whole number from 1.');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

const program = new Command('npm run mutants --')
  .description(
    'Takes each rule of the protocol out of the code, one at a time, and runs the tests that must fail. No file on disk changes.',
  )
  .option('--only <text>', 'only mutants with this text in their rule or file name', '')
  .option(
    '--since [ref]',
    'only mutants whose file or tests have changed since a commit (default: origin/main, or the last commit if nothing has changed since)',
  )
  .option('--jobs <number>', 'the number of trials at a time', whole, availableParallelism())
  .option('--search', 'run all unit tests of the runtime against each mutant, and show every failure', false)
  .option('--list', 'list the rules', false)
  .option('--json', 'print { mutants, killed, equivalent, …, seconds } as the last line', false)
  .action(run);

program.parseAsync().catch((error: unknown) => {
  complain(
    error instanceof MailroomError ? error.message : `The mutation run failed: ${errorMessage(error)}`,
  );
  process.exitCode = 1;
});
