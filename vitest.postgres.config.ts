import { defineConfig } from 'vitest/config';

/** A test that hangs, on a busy machine, too. */
const HANGS_MS = 900_000;

/** The storage in PostgreSQL, on a real server that each file starts. `npm run test:postgres`. */
export default defineConfig({
  test: {
    include: ['test/postgres/**/*.test.ts'],
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
    maxWorkers: 2,
  },
});
