import './test/support/temporary-files.ts';
import { defineConfig } from 'vitest/config';
import { receiptReporter } from './test/brokers/receipt-reporter.ts';

/** A test that hangs. A restart of Kafka Connect takes 20 seconds, more on a busy machine. */
const HANGS_MS = 900_000;

/** Change data capture with Debezium, Kafka Connect, PostgreSQL and Kafka. `npm run test:cdc`. */
export default defineConfig({
  test: {
    include: ['test/cdc/**/*.test.ts'],
    globalSetup: ['test/cdc/setup.ts'],
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
    reporters: ['default', receiptReporter],
    maxWorkers: 1,
  },
});
