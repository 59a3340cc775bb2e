import './test/support/temporary-files.ts';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { projectRoot } from './localstack/workspace.ts';
import { receiptReporter } from './verify/receipt-reporter.ts';

const { AWS_ENDPOINT_URL = '', VERIFY_DEPLOYMENT = '{}' } = process.env;

/** Longer than a test in an account takes: several waits, each with a deadline of its own. */
const HANGS_MS = 3_600_000;

/** The tests of test/account come first: one of them needs a system in which every message is processed. */
class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
  }
}

/** The main promises, and what an account shows in addition, on the deployment that the environment names: see verify/run-tests.ts. */
export default defineConfig({
  test: {
    root: projectRoot,
    include: [
      'test/account/*.test.ts',
      'test/attack/forged-source.engine.test.ts',
      'test/local/core/*.test.ts',
    ],
    provide: { endpoint: AWS_ENDPOINT_URL, ...JSON.parse(VERIFY_DEPLOYMENT) },
    reporters: [receiptReporter],
    sequence: { sequencer: ByName },
    // A new account runs 10 functions at a time, and the first tests turn off what the others need.
    maxWorkers: 1,
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
  },
});
