import './test/support/temporary-files.ts';
import { defineConfig } from 'vitest/config';

/** A test that hangs, on a busy machine, too. */
const HANGS_MS = 900_000;

/** What needs nothing but a table, on any DynamoDB. `npm run test:dynamodb`. */
export default defineConfig({
  test: {
    include: ['test/contract/{batch,delivery,inbox,table,unique-event}.engine.test.ts'],
    globalSetup: ['test/support/dynamodb-endpoint.ts'],
    testTimeout: HANGS_MS,
    hookTimeout: HANGS_MS,
    isolate: false,
    maxWorkers: 2,
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
  },
});
