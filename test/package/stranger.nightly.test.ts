import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../localstack/free-port.ts';
import { followPage, pageCommands } from './getting-started.ts';
import { cacheWithEngine, deployTo, type StartedEngine } from './local-engine.ts';
import { step } from './step.ts';
import {
  dependIn,
  findHoistedTypes,
  installIn,
  makeApp,
  testWithJest,
  testWithVitest,
  useApp,
} from './stranger.ts';
import { buildClone, type Packages, unpack } from './tarball.ts';

let packages: Packages;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mailroom-stranger-'));
  packages = await unpack(await buildClone(join(folder, 'cdk-mailroom')), join(folder, 'unpacked'));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Where an app is made; the CDK takes the name of the folder for that of the app. */
const shop = (name: string) => join(folder, name, 'shop');

test('the commands of docs/getting-started.md install, test and deploy the app, show its failure, and repair it', async () => {
  const app = join(folder, 'shop');
  await makeApp(app, 'CommonJS');
  for (const [command = '', ...args] of pageCommands('Create the app', 'npm install'))
    await step(app, command, args);
  await testWithJest(app);
  const cache = await cacheWithEngine(join(folder, 'cache'));
  const port = String(await freePort());
  const local = async (...args: string[]) =>
    JSON.parse(await step(app, 'npx', ['cdk-mailroom', 'local', ...args, '--port', port, '--json'], cache));
  const engine = (await local()) as StartedEngine;
  try {
    await deployTo(app, engine);
    await followPage(app, engine);
    await step(app, 'npx', ['cdk', 'destroy', '--force'], engine.environment);
  } finally {
    await local('stop');
  }
});

describe("a user's app, made by cdk init with the files of docs/getting-started.md, and its packages installed", () => {
  test('works with TypeScript 7 and the peers of this repository, as ES modules, with every declaration checked', async () => {
    const app = shop('own');
    const { peerDependencies, devDependencies } = packages.library.manifest;
    const versions = Object.keys(peerDependencies).map((name) => [name, devDependencies[name] ?? '']);
    await makeApp(app, 'ESM');
    await dependIn(app, packages, { ...Object.fromEntries(versions), typescript: '~7.0.2' });
    await installIn(app);
    await step(app, 'npx', ['--no', '--', 'tsc', '--skipLibCheck', 'false']);
    await useApp(app, packages);
    await testWithVitest(app);
  });

  test('works with TypeScript 5.9, ts-node and the lowest peers, as CommonJS', async () => {
    const app = shop('lowest');
    const peers = Object.entries(packages.library.manifest.peerDependencies);
    const versions = Object.fromEntries(peers.map(([name, range]) => [name, lowest(range)]));
    await makeApp(app, 'CommonJS');
    await dependIn(app, packages, { ...versions, typescript: '~5.9.3', 'ts-node': '^10.9.2' });
    await installIn(app);
    await useApp(app, packages);
    await testWithJest(app);
    await step(app, 'npx', [
      '--no',
      '--',
      'cdk',
      'list',
      '--app',
      'npx ts-node --prefer-ts-exts bin/shop.ts',
    ]);
    for (const resolution of RESOLUTIONS) await step(app, 'npx', ['--no', '--', 'tsc', ...resolution]);
  });

  test('works with the newest peers, and its npm test passes on every Node.js that is supported', async () => {
    const app = shop('newest');
    await makeApp(app, 'CommonJS');
    await dependIn(app, packages, {});
    await installIn(app);
    await useApp(app, packages);
    await testWithJest(app);
    await step(app, 'npm', ['test']);
    for (const major of [20, 22, 24]) await testWithJest(app, await nodeOf(major));
  });

  test.each([['hoisted'], ['nested']])('works in a workspace of npm with %s packages', async (strategy) => {
    const app = shop(strategy);
    await makeApp(app, 'CommonJS');
    await dependIn(app, packages, {});
    await findHoistedTypes(app);
    const workspace = { private: true, workspaces: ['shop'] };
    await writeFile(join(app, '..', 'package.json'), JSON.stringify(workspace));
    await installIn(join(app, '..'), `--install-strategy=${strategy}`);
    await useApp(app, packages);
    await testWithJest(app);
  });

  test('works with pnpm', async () => {
    const app = shop('pnpm');
    await makeApp(app, 'CommonJS');
    // The CDK calls pnpm where it finds its lockfile.
    await dependIn(app, packages, { pnpm: '^10.0.0' });
    await step(app, 'npx', ['--yes', 'pnpm@10', 'install', '--no-frozen-lockfile']);
    await useApp(app, packages);
    await testWithJest(app);
  });
});

/** How the compiler may look for a package in CommonJS, besides the template's NodeNext. */
const RESOLUTIONS = [
  ['--module', 'node16', '--moduleResolution', 'node16'],
  ['--module', 'preserve', '--moduleResolution', 'bundler'],
  ['--module', 'commonjs', '--moduleResolution', 'node10'],
];

/** Installs the newest Node.js of a major version from npm. @returns the path of its binary */
async function nodeOf(major: number): Promise<string> {
  const own = join(folder, `node-${major}`);
  await mkdir(own, { recursive: true });
  await writeFile(join(own, 'package.json'), '{ "private": true }');
  await installIn(own, `node@${major}`);
  const node = join(own, 'node_modules', 'node', 'bin', 'node');
  expect(await step(own, node, ['--version'])).toMatch(new RegExp(`^v${major}\\.`));
  return node;
}

/** The lowest version that a range lets in: `^1.2.3` or `>=1.2.3`. */
function lowest(range: string): string {
  const version = /^(?:\^|>=)(\d+\.\d+\.\d+)$/.exec(range)?.[1];
  if (version === undefined) throw new Error(`The range "${range}" has no floor that this test can read`);
  return version;
}
