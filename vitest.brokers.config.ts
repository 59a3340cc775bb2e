import './test/support/temporary-files.ts';
import { defineConfig } from 'vitest/config';
import { receiptReporter } from './test/brokers/receipt-reporter.ts';

/** A test that hangs. A restart of Kafka takes ten seconds, more on a busy machine. */
const HANGS_MS = 600_000;

/** What the targets and sources do on real brokers. `npm run test:brokers`. */
export default defineConfig({
  test: {
    include: ['test/brokers/**/*.test.ts'],
    globalSetup: ['test/brokers/setup.ts'],
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
    reporters: ['default', receiptReporter],
    // Kafka and RabbitMQ use 700 MB together.
    maxWorkers: 2,
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
  },
});
