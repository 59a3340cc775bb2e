import '../../localstack/quiet-sdk.ts';
import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { MUTANTS } from './catalog.ts';
import { changedSince } from './changed-files.ts';
import { type Mutant, problemOf } from './mutant.ts';
import { createTrialWorkers, type TrialOutcome } from './trial-workers.ts';

interface Options {
  readonly only: string;
  readonly since?: string | true;
  readonly list: boolean;
  readonly json: boolean;
}

/** The fate of a mutant. The last two fail the run. */
type Fate = 'killed' | 'timed out' | 'SURVIVED' | 'BROKEN';

interface Result {
  readonly mutant: Mutant;
  readonly fate: Fate;
  /** The test that failed, or the reason for BROKEN. */
  readonly why?: string | undefined;
}

/** The time limit of all tests on the original code, milliseconds: they take half a minute on a quiet machine. */
const ALL_TESTS_MAX_MS = 900_000;

async function run(options: Options): Promise<void> {
  const chosen = chosenBy(options);
  if (options.list) {
    for (const { rule } of chosen) print(rule);
    return;
  }
  const startedAt = Date.now();
  const say = options.json ? complain : print;
  const results = chosen.length === 0 ? [] : await tryAll(chosen, (result) => say(lineOf(result)));
  const seconds = Math.round((Date.now() - startedAt) / 100) / 10;
  const failures = results.filter(isFailure);
  const killed = results.length - failures.length;
  say(`\n${results.length} mutants: ${killed} killed, ${failures.length} to look at, ${seconds} s`);
  for (const failure of failures) say(lineOf(failure));
  if (options.json) print(JSON.stringify({ ...summaryOf(results), seconds }));
  if (failures.length > 0) process.exitCode = 1;
}

async function tryAll(mutants: readonly Mutant[], onResult: (result: Result) => void): Promise<Result[]> {
  const problems = mutants.map(problemOf).filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new MailroomError('BAD_MUTANT', problems.join('\n'));
  const workers = createTrialWorkers(availableParallelism());
  try {
    // A test that fails without a mutant proves nothing.
    const tests = [...new Set(mutants.flatMap(({ killers }) => killers))];
    const asItIs = await workers.tryOut({ tests, maxMs: ALL_TESTS_MAX_MS });
    if (asItIs.kind !== 'tried' || asItIs.failed !== undefined)
      throw new MailroomError(
        'RED_BEFORE',
        `The tests fail on the original code: ${whyOf(asItIs)}. Fix them first.`,
      );
    return await Promise.all(
      mutants.map(async (mutant) => {
        const result = resultOf(mutant, await workers.tryOut({ mutant, tests: mutant.killers }));
        onResult(result);
        return result;
      }),
    );
  } finally {
    workers.end();
  }
}

function resultOf(mutant: Mutant, outcome: TrialOutcome): Result {
  const why = whyOf(outcome);
  if (outcome.kind === 'timed out') return { mutant, fate: 'timed out' };
  if (outcome.kind === 'broken') return { mutant, fate: 'BROKEN', why };
  return { mutant, fate: outcome.failed === undefined ? 'SURVIVED' : 'killed', why };
}

function whyOf(outcome: TrialOutcome): string | undefined {
  if (outcome.kind === 'tried') return outcome.failed;
  return outcome.kind === 'broken' ? outcome.why : outcome.kind;
}

function isFailure({ fate }: Result): boolean {
  return fate === 'SURVIVED' || fate === 'BROKEN';
}

function summaryOf(results: readonly Result[]) {
  const rules = (...fates: readonly Fate[]) =>
    results.filter(({ fate }) => fates.includes(fate)).map(({ mutant }) => mutant.rule);
  return {
    mutants: results.length,
    killed: rules('killed', 'timed out').length,
    timedOut: rules('timed out'),
    survived: rules('SURVIVED'),
    broken: rules('BROKEN'),
  };
}

function lineOf({ mutant, fate, why }: Result): string {
  const file = mutant.file.replace('lambdas/runtime/', '');
  return `${fate.padEnd(10)} ${file}: ${mutant.rule}${why === undefined ? '' : `\n           ${why}`}`;
}

function chosenBy({ only: text, since }: Options): readonly Mutant[] {
  const chosen = MUTANTS.filter(({ rule, file }) => rule.includes(text) || file.includes(text));
  if (chosen.length === 0)
    throw new MailroomError(
      'NO_SUCH_MUTANT',
      `No mutant has "${text}" in its rule or file name; --list shows all rules.`,
    );
  if (since === undefined) return chosen;
  const changed = changedSince(since === true ? undefined : since);
  return chosen.filter(({ file, killers }) => [file, ...killers].some((path) => changed.has(path)));
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
  .option('--list', 'list the rules', false)
  .option('--json', 'print { mutants, killed, …, seconds } as the last line', false)
  .action(run);

program.parseAsync().catch((error: unknown) => {
  complain(
    error instanceof MailroomError ? error.message : `The mutation run failed: ${errorMessage(error)}`,
  );
  process.exitCode = 1;
});
