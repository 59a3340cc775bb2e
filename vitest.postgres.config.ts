import './test/support/temporary-files.ts';
import { defineConfig } from 'vitest/config';

/** A test that hangs, on a busy machine, too. */
const HANGS_MS = 900_000;

/** The storage in PostgreSQL, on a real server that each file starts. `npm run test:postgres`. */
export default defineConfig({
  test: {
    include: ['test/postgres/**/*.test.ts'],
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
    // What they import takes seconds to load: once for each worker and not for each file. What a test stubs is put back.
    isolate: false,
    unstubEnvs: true,
    restoreMocks: true,
    maxWorkers: 2,
  },
});
