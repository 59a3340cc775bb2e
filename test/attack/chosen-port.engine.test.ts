import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { targetOf } from '../../cli/deployment/target.ts';
import { startEngine } from '../../localstack/engine.ts';
import { projectRoot } from '../../localstack/workspace.ts';

interface Server {
  readonly endpoint: string;
  readonly port: string;
  /** The requests so far. */
  readonly requests: readonly string[];
}

/** A server that answers as an engine, or as anything else. */
async function serverThatIs(kind: 'an engine' | 'external'): Promise<Server> {
  const requests: string[] = [];
  const server = createServer(({ method, url }, response) => {
    requests.push(`${method} ${url}`);
    response.end(kind === 'an engine' ? '{"services":{}}' : 'not an engine');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const port = String((server.address() as AddressInfo).port);
  return { endpoint: `http://127.0.0.1:${port}`, port, requests };
}

describe("with AWS_ENDPOINT_URL at another app's engine", () => {
  test.each([
    ['npm run demo -- --port', ['demo/main.ts'], 'option'],
    ['npm run local -- --port', ['localstack/local.ts', 'start'], 'option'],
    ['MAILROOM_PORT in npm run demo', ['demo/main.ts'], 'variable'],
    ['MAILROOM_PORT in npm run local', ['localstack/local.ts', 'start'], 'variable'],
  ] as const)(
    '%s selects the engine, and the other engine receives no request',
    async (_what, script, how) => {
      const [others, chosen] = [await serverThatIs('an engine'), await serverThatIs('external')];
      const args = how === 'option' ? ['--port', chosen.port] : [];
      const variable = how === 'variable' ? { MAILROOM_PORT: chosen.port } : {};
      const command = spawn(process.execPath, ['--import', 'tsx', ...script, ...args], {
        cwd: projectRoot,
        env: { ...process.env, AWS_ENDPOINT_URL: others.endpoint, ...variable },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      const ended = new Promise((resolve) => command.once('close', resolve));
      // The chosen port is not an engine's, so a command that heeds it stops here.
      expect(await text(command.stderr)).toContain(`Port ${chosen.port} is in use`);
      expect(await ended).toBe(1);
      expect(others.requests).toEqual([]);
    },
  );

  test('a port of the caller and one in MAILROOM_PORT win, and without either it is used', async () => {
    const [others, chosen] = [await serverThatIs('an engine'), await serverThatIs('an engine')];
    const env = { AWS_ENDPOINT_URL: others.endpoint };
    expect(await startEngine({ port: Number(chosen.port), env })).toMatchObject({
      endpoint: chosen.endpoint,
    });
    const named = { ...env, MAILROOM_PORT: chosen.port };
    expect(await startEngine({ env: named })).toMatchObject({ endpoint: chosen.endpoint });
    expect(await startEngine({ env })).toMatchObject({ endpoint: others.endpoint, kind: 'external' });
  });

  test('--endpoint of the mailroom command wins', async () => {
    const endpoint = 'http://127.0.0.1:4567';
    const env = { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' };
    expect(await targetOf({ endpoint }, env)).toMatchObject({ endpoint });
    expect(await targetOf({}, env)).toMatchObject({ endpoint: env.AWS_ENDPOINT_URL });
  });
});
