import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import {
  CreateFunctionCommand,
  InvokeCommand,
  LambdaClient,
  waitUntilFunctionActiveV2,
} from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

/** What a developer's environment may hold, and no function may see. */
const DEVELOPERS = {
  AWS_SESSION_TOKEN: 'developer-secret',
  AWS_PROFILE: 'developer-secret',
  AWS_SECRET_ACCESS_KEY: 'developer-secret',
  GITHUB_TOKEN: 'developer-secret',
  NPM_TOKEN: 'developer-secret',
  NODE_OPTIONS: '--title=developer-secret',
  SSH_AUTH_SOCK: '/developer-secret',
  DATABASE_URL: 'postgres://developer-secret',
};

let engine: Engine;
let port: number;

beforeAll(async () => {
  port = await freePort();
  for (const [name, value] of Object.entries(DEVELOPERS)) vi.stubEnv(name, value);
  engine = await startEngine({ port, env: {} });
  vi.unstubAllEnvs();
  expect(engine).toMatchObject({ kind: 'ministack', startedHere: true });
});

afterAll(() => engine?.stop());

/** A request as a browser, an SDK or an attacker sends it. */
async function send(headers: Record<string, string>, method = 'POST', path = '/') {
  return await new Promise<{ status: number; headers: object; body: string }>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, agent: false, headers }, (response) => {
      const { statusCode = 0 } = response;
      text(response).then((body) => resolve({ status: statusCode, headers: response.headers, body }), reject);
    });
    sent.on('error', reject);
    sent.end(method === 'POST' ? '{}' : undefined);
  });
}

const listTables = {
  'x-amz-target': 'DynamoDB_20120810.ListTables',
  'content-type': 'application/x-amz-json-1.0',
};

describe('the local engine refuses', () => {
  test.each([
    ['an Origin', { origin: 'https://evil.example' }],
    ['an Origin of a file or a sandbox', { origin: 'null' }],
    ['an Origin of this machine', { origin: 'http://127.0.0.1:3000' }],
    ['a request that another site caused', { 'sec-fetch-site': 'cross-site' }],
    ['a request that another port caused', { 'sec-fetch-site': 'same-site' }],
    ['a Host that was rebound', { host: 'evil.example' }],
    ['a Host that begins as this machine', { host: 'localhost.evil.example' }],
    ['a Host that ends like this machine', { host: 'evil-localhost' }],
    ['a Host that begins with its address', { host: '127.0.0.1.evil.example' }],
    ['a Host with a user', { host: 'localhost@evil.example' }],
    ['a Host of all addresses', { host: '0.0.0.0' }],
    ['a Host that looks like a function URL', { host: 'abc.lambda-url.us-east-1.on.aws.evil.example' }],
  ])('%s', async (_what, headers) => {
    for (const [method, path] of [
      ['POST', '/'],
      ['GET', '/?Action=ListQueues&Version=2012-11-05'],
      ['GET', '/_ministack/health'],
      ['POST', '/2015-03-31/functions'],
      ['POST', '/_ministack/reset'],
      ['OPTIONS', '/'],
    ] as const) {
      const answer = await send({ host: `127.0.0.1:${port}`, ...listTables, ...headers }, method, path);
      expect(answer.status, `${method} ${path}`).toBe(403);
      expect(answer.body).toMatch(/^The local AWS .*\.\n$/);
      expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
    }
  });

  test.each(['', 'Host:\r\n', 'Host: localhost\r\nHost: evil.example\r\n'])(
    'a request whose Host headers are %j',
    async (hosts) => {
      const socket = connect(port, '127.0.0.1');
      socket.write(`GET /_ministack/health HTTP/1.0\r\n${hosts}\r\n`);
      const answer = await text(socket);
      expect(answer).toMatch(/^HTTP\/1\.[01] (400|403) /);
      expect(answer).not.toContain('services');
    },
  );

  test('a web socket of a page', async () => {
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const key = { 'sec-websocket-key': Buffer.from('0123456789abcdef').toString('base64') };
    const host = { host: `127.0.0.1:${port}` };
    const answer = await send(
      { ...host, ...upgrade, ...key, origin: 'https://evil.example' },
      'GET',
      '/socket',
    );
    expect(answer.status).toBe(403);
  });
});

