import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { parsePort, startEngine } from '../../../localstack/engine.ts';
import { freePort } from '../../../localstack/free-port.ts';
import { identify } from '../../../localstack/health.ts';
import { logFile } from '../../../localstack/ministack.ts';
import { projectRoot } from '../../../localstack/workspace.ts';

// Python environments are made anew here: that takes as long as the machine takes.
vi.setConfig({ testTimeout: 600_000 });

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function externalServer(): Promise<number> {
  const server: Server = createServer((_request, response) => response.end('<h1>not an engine</h1>'));
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  cleanups.push(async () => await new Promise((resolve) => server.close(resolve)));
  return port;
}

describe('finding an engine', () => {
  it('takes the engine that answers on the port, and leaves it running', async () => {
    const endpoint = inject('endpoint');
    const engine = await startEngine({ port: Number(new URL(endpoint).port), env: {} });
    expect(engine).toMatchObject({ endpoint, startedHere: false });
    await engine.stop();
    expect(await identify(endpoint)).toBe(engine.kind);
  });

  it('uses the engine at AWS_ENDPOINT_URL, and leaves it running', async () => {
    const endpoint = inject('endpoint');
    const engine = await startEngine({ env: { AWS_ENDPOINT_URL: `${endpoint}/` } });
    expect(engine).toMatchObject({ endpoint, kind: 'external', startedHere: false });
    await engine.stop();
    expect(['ministack', 'localstack']).toContain(await identify(endpoint));
  });

  it('reports that nothing answers at AWS_ENDPOINT_URL', async () => {
    const given = `http://127.0.0.1:${await freePort()}`;
    await expect(startEngine({ env: { AWS_ENDPOINT_URL: given } })).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      message: expect.stringContaining(`AWS_ENDPOINT_URL is "${given}", but nothing answers there`),
    });
    await expect(startEngine({ env: { AWS_ENDPOINT_URL: 'localhost' } })).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      message: expect.stringContaining('that is not a URL'),
    });
  });

  it('names a port that is in use, and how to choose another', async () => {
    const port = await externalServer();
    await expect(startEngine({ port, env: {} })).rejects.toMatchObject({
      code: 'PORT_IN_USE',
      message: expect.stringMatching(new RegExp(`Port ${port} is in use.*--port.*MAILROOM_PORT=${port + 1}`)),
    });
  });

  it.each(['0', '65536', '45.5', 'http', ''])('refuses "%s" as a port', (text) => {
    expect(() => parsePort(text)).toThrow(
      `The port is "${text}", but must be a whole number from 1 to 65535`,
    );
  });
});

describe('an engine that was started here', () => {
  it('ends with the process that started it, even when that is killed', async () => {
    const port = await freePort();
    const endpoint = `http://127.0.0.1:${port}`;
    const script = [
      `import { startEngine } from ${JSON.stringify(join(projectRoot, 'localstack', 'engine.ts'))};`,
      `const engine = await startEngine({ port: ${port}, env: {} });`,
      'console.log(engine.startedHere);',
      'process.stdin.resume();',
    ].join('\n');
    const parent = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
      cwd: projectRoot,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    cleanups.push(async () => {
      parent.kill('SIGKILL');
      await rm(logFile(port), { force: true });
    });
    const said = await new Promise((resolve) => parent.stdout.once('data', (data) => resolve(String(data))));
    expect(said).toBe('true\n');
    expect(await identify(endpoint)).toBe('ministack');
    parent.kill('SIGKILL');
    await vi.waitFor(async () => expect(await identify(endpoint)).toBe('nothing'), { timeout: 120_000 });
  });
});
