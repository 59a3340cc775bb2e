import '../../localstack/quiet-sdk.ts';
import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { MUTANTS } from './catalog.ts';
import { changedSince } from './changed-files.ts';
import { type Mutant, problemOf } from './mutant.ts';
import type { Verdict } from './trial.ts';
import { createTrialWorkers } from './trial-workers.ts';

interface Options {
  readonly only: string;
  readonly since?: string | true;
  readonly json: boolean;
}

type Result = Verdict & { readonly mutant: Mutant };

/** The time limit of all tests on the original code, milliseconds: they take half a minute on a quiet machine. */
const ALL_TESTS_MAX_MS = 900_000;

async function run(options: Options): Promise<void> {
  const chosen = chosenBy(options);
  const startedAt = Date.now();
  const say = options.json ? complain : print;
  const results = chosen.length === 0 ? [] : await tryAll(chosen, (result) => say(lineOf(result)));
  const of = (...fates: readonly Result['fate'][]) => results.filter(({ fate }) => fates.includes(fate));
  const rules = (fate: Result['fate']) => of(fate).map(({ mutant }) => mutant.rule);
  const failures = of('SURVIVED', 'BROKEN');
  const [mutants, killed] = [results.length, results.length - failures.length];
  const seconds = Math.round((Date.now() - startedAt) / 100) / 10;
  say(`\n${mutants} mutants: ${killed} killed, ${failures.length} to look at, ${seconds} s`);
  for (const failure of failures) say(lineOf(failure));
  const lists = { timedOut: rules('timed out'), survived: rules('SURVIVED'), broken: rules('BROKEN') };
  if (options.json) print(JSON.stringify({ mutants, killed, ...lists, seconds }));
  if (failures.length > 0) process.exitCode = 1;
}

async function tryAll(mutants: readonly Mutant[], onResult: (result: Result) => void): Promise<Result[]> {
  const problems = mutants.map(problemOf).filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new MailroomError('BAD_MUTANT', problems.join('\n'));
  const workers = createTrialWorkers(availableParallelism());
  try {
    // A test that fails without a mutant proves nothing.
    const tests = [...new Set(mutants.flatMap(({ killers }) => killers))];
    const { fate, why } = await workers.tryOut({ tests, maxMs: ALL_TESTS_MAX_MS });
    if (fate !== 'SURVIVED')
      throw new MailroomError(
        'RED_BEFORE',
        `The tests fail on the original code: ${why ?? fate}. Fix them first.`,
      );
    return await Promise.all(
      mutants.map(async (mutant) => {
        const result = { mutant, ...(await workers.tryOut({ mutant, tests: mutant.killers })) };
        onResult(result);
        return result;
      }),
    );
  } finally {
    workers.end();
  }
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
      `No mutant has "${text}" in its rule or file name. Each rule is a row of a file in test/mutants.`,
    );
  if (since === undefined) return chosen;
  const changed = changedSince(since === true ? undefined : since);
  return chosen.filter(({ file, killers }) => [file, ...killers].some((path) => changed.includes(path)));
}

const print = (line: string) => process.stdout.write(`${line}\n`);
const complain = (line: string) => process.stderr.write(`${line}\n`);

const program = new Command('npm run mutants --')
  .description(
    'Takes each rule of the protocol out of the code, one at a time, and runs the tests that must fail. No file on disk changes.',
  )
  .option('--only <text>', 'only mutants with this text in their rule or file name', '')
  .option(
    '--since [ref]',
    'only mutants whose file or tests have changed since a commit (default: origin/main, or the last commit if nothing has changed since)',
  )
  .option('--json', 'print { mutants, killed, …, seconds } as the last line', false)
  .action(run);

program.parseAsync().catch((error: unknown) => {
  complain(
    error instanceof MailroomError ? error.message : `The mutation run failed: ${errorMessage(error)}`,
  );
  process.exitCode = 1;
});
