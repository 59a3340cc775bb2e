import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { poll } from '../../../localstack/health.ts';
import { isAlive } from '../../../localstack/process-group.ts';
import { ownDir } from './broker-files.ts';
import { type ServerCommand, startProcess } from './server-process.ts';

const DEADLINE_MS = 60_000;

let dir: string;
beforeAll(async () => {
  dir = await ownDir('server-process');
});
afterAll(async () => await rm(dir, { recursive: true, force: true }));

const server = (script: string): ServerCommand => ({
  command: 'sh',
  args: ['-c', script],
  cwd: '/',
  env: { PATH: '/usr/bin:/bin' },
  log: join(dir, 'log'),
});

const isGone = (pid: number) => poll(DEADLINE_MS, () => !isAlive(pid) || undefined);

/** True when no process of the group is left, without the server itself, which only its parent can remove. */
const isGroupGone = (pid: number) => isGone(-pid);

test('a server does not outlive the process that started it, even if that is killed', async () => {
  const child = fileURLToPath(new URL('server-process.child.ts', import.meta.url));
  const starter = spawn(process.execPath, ['--import', 'tsx', child, join(dir, 'log')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = await once(starter.stdout, 'data');
  const pid = Number(line);
  expect(isAlive(pid)).toBe(true);
  starter.kill('SIGKILL');
  expect(await isGone(pid)).toBe(true);
});

test('stops a server on request, and its watch with it', async () => {
  const { pid, stop, hasEnded } = startProcess(server('exec sleep 3600'));
  expect(hasEnded()).toBe(false);
  await stop();
  expect(hasEnded()).toBe(true);
  expect(await isGroupGone(pid)).toBe(true);
});

test('kills a server together with its children', async () => {
  const { pid, kill } = startProcess(server('sleep 3600 & sleep 3600'));
  await kill();
  expect(await isGroupGone(pid)).toBe(true);
});
