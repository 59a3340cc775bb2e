import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { step } from './step.ts';
import { installIn, makeApp, useApp } from './stranger.ts';
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

describe.concurrent("somebody's app, made by cdk init with the files of docs/getting-started.md, and its packages installed by npm", () => {
  test('works with TypeScript 7 and the peers of this repository, as ES modules, with every declaration checked', async () => {
    const folder = join(folders[1] ?? '', 'own', 'shop');
    const { peerDependencies, devDependencies } = tarball.manifest;
    const versions = Object.fromEntries(
      Object.keys(peerDependencies).map((name) => [name, devDependencies[name] ?? '']),
    );
    await makeApp(folder, 'ESM');
    await installIn(folder, tarball, { ...versions, typescript: '~7.0.2' });
    await step(folder, 'npx', ['--no', '--', 'tsc', '--skipLibCheck', 'false']);
    await useApp(folder, tarball);
  });

  test('works with TypeScript 5.9 and the lowest peers, as CommonJS', async () => {
    const folder = join(folders[1] ?? '', 'lowest', 'shop');
    const peers = Object.entries(tarball.manifest.peerDependencies);
    const versions = Object.fromEntries(peers.map(([name, range]) => [name, lowest(range)]));
    await makeApp(folder, 'CommonJS');
    await installIn(folder, tarball, { ...versions, typescript: '~5.9.3' });
    await useApp(folder, tarball);
  });
});

/** The lowest version that a range lets in: `^1.2.3` or `>=1.2.3`. */
function lowest(range: string): string {
  const version = /^(?:\^|>=)(\d+\.\d+\.\d+)$/.exec(range)?.[1];
  if (version === undefined) throw new Error(`The range "${range}" has no floor that this test can read`);
  return version;
}
