import './test/support/temporary-files.ts';
import { defineConfig } from 'vitest/config';

/** A test that hangs, and not a slow registry or machine. */
const HANGS_MS = 1_800_000;

/** Too long for every change: deeper explorations, and what is installed anew from the registries. `npm run test:nightly`. */
export default defineConfig({
  test: {
    include: ['test/explorer/**/*.test.ts', 'test/**/*.nightly.test.ts'],
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
    maxWorkers: '100%',
    env: { EXPLORE_NIGHTLY: 'true', AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
  },
});