describe('the local engine serves', () => {
  test.each([
    ...['127.0.0.1', 'localhost', '[::1]', 'LOCALHOST', 'api.localhost', 'bucket.s3.localhost'],
    ...['localhost.localstack.cloud', 'bucket.s3.localhost.localstack.cloud', 'bucket.127.0.0.1'],
    'abc123.lambda-url.us-east-1.on.aws',
  ])('the Host %s', async (host) => {
    for (const name of [host, `${host}:${port}`])
      expect((await send({ host: name, ...listTables }, 'GET', '/_ministack/health')).status).toBe(200);
  });

  test('an SDK, by address and by name', async () => {
    for (const endpoint of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
      const client = new DynamoDBClient({ endpoint, ...settings });
      expect((await client.send(new ListTablesCommand({}))).TableNames).toEqual([]);
    }
  });
});

const settings = { region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

test('a function sees nothing of the environment in which the engine was started', async () => {
  const client = new LambdaClient({ endpoint: engine.endpoint, ...settings });
  const FunctionName = `environment-${randomUUID()}`;
  const code = 'exports.handler = async () => ({ env: process.env, title: process.title });';
  await client.send(
    new CreateFunctionCommand({
      FunctionName,
      Runtime: 'nodejs20.x',
      Handler: 'index.handler',
      Role: 'arn:aws:iam::000000000000:role/none',
      Environment: { Variables: { TABLE_NAME: 'own' } },
      Code: { ZipFile: zipOf('index.js', code) },
    }),
  );
  await waitUntilFunctionActiveV2({ client, maxWaitTime: 60 }, { FunctionName });
  const { Payload } = await client.send(new InvokeCommand({ FunctionName }));
  const said = Buffer.from(Payload ?? []).toString('utf8');
  const { env } = JSON.parse(said) as { env: Record<string, string> };
  expect(env).toMatchObject({
    TABLE_NAME: 'own',
    AWS_ENDPOINT_URL: engine.endpoint,
    AWS_REGION: 'us-east-1',
  });
  expect(said).not.toContain('developer-secret');
  expect(env.HOME).not.toBe(process.env.HOME);
  const known =
    /^(AWS_|_?LAMBDA_|_X_|_?MINISTACK_|NODE_PATH$|PATH$|HOME$|TMPDIR$|LANG$|LC_ALL$|TZ$|PYTHONUTF8$|BIND_HOST$|GATEWAY_PORT$|TABLE_NAME$)/;
  const engines = ['IOT_MTLS_ENABLED', 'SFTP_ENABLED', 'PERSIST_STATE', 'LOG_LEVEL', 'LC_CTYPE'];
  expect(Object.keys(env).filter((name) => !known.test(name) && !engines.includes(name))).toEqual([]);
});

/** A zip file with one file in it, stored as it is (APPNOTE.TXT 4.3). */
function zipOf(name: string, content: string): Uint8Array {
  const [path, data] = [Buffer.from(name), Buffer.from(content)];
  const head = Buffer.alloc(26);
  head.writeUInt16LE(20, 0);
  head.writeUInt32LE(crc32(data), 10);
  head.writeUInt32LE(data.length, 14);
  head.writeUInt32LE(data.length, 18);
  head.writeUInt16LE(path.length, 22);
  const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), head, path, data]);
  const tail = Buffer.alloc(14);
  tail.writeUInt32LE(0o644 * 0x10000, 6);
  const entry = Buffer.concat([Buffer.from('PK\u0001\u0002\u0014\u0000'), head, tail, path]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(entry.length, 8);
  end.writeUInt32LE(local.length, 12);
  return Buffer.concat([local, entry, Buffer.from('PK\u0005\u0006'), end]);
}
