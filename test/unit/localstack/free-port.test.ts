import { createServer } from 'node:net';
import { expect, test, vi } from 'vitest';
import { freePort } from '../../../localstack/free-port.ts';

async function listen(port: number) {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return { close: () => new Promise((resolve) => server.close(resolve)) };
}

test('each port is another one, and below those that the operating system gives out', async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, freePort));
  expect(new Set(ports).size).toBe(50);
  expect(Math.min(...ports)).toBeGreaterThanOrEqual(16_000);
  expect(Math.max(...ports)).toBeLessThan(32_000);
});

test('a port in use is passed over', async () => {
  vi.resetModules();
  const { freePort: asked } = await import('../../../localstack/free-port.ts');
  const port = await asked();
  const server = await listen(port);
  try {
    vi.resetModules();
    const { freePort: askedAgain } = await import('../../../localstack/free-port.ts');
    expect(await askedAgain()).not.toBe(port);
  } finally {
    await server.close();
  }
});
