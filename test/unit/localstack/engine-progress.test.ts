import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { startEngine } from '../../../localstack/engine.ts';
import { freePort } from '../../../localstack/free-port.ts';

test('the engine is said to start only once it is installed', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mailroom-python-'));
  const python = join(dir, 'python');
  // It knows its version, and can make no virtual environment.
  await writeFile(python, '#!/bin/sh\n[ "$1" = -c ] && echo 3 11\n');
  await chmod(python, 0o755);
  vi.stubEnv('XDG_CACHE_HOME', dir);
  const said: string[] = [];
  const port = await freePort();
  const starting = startEngine({ env: {}, port, pythons: [python], onProgress: (line) => said.push(line) });
  await expect(starting).rejects.toMatchObject({ code: 'PYTHON_ENVIRONMENT' });
  expect(said).toEqual([expect.stringMatching(/^Installing the local AWS/)]);
  await rm(dir, { recursive: true });
});
