import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { reachedPackages, smallBundle } from './bundles.ts';
import { packageOf, specifiersOf, staticImports } from './imports.ts';
import { step } from './step.ts';
import { lowest, makeApp } from './stranger.ts';
import { pack, ROOT, type Tarball } from './tarball.ts';

/** The package, packed once: what it holds, what is bundled of it, and two apps of somebody who installs it. */
let tarball: Tarball;
let folders: readonly string[] = [];

beforeAll(async () => {
  await mkdir(join(ROOT, '.local'), { recursive: true });
  const own = await mkdtemp(join(ROOT, '.local', 'package-'));
  folders = [own];
  folders = [own, await mkdtemp(join(tmpdir(), 'mailroom-stranger-'))];
  tarball = await pack(own);
});

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

const read = (file: string) => readFile(join(tarball.unpacked, file), 'utf8');

describe('the tarball', () => {
  test('holds what is built, its licence and its texts, and nothing of the repository besides', () => {
    const texts = ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin/mailroom.js', 'llms.txt', 'package.json'];
    expect(tarball.files.filter((file) => !file.startsWith('dist/'))).toEqual(texts);
    const foreign = /^dist\/(?!lib\/|cli\/|lambdas\/)|\/(?:test|bench|demo|example)\/|\.test\./;
    expect(tarball.files.filter((file) => foreign.test(file))).toEqual([]);
  });

  test('runs nothing when it is installed', () => {
    const hooks = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(Object.keys(tarball.manifest.scripts ?? {}).filter((name) => hooks.includes(name))).toEqual([]);
    expect(tarball.files).not.toContain('binding.gyp');
  });

  test('imports only what it asks npm for, or what Node.js has', async () => {
    const { dependencies, peerDependencies } = tarball.manifest;
    const declared = new Set(Object.keys({ ...dependencies, ...peerDependencies }));
    const code = tarball.files.filter((file) => /\.(?:js|d\.ts)$/.test(file));
    const foreign = new Set<string>();
    for (const file of code) {
      for (const specifier of specifiersOf(await read(file))) {
        if (specifier.startsWith('.') || isBuiltin(specifier)) continue;
        const name = packageOf(specifier);
        // Of a package that is written in JavaScript, declarations need the types.
        const declaredTypes = file.endsWith('.d.ts') && declared.has(`@types/${name}`);
        if (!declared.has(name) && !declaredTypes) foreign.add(`${file}: ${specifier}`);
      }
    }
    // Only the repository, which runs the command from its sources, has tsx.
    expect([...foreign]).toEqual(['bin/mailroom.js: tsx/esm/api']);
  });

  test.each([
    ['publint', '--strict'],
    ['attw', '--profile', 'esm-only'],
  ])('is in order for %s', async (tool, ...options) => {
    await step(ROOT, 'npx', ['--no', '--', tool, ...options, tarball.file]);
  });

  test('has source maps that hold their sources', async () => {
    const maps = tarball.files.filter((file) => file.endsWith('.js.map'));
    expect(maps.length).toBe(tarball.files.filter((file) => /^dist\/.*\.js$/.test(file)).length);
    for (const file of maps) {
      const { sources, sourcesContent } = JSON.parse(await read(file)) as Record<string, string[]>;
      expect(
        sourcesContent?.filter((text) => text !== ''),
        file,
      ).toHaveLength(sources?.length ?? -1);
    }
  });
});

