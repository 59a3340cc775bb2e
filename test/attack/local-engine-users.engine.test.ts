import { spawnSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { signature } from './engine-requests.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let engine: Engine;

beforeAll(async () => {
  engine = await startEngine({ port: await freePort(), env: {} });
  expect(engine).toMatchObject({ kind: 'ministack', startedHere: true });
});

afterAll(() => engine?.stop());

/** Lists the stacks as a user of this machine, signed. Bash can be run by every user. @returns the status line */
function listStacksAs(user: string): string {
  const { port } = engine;
  const headers = `Host: 127.0.0.1\\r\\nAuthorization: ${signature('cloudformation')}\\r\\n\\r\\n`;
  const request = `GET /?Action=ListStacks&Version=2010-05-15 HTTP/1.0\\r\\n${headers}`;
  const script = `exec 3<>/dev/tcp/127.0.0.1/${port} && printf '${request}' >&3 && head -n 1 <&3`;
  const { uid, username } = userInfo();
  const other = uid === 0 ? ['setpriv', '--reuid', user, '--clear-groups'] : ['sudo', '-n', '-u', user];
  const [command = '', ...args] = [...(user === username ? [] : other), '/bin/bash', '-c', script];
  const { stdout, stderr, status } = spawnSync(command, args, { encoding: 'utf8', cwd: '/' });
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`);
  return stdout;
}

/** Only Linux names the owner of a connection, and only root or sudo can become another user. */
const canBecomeNobody =
  process.platform === 'linux' &&
  (userInfo().uid === 0 || spawnSync('sudo', ['-n', '-u', 'nobody', 'true']).status === 0);

describe('the local engine on Linux', () => {
  test('serves the user who started it', () => {
    expect(listStacksAs(userInfo().username)).toContain(' 200 ');
  });

  test.skipIf(!canBecomeNobody)('refuses a signed request of another user of the machine', () => {
    expect(listStacksAs('nobody')).toContain(' 403 ');
  });
});
