import { join, relative } from 'node:path';
import { BaseSequencer, createVitest, type Reporter, type TestSpecification } from 'vitest/node';
import { type Mutant, mutated, ROOT } from './mutant.ts';

/** Tests, and the mutant to run them against. */
export interface Trial {
  /** @default none: the original code */
  readonly mutant?: Mutant | undefined;
  /** Test files, in the order in which they run. */
  readonly tests: readonly string[];
  /** The time limit, milliseconds. A trial takes seconds; one that reaches the limit hangs. @default 2 minutes */
  readonly maxMs?: number;
}

/** The result of a trial. */
export interface Verdict {
  readonly fate: 'killed' | 'timed out' | 'SURVIVED' | 'BROKEN';
  /** The first test that failed, or the reason why none could run. */
  readonly why?: string | undefined;
}

/** The time limit of a single test, milliseconds. */
const TEST_MAX_MS = 60_000;

let trial: Trial = { tests: [] };
let loaded = false;
let failed: string | undefined;
let unloadable: string | undefined;

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
    if (test.result().state === 'failed')
      failed ??= `${relative(ROOT, test.module.moduleId)} > ${test.fullName}`;
  },
  onTestModuleEnd: (module) => {
    unloadable ??= module.errors()[0]?.message;
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
    bail: 1,
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
  const { mutant, tests } = trial;
  [loaded, failed, unloadable] = [mutant === undefined, undefined, undefined];
  const paths = tests.map(pathOf);
  if (mutant !== undefined) vitest.invalidateFile(pathOf(mutant.file));
  const { unhandledErrors } = await vitest.runTestSpecifications(
    known.filter(({ moduleId }) => paths.includes(moduleId)),
    true,
  );
  if (mutant !== undefined) vitest.invalidateFile(pathOf(mutant.file));
  if (unloadable !== undefined) return { fate: 'BROKEN', why: unloadable };
  if (!loaded) return { fate: 'BROKEN', why: 'None of its tests loads the file.' };
  const [unhandled] = unhandledErrors as Error[];
  const why = failed ?? (unhandled && `unhandled: ${unhandled.message}`);
  return { fate: why === undefined ? 'SURVIVED' : 'killed', why };
}

function pathOf(file: string): string {
  return join(ROOT, file);
}
