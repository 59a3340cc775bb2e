import { defineConfig } from 'vitest/config';

const localTests = ['test/local/**/*.test.ts', 'test/**/*.engine.test.ts', 'test/browser/**/*.test.ts'];
const explorerTests = ['test/explorer/**/*.test.ts'];
const packageTests = ['test/package/**/*.test.ts'];
const templateTests = [
  'test/examples/!(*.nightly).test.ts',
  'test/infra/**/!(workflow).test.ts',
  'test/attack/**/*.template.test.ts',
  'test/chaos/timings.test.ts',
  'test/docs/documented-tests.test.ts',
  'test/docs/recipes/stacks.test.ts',
];
const toolTests = [
  'test/chaos/!(timings).test.ts',
  'test/docs/page-code.test.ts',
  'test/docs/recipes/!(stacks).test.ts',
  'test/law/floating-promises.test.ts',
  'test/law/lint.test.ts',
  'test/types/compiler-messages.test.ts',
];
const benchTests = ['test/unit/bench/**/*.test.ts', 'test/contract/table.wire.test.ts'];

/** What `npm run test:nightly` runs beside the explorer: see vitest.nightly.config.ts. */
const nightlyTests = ['test/**/*.nightly.test.ts'];

/** Minutes for what takes seconds: a timeout finds a test that hangs, and must never judge the speed of a machine. */
const HANGS_MS = 300_000;

const inProcess = {
  // Only a test that hangs takes this long, however busy the machine is.
  testTimeout: HANGS_MS,
  hookTimeout: HANGS_MS,
  // The age of Node 20 is not what these tests are about.
  env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
  // The SDK and the CDK take seconds to load: once for each worker and not for each file. What a test stubs is put back.
  isolate: false,
  unstubEnvs: true,
  restoreMocks: true,
  // They work and never wait: as many as there are processors.
  maxWorkers: '100%',
};

export default defineConfig({
  test: {
    projects: [
      {
        // Needs nothing but Node. `npm run check` runs these and no others.
        test: {
          ...inProcess,
          name: 'fast',
          sequence: { groupOrder: 0 },
          include: ['test/**/*.test.ts'],
          exclude: [
            ...localTests,
            ...explorerTests,
            ...packageTests,
            ...templateTests,
            ...toolTests,
            ...benchTests,
            ...nightlyTests,
          ],
        },
      },
      {
        // What loads the CDK: templates, roles, alarms, and the stacks and tests that the documentation shows.
        test: { ...inProcess, name: 'templates', sequence: { groupOrder: 0 }, include: templateTests },
      },
      {
        // What the project is worked on with: these start programs, or load those of the recipes.
        test: { ...inProcess, name: 'tools', sequence: { groupOrder: 0 }, include: toolTests },
      },
      {
        // What an event costs, counted and simulated; and the metered AWS that counts.
        test: { ...inProcess, name: 'bench', sequence: { groupOrder: 0 }, include: benchTests },
      },
      {
        // Every order of calls, every crash: needs nothing but Node, and a minute.
        test: {
          name: 'explorer',
          sequence: { groupOrder: 1 },
          include: explorerTests,
          exclude: nightlyTests,
          // Bounded by what is walked, not by the clock.
          testTimeout: 6 * HANGS_MS,
          maxWorkers: '100%',
          env: inProcess.env,
        },
      },
      {
        // Packs what is published, and uses it as a stranger would: from its tarball, in an app of its own.
        test: {
          name: 'package',
          sequence: { groupOrder: 2 },
          include: packageTests,
          exclude: nightlyTests,
          maxWorkers: '100%',
          testTimeout: 3 * HANGS_MS,
          hookTimeout: 3 * HANGS_MS,
          env: inProcess.env,
        },
      },
      {
        // Runs against a local AWS, started and deployed to once for all of them.
        test: {
          name: 'local',
          sequence: { groupOrder: 3 },
          include: localTests,
          exclude: nightlyTests,
          globalSetup: ['test/support/engine.ts'],
          // Longer than what it waits for with `eventually`, several times in a row.
          testTimeout: 4 * HANGS_MS,
          hookTimeout: 4 * HANGS_MS,
          // They wait more than they work.
          maxWorkers: 3,
        },
      },
    ],
  },
});
