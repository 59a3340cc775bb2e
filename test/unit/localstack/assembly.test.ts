import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { removeOlder } from '../../../localstack/assembly.ts';

test('an assembly that another process may be deploying is kept: the same one, and one that is young', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'assemblies-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const built = async (name: string, minutesAgo: number) => {
    await mkdir(join(folder, name));
    const at = Date.now() / 1_000 - minutesAgo * 60;
    await utimes(join(folder, name), at, at);
  };
  await built('assembly-shop-own', 90);
  await built('assembly-shop-old', 90);
  await built('assembly-shop-young', 30);
  await built('assembly-bank-old', 90);
  await removeOlder(folder, 'assembly-shop-', 'assembly-shop-own');
  expect((await readdir(folder)).sort()).toEqual([
    'assembly-bank-old',
    'assembly-shop-own',
    'assembly-shop-young',
  ]);
});
