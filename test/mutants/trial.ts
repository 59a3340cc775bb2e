import { join, relative } from 'node:path';
import { BaseSequencer, createVitest, type Reporter, type TestSpecification } from 'vitest/node';
import { type Mutant, mutated, ROOT } from './mutant.ts';

/** Tests, and the mutant to run them against. */
export interface Trial {
  /** @default none: the original code */
  readonly mutant?: Mutant | undefined;
  /** Test files, in the order in which they run. */
  readonly tests: readonly string[];
  /** Stop at the first test that fails. */
  readonly bail: boolean;
  /** The time limit, milliseconds. A trial takes seconds; one that reaches the limit hangs. @default 2 minutes */
  readonly maxMs?: number;
}

/** The result of a trial: the tests that failed, or the reason why no test could run. */
export type Verdict =
  | { readonly kind: 'tried'; readonly failed: readonly FailedTest[] }
  | { readonly kind: 'broken'; readonly why: string };

/** A test that failed. */
export interface FailedTest {
  readonly file: string;
  readonly name: string;
}

/** The time limit of a single test, milliseconds. */
const TEST_MAX_MS = 60_000;

let trial: Trial = { tests: [], bail: false };
let loaded = false;
let failed: FailedTest[] = [];
let unloadable: string[] = [];

/** Replaces the mutant's text when Vitest loads the file. The file on disk never changes. */
const plugin = {
  name: 'mutant',
  enforce: 'pre' as const,
  transform(code: string, id: string): string | undefined {
    const { mutant } = trial;
    if (mutant === undefined || id.split('?')[0] !== pathOf(mutant.file)) return undefined;
    loaded = true;
    return mutated(code, mutant);
  },
};

const reporter: Reporter = {
  onTestCaseResult: (test) => {
    if (test.result().state !== 'failed') return;
    failed.push({ file: relative(ROOT, test.module.moduleId), name: test.fullName });
  },
  onTestModuleEnd: (module) => {
    unloadable.push(...module.errors().map(({ message }) => message));
  },
};

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = trial.tests.map(pathOf);
    return files.toSorted((a, b) => order.indexOf(a.moduleId) - order.indexOf(b.moduleId));
  }
}

// A separate process, so that trials run in parallel and one that hangs can be killed.
const vitest = await createVitest(
  'test',
  {
    root: ROOT,
    config: false,
    watch: false,
    include: ['test/**/*.test.ts'],
    reporters: [reporter],
    // The settings of the project `fast`, with one file at a time.
    isolate: false,
    unstubEnvs: true,
    restoreMocks: true,
    pool: 'threads',
    maxWorkers: 1,
    sequence: { sequencer: InOrder },
    testTimeout: TEST_MAX_MS,
    hookTimeout: TEST_MAX_MS,
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
  },
  { plugins: [plugin] },
);
const known = await vitest.globTestSpecifications();
process.on('message', async (next: Trial) => {
  trial = next;
  process.send?.(await tryOut());
});
process.once('disconnect', () => process.exit());

async function tryOut(): Promise<Verdict> {
  const { mutant, tests, bail } = trial;
  [loaded, failed, unloadable] = [mutant === undefined, [], []];
  const paths = tests.map(pathOf);
  vitest.config.bail = bail ? 1 : 0;
  if (mutant !== undefined) vitest.invalidateFile(pathOf(mutant.file));
  const { unhandledErrors } = await vitest.runTestSpecifications(
    known.filter(({ moduleId }) => paths.includes(moduleId)),
    true,
  );
  if (mutant !== undefined) vitest.invalidateFile(pathOf(mutant.file));
  const [why] = unloadable;
  if (why !== undefined) return { kind: 'broken', why };
  if (!loaded) return { kind: 'broken', why: 'None of its tests loads the file.' };
  const [unhandled] = unhandledErrors as Error[];
  if (unhandled === undefined || failed.length > 0) return { kind: 'tried', failed };
  return { kind: 'tried', failed: [{ file: tests[0] ?? '', name: `unhandled: ${unhandled.message}` }] };
}

function pathOf(file: string): string {
  return join(ROOT, file);
}
