import { expect, test, vi } from 'vitest';
import { startEngine } from '../../../localstack/engine.ts';
import { freePort } from '../../../localstack/free-port.ts';

vi.mock('../../../localstack/python-environment.ts', () => ({
  findPython: async () => 'python3',
  ensureEnvironment: async ({ onProgress }: { readonly onProgress: (line: string) => void }) => {
    onProgress('Installing the local AWS');
    throw new Error('no network');
  },
}));

test('the engine is said to start only once it is installed', async () => {
  const said: string[] = [];
  const starting = startEngine({ env: {}, port: await freePort(), onProgress: (line) => said.push(line) });
  await expect(starting).rejects.toThrow('no network');
  expect(said).toEqual(['Installing the local AWS']);
});
