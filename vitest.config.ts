import './test/support/temporary-files.ts';
import { delimiter, join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Run by `npm run test:nightly` beside the whole explorer: see vitest.nightly.config.ts. */
const nightlyTests = ['test/**/*.nightly.test.ts'];

/** Run by `npm run test:brokers` on real brokers: see vitest.brokers.config.ts. */
const brokerTests = ['test/brokers/**/*.test.ts'];

/** Run by `npm run test:postgres` on a real server: see vitest.postgres.config.ts. */
const postgresTests = ['test/postgres/**/*.test.ts'];

/** Run by `npm run test:mysql` on a real server: see vitest.mysql.config.ts. */
const mysqlTests = ['test/mysql/**/*.test.ts'];

/** Run by `npm run test:cdc` on Kafka Connect: see vitest.cdc.config.ts. */
const cdcTests = ['test/cdc/**/*.test.ts'];

/** The tests that `npm test` runs beside `fast`: on the order system, on its templates, and in every order of calls. */
const coreTests = [
  'test/browser/look.test.ts',
  'test/local/core/**/*.test.ts',
  'test/attack/forged-source.engine.test.ts',
  'test/contract/{queue,table}.engine.test.ts',
];
const templateTests = ['test/infra/{access,inbox-consumer,nag,snapshot,stages}.test.ts'];
const explorerTests = ['test/explorer/**/!(holes).test.ts'];

/** The tests that `npm run test:all` adds. */
const quietTests = ['test/local/quiet/**/*.test.ts', 'test/**/!(forged-source|queue|table).engine.test.ts'];
const brokenTests = ['test/local/broken/**/*.test.ts'];
const featuresTests = ['test/local/features/**/*.test.ts'];
const busesTests = ['test/local/buses/**/*.test.ts'];
const browserTests = ['test/browser/**/!(look).test.ts'];
const packageTests = ['test/package/**/*.test.ts'];
const constructTests = [
  'test/examples/**/*.test.ts',
  'test/infra/**/!(access|inbox-consumer|nag|snapshot|stages|workflow).test.ts',
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
  'test/types/compiler-messages.test.ts',
];
const benchTests = ['test/unit/bench/**/*.test.ts', 'test/contract/table.wire.test.ts'];
const holeTests = ['test/explorer/holes.test.ts'];

/** Run by `npm run verify` on the system that it deploys, before `test/local/core`: see vitest.verify.config.ts. */
const accountTests = ['test/account/**/*.test.ts'];

/** Minutes for what takes seconds: a timeout finds a test that hangs, and must never judge the speed of a machine. */
const HANGS_MS = 900_000;

const every = {
  // Only a test that hangs takes this long, however busy the machine is.
  testTimeout: HANGS_MS,
  hookTimeout: HANGS_MS,
  // The age of Node 20 is not what these tests are about.
  env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
};

/** The SDK and the CDK take seconds to load: once for each worker and not for each file. What a test stubs is put back. */
const shared = { ...every, isolate: false, unstubEnvs: true, restoreMocks: true };

/** They work and never wait: as many as there are processors. */
const inProcess = { ...shared, maxWorkers: '100%' };

/** The folder of an `npx` that starts esbuild without npm, which takes three times as long to find it as esbuild to bundle a function. */
const NPX = join(import.meta.dirname, 'test/support/npx');

/** They bundle more than a hundred functions. The system of `core` is bundled as a user's. */
const bundling = { ...inProcess, env: { ...every.env, PATH: [NPX, process.env.PATH].join(delimiter) } };

/** Each wait has a deadline of its own (`eventually`); `expect.poll` looks at a page. */
const onEngine = {
  ...shared,
  globalSetup: ['test/support/engine.ts'],
  expect: { poll: { timeout: 60_000 } },
};

/** A process for each test file. */
const isolated = { ...every, maxWorkers: '100%' };

/** Projects whose tests change a system that the following ones use. */
const IN_ORDER: readonly (string | undefined)[] = ['broken', 'browser', 'features'];

/** These need a system in which nothing has happened yet. */
const FIRST = /(cli-doctor|screens)\.test\.ts$/;

/** Runs the files of those projects by name, so that their system is in the same state before each file, whenever they run. */
class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isOrdered = ({ project }: TestSpecification) => IN_ORDER.includes(project.name);
    const turn = ({ moduleId }: TestSpecification) => `${FIRST.test(moduleId) ? 1 : 2} ${moduleId}`;
    const byName = files.filter(isOrdered).toSorted((a, b) => (turn(a) < turn(b) ? -1 : 1));
    return [...(await super.sort(files.filter((file) => !isOrdered(file)))), ...byName];
  }
}

export default defineConfig({
  test: {
    exclude: nightlyTests,
    sequence: { sequencer: ByName },
    projects: [
      {
        // Needs nothing but Node. `npm run check` runs these and no others.
        extends: true,
        test: {
          ...inProcess,
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: [
            ...nightlyTests,
            ...coreTests,
            ...templateTests,
            ...explorerTests,
            ...quietTests,
            ...brokenTests,
            ...featuresTests,
            ...busesTests,
            ...browserTests,
            ...packageTests,
            ...constructTests,
            ...toolTests,
            ...benchTests,
            ...holeTests,
            ...accountTests,
            ...brokerTests,
            ...postgresTests,
            ...mysqlTests,
            ...cdcTests,
          ],
        },
      },
      {
        // The templates that a deployment must not change by accident.
        extends: true,
        test: { ...inProcess, name: 'templates', include: templateTests },
      },
      {
        // Every order of calls, every crash.
        extends: true,
        test: { ...inProcess, name: 'explorer', include: explorerTests },
      },
      {
        // The main promises, on the order system on a local AWS. They wait more than they work.
        extends: true,
        test: { ...onEngine, name: 'core', include: coreTests, maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
      {
        // The rest of what loads the CDK: every construct and its settings, and the stacks that the documentation shows.
        extends: true,
        test: { ...bundling, name: 'constructs', include: constructTests },
      },
      {
        // What the project is worked on with: these start programs, or load those of the recipes.
        extends: true,
        test: { ...inProcess, name: 'tools', include: toolTests },
      },
      {
        // What an event costs, counted and simulated; and the metered AWS that counts.
        extends: true,
        test: { ...inProcess, name: 'bench', include: benchTests },
      },
      {
        // Without one rule of the protocol, the explorer finds what breaks. Nightly, and before a change of the protocol lands.
        extends: true,
        test: { ...inProcess, name: 'holes', include: holeTests },
      },
      {
        // Packs what is published, and uses it as a stranger would: from its tarball, in an app of its own.
        extends: true,
        test: { ...isolated, name: 'package', include: packageTests },
      },
      {
        // Everything else on an order system that all of them share, and that no test breaks.
        extends: true,
        test: {
          ...onEngine,
          name: 'quiet',
          include: quietTests,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // Each test breaks a part of an order system: one after another.
        extends: true,
        test: {
          ...onEngine,
          name: 'broken',
          include: brokenTests,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // What the order system does not use, in one app.
        extends: true,
        test: {
          ...onEngine,
          name: 'features',
          include: featuresTests,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Three apps, two Mailrooms, one bus: deployed one after another on its own local AWS.
        extends: true,
        test: { ...isolated, name: 'buses', include: busesTests, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
      {
        // The page, in a browser, on an order system of its own.
        extends: true,
        test: {
          ...onEngine,
          name: 'browser',
          include: browserTests,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
