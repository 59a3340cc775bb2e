import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
import { pack, packageFolder, type Tarball } from './tarball.ts';

let tarball: Tarball;
let folders: readonly string[] = [];

beforeAll(async () => {
  const own = await packageFolder();
  folders = [own];
  folders = [own, await mkdtemp(join(tmpdir(), 'mailroom-stranger-'))];
  tarball = await pack(own);
});

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

/** Where an app is made; the CDK takes the name of the folder for that of the app. */
const shop = (name: string) => join(folders[1] ?? '', name, 'shop');

describe("a user's app, made by cdk init with the files of docs/getting-started.md, and its packages installed", () => {
  test('works with TypeScript 7 and the peers of this repository, as ES modules, with every declaration checked', async () => {
    const folder = shop('own');
    const { peerDependencies, devDependencies } = tarball.manifest;
    const versions = Object.keys(peerDependencies).map((name) => [name, devDependencies[name] ?? '']);
    await makeApp(folder, 'ESM');
    await dependIn(folder, tarball, { ...Object.fromEntries(versions), typescript: '~7.0.2' });
    await installIn(folder);
    await step(folder, 'npx', ['--no', '--', 'tsc', '--skipLibCheck', 'false']);
    await useApp(folder, tarball);
    await testWithVitest(folder);
  });

  test('works with TypeScript 5.9, ts-node and the lowest peers, as CommonJS', async () => {
    const folder = shop('lowest');
    const peers = Object.entries(tarball.manifest.peerDependencies);
    const versions = Object.fromEntries(peers.map(([name, range]) => [name, lowest(range)]));
    await makeApp(folder, 'CommonJS');
    await dependIn(folder, tarball, { ...versions, typescript: '~5.9.3', 'ts-node': '^10.9.2' });
    await installIn(folder);
    await useApp(folder, tarball);
    await testWithJest(folder);
    await step(folder, 'npx', [
      '--no',
      '--',
      'cdk',
      'list',
      '--app',
      'npx ts-node --prefer-ts-exts bin/shop.ts',
    ]);
    for (const resolution of RESOLUTIONS) await step(folder, 'npx', ['--no', '--', 'tsc', ...resolution]);
  });

  test('works with the newest peers, and its npm test passes on every Node.js that is supported', async () => {
    const folder = shop('newest');
    await makeApp(folder, 'CommonJS');
    await dependIn(folder, tarball, {});
    await installIn(folder);
    await useApp(folder, tarball);
    await testWithJest(folder);
    await step(folder, 'npm', ['test']);
    for (const major of [20, 22, 24]) await testWithJest(folder, await nodeOf(major));
  });

  test.each([['hoisted'], ['nested']])('works in a workspace of npm with %s packages', async (strategy) => {
    const folder = shop(strategy);
    await makeApp(folder, 'CommonJS');
    await dependIn(folder, tarball, {});
    await findHoistedTypes(folder);
    const workspace = { private: true, workspaces: ['shop'] };
    await writeFile(join(folder, '..', 'package.json'), JSON.stringify(workspace));
    await installIn(join(folder, '..'), `--install-strategy=${strategy}`);
    await useApp(folder, tarball);
    await testWithJest(folder);
  });

  test('works with pnpm', async () => {
    const folder = shop('pnpm');
    await makeApp(folder, 'CommonJS');
    // The CDK calls pnpm where it finds its lockfile.
    await dependIn(folder, tarball, { pnpm: '^10.0.0' });
    await step(folder, 'npx', ['--yes', 'pnpm@10', 'install', '--no-frozen-lockfile']);
    await useApp(folder, tarball);
    await testWithJest(folder);
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
  const folder = join(folders[1] ?? '', `node-${major}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  await installIn(folder, `node@${major}`);
  const node = join(folder, 'node_modules', 'node', 'bin', 'node');
  expect(await step(folder, node, ['--version'])).toMatch(new RegExp(`^v${major}\\.`));
  return node;
}

/** The lowest version that a range lets in: `^1.2.3` or `>=1.2.3`. */
function lowest(range: string): string {
  const version = /^(?:\^|>=)(\d+\.\d+\.\d+)$/.exec(range)?.[1];
  if (version === undefined) throw new Error(`The range "${range}" has no floor that this test can read`);
  return version;
}
