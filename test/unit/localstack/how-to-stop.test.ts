import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { howToStop, leaveRunning } from '../../../localstack/left-running.ts';
import { localFile } from '../../../localstack/workspace.ts';

/** No engine of anybody listens there. */
const PORT = 1;

const engine = {
  endpoint: `http://127.0.0.1:${PORT}`,
  port: PORT,
  kind: 'ministack',
  startedHere: true,
  stop: async () => {},
} as const;

const LEFT_AS_IT_IS = 'The engine was already running and was left running.';

test('npm run local:stop is named only for an engine that it would stop', async () => {
  expect(await howToStop(engine)).toBe(LEFT_AS_IT_IS);

  const mark = `mailroom-${randomUUID()}`;
  const child = spawn(process.execPath, ['--eval', 'process.stdin.resume()', mark], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  try {
    await once(child, 'spawn');
    await leaveRunning({ ...engine, process: { pid: child.pid ?? 0, mark, tempDir: '/nowhere' } });
    expect(await howToStop(engine)).toBe(
      `The engine keeps running. To stop it: npm run local:stop -- --port ${PORT}`,
    );
    const elsewhere = { endpoint: `http://10.0.0.1:${PORT}`, port: PORT };
    expect(await howToStop(elsewhere)).toBe(LEFT_AS_IT_IS);

    child.kill();
    await once(child, 'exit');
    expect(await howToStop(engine)).toBe(LEFT_AS_IT_IS);
  } finally {
    child.kill();
    await rm(localFile(`engine-${PORT}.json`), { force: true });
  }
});
