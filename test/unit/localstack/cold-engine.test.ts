import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { startEngine } from '../../../localstack/engine.ts';

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** Accepts connections, and holds or closes them without an answer before it is warm; then it answers as LocalStack does. */
async function coldEngine(
  how: 'holds' | 'closes',
): Promise<{ readonly endpoint: string; readonly port: number; warmUp(): void }> {
  let warm = false;
  const server = createServer((request, response) => {
    if (!warm && how === 'holds') return;
    if (!warm) return void request.socket.destroy();
    response.statusCode = request.url === '/_localstack/health' ? 200 : 404;
    response.end('{"services":{}}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}`, port, warmUp: () => (warm = true) };
}

test('waits for a cold engine at AWS_ENDPOINT_URL, and shows progress', async () => {
  const { endpoint, warmUp } = await coldEngine('holds');
  const said: string[] = [];
  const onProgress = (line: string) => {
    said.push(line);
    warmUp();
  };
  const engine = await startEngine({ env: { AWS_ENDPOINT_URL: endpoint }, onProgress });
  expect(engine).toMatchObject({ endpoint, kind: 'external', startedHere: false });
  expect(said).toEqual([expect.stringContaining(`Waiting for ${endpoint} to answer`)]);
});

test('waits for a cold engine on the port, too', async () => {
  const { endpoint, port, warmUp } = await coldEngine('closes');
  const engine = await startEngine({ env: {}, port, onProgress: warmUp });
  expect(engine).toMatchObject({ endpoint, kind: 'localstack', startedHere: false });
});

test('a server that never answers is reported at the deadline', async () => {
  const { endpoint, port } = await coldEngine('closes');
  const patience = { answerMs: 1 };
  await expect(startEngine({ env: { AWS_ENDPOINT_URL: endpoint }, ...patience })).rejects.toMatchObject({
    code: 'ENGINE_UNREACHABLE',
  });
  await expect(startEngine({ env: {}, port, ...patience })).rejects.toMatchObject({ code: 'PORT_IN_USE' });
});