describe('what is bundled of it', () => {
  /** 1,003 bytes at the last look. Any library that slips in is more than the difference. */
  const EVENT_BYTES_MAX = 1_200;

  test('is small where only an event is defined, with neither the SDK nor Powertools', async () => {
    const { bytes, packages } = await smallBundle(
      tarball,
      "export { defineEvent } from 'cdk-mailroom/runtime';",
    );
    expect(packages).toEqual(['cdk-mailroom']);
    expect(bytes).toBeLessThanOrEqual(EVENT_BYTES_MAX);
  });

  test('has no client but DynamoDB in a producer', async () => {
    const { packages } = await smallBundle(tarball, "export { lambdaOutbox } from 'cdk-mailroom/runtime';");
    expect(packages.filter((name) => name.startsWith('@aws-sdk/client-'))).toEqual([
      '@aws-sdk/client-dynamodb',
    ]);
  });

  test('has no client but DynamoDB and SQS in a consumer', async () => {
    const { packages } = await smallBundle(tarball, "export { lambdaConsumer } from 'cdk-mailroom/runtime';");
    expect(packages.filter((name) => name.startsWith('@aws-sdk/client-'))).toEqual([
      '@aws-sdk/client-dynamodb',
      '@aws-sdk/client-sqs',
    ]);
  });
});

describe('importing', () => {
  const CDK = /^(?:aws-cdk-lib|constructs)$/;
  const IN_AWS = /^@aws-(?:sdk|lambda-powertools)\//;

  test('cdk-mailroom loads the CDK, and neither the SDK nor Powertools', async () => {
    const packages = await reachedPackages(tarball, 'cdk-mailroom');
    expect(packages.filter((name) => CDK.test(name))).toEqual(['aws-cdk-lib', 'constructs']);
    expect(packages.filter((name) => IN_AWS.test(name))).toEqual([]);
  });

  test.each(['cdk-mailroom/runtime', 'cdk-mailroom/testing'])(
    '%s loads nothing of the CDK',
    async (entry) => {
      const packages = await reachedPackages(tarball, entry);
      expect(packages.some((name) => IN_AWS.test(name))).toBe(true);
      expect(packages.filter((name) => CDK.test(name))).toEqual([]);
    },
  );
});

describe.concurrent("somebody's app, made by cdk init with the files of docs/getting-started.md", () => {
  /** Everything that the page has them do, short of the deployment. */
  async function use(folder: string, tscArguments: readonly string[]): Promise<void> {
    await step(folder, 'npx', ['--no', '--', 'tsc', ...tscArguments]);
    await step(folder, 'npx', ['--no', '--', 'cdk', 'synth', '-q']);
    const bundles = (await readdir(join(folder, 'cdk.out'), { recursive: true })).filter((file) =>
      file.endsWith('index.mjs'),
    );
    expect(bundles, 'stream, sweep, producer and consumer').toHaveLength(4);
    for (const bundle of bundles) {
      const code = await readFile(join(folder, 'cdk.out', bundle), 'utf8');
      expect(staticImports(code).filter((name) => !isBuiltin(name))).toEqual([]);
    }
    expect(await step(folder, 'npx', ['--no', '--', 'vitest', 'run'])).toMatch(/Tests +2 passed \(2\)/);
    expect(await step(folder, 'npx', ['--no', '--', 'mailroom', '--version'])).toContain(
      tarball.manifest.version,
    );
    expect(await step(folder, 'npx', ['--no', '--', 'mailroom', '--help'])).toContain('Usage: mailroom');
  }

  test('works with TypeScript 7 and the peers of this repository, as ES modules, with every declaration checked', async () => {
    const folder = join(folders[1] ?? '', 'own', 'shop');
    const { peerDependencies, devDependencies } = tarball.manifest;
    const versions = Object.fromEntries(
      Object.keys(peerDependencies).map((name) => [name, devDependencies[name] ?? '']),
    );
    await makeApp(folder, tarball, { module: 'ESM', versions: { ...versions, typescript: '~7.0.2' } });
    await use(folder, ['--skipLibCheck', 'false']);
  });

  test('works with TypeScript 5.9 and the lowest peers, as CommonJS', async () => {
    const folder = join(folders[1] ?? '', 'lowest', 'shop');
    const peers = Object.entries(tarball.manifest.peerDependencies);
    const versions = Object.fromEntries(peers.map(([name, range]) => [name, lowest(range)]));
    await makeApp(folder, tarball, { module: 'CommonJS', versions: { ...versions, typescript: '~5.9.3' } });
    await use(folder, []);
  });
});
