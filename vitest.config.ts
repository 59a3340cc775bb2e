import { defineConfig } from 'vitest/config';

const localTests = ['test/local/**/*.test.ts', 'test/**/*.engine.test.ts'];
const explorerTests = ['test/explorer/**/*.test.ts'];
const packageTests = ['test/package/**/*.test.ts'];

// The age of Node 20 is not what these tests are about.
const quiet = { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' };

export default defineConfig({
  test: {
    projects: [
      {
        // Needs nothing but Node.
        test: {
          name: 'fast',
          sequence: { groupOrder: 0 },
          include: ['test/**/*.test.ts'],
          exclude: [...localTests, ...explorerTests, ...packageTests],
          testTimeout: 20_000,
          env: quiet,
          // The CDK takes seconds to load: once for each worker and not for each file. What a test stubs is put back.
          isolate: false,
          unstubEnvs: true,
          restoreMocks: true,
        },
      },
      {
        // Every order of calls, every crash: needs nothing but Node, and a minute.
        test: {
          name: 'explorer',
          sequence: { groupOrder: 1 },
          include: explorerTests,
          testTimeout: 120_000,
          maxWorkers: '100%',
          env: quiet,
        },
      },
      {
        // Packs what is published, and uses it as a stranger would: from its tarball, in an app of its own.
        test: {
          name: 'package',
          sequence: { groupOrder: 1 },
          include: packageTests,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        // Runs against a local AWS, started and deployed to once for all of them.
        test: {
          name: 'local',
          sequence: { groupOrder: 2 },
          include: localTests,
          globalSetup: ['test/support/engine.ts'],
          testTimeout: 120_000,
          hookTimeout: 300_000,
          // They wait more than they work.
          maxWorkers: 3,
        },
      },
    ],
  },
});
