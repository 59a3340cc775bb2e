import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { cacheFile, localFile } from '../../../localstack/workspace.ts';

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mailroom-cache-'));
  vi.stubEnv('XDG_CACHE_HOME', dir);
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true });
});

test('the engine is installed into the cache of the user', () => {
  expect(cacheFile('python')).toBe(join(dir, 'mailroom', 'python'));
});

test('a relative XDG_CACHE_HOME is ignored', () => {
  vi.stubEnv('XDG_CACHE_HOME', 'cache');
  vi.stubEnv('HOME', dir);
  expect(homedir()).toBe(dir);
  expect(cacheFile('python')).toBe(join(dir, '.cache', 'mailroom', 'python'));
});

test('a cache that every user can change is not used', async () => {
  cacheFile('python');
  await chmod(join(dir, 'mailroom'), 0o777);
  expect(cacheFile('python')).toBe(localFile('python'));
});

test('a cache of another user is not used', () => {
  cacheFile('python');
  const uid = process.getuid?.() ?? 0;
  vi.spyOn(process, 'getuid').mockReturnValue(uid + 1);
  expect(cacheFile('python')).toBe(localFile('python'));
});

test('without a folder to write to, the engine is installed beside the logs', () => {
  vi.stubEnv('XDG_CACHE_HOME', '/dev/null');
  expect(cacheFile('python')).toBe(localFile('python'));
});
