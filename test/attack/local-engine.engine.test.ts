import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
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
import {
  answerToParts,
  OLD_BROWSER,
  PRESIGNED,
  sendHttp2,
  sendTo,
  signature,
  zipOf,
} from './engine-requests.ts';

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

/** Ids of function URLs have this form. */
const URL_ID = '0123456789abcdef0123456789abcdef';

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

const send = async (headers: Record<string, string>, method = 'POST', path = '/') =>
  await sendTo(port, headers, method, path);

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
    ['a Host that looks like a function URL', { host: `${URL_ID}.lambda-url.us-east-1.on.aws.evil.example` }],
    ['a Host that has no id of a function', { host: 'abc.lambda-url.us-east-1.on.aws' }],
    ["LocalStack's name, which browsers do not trust", { host: 'localhost.localstack.cloud' }],
    ['a bucket at an untrusted name', { host: 'bucket.s3.localhost.localstack.cloud' }],
    ['a bucket without a signature', { host: 'bucket.localhost' }],
    ['a Referer alone, as browsers send to an untrusted name', { referer: 'https://evil.example/' }],
    ["a browser's User-Agent alone, as older browsers send", { 'user-agent': OLD_BROWSER }],
    [
      'a signed request of a browser that does not say where it comes from',
      { 'user-agent': OLD_BROWSER, authorization: signature('sts'), host: 'localhost.localstack.cloud' },
    ],
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

  test.each(['127.0.0.1', 'localhost', 'localhost.localstack.cloud', 'bucket.s3.localhost.localstack.cloud'])(
    'an unsigned Action in the query at %s',
    async (host) => {
      for (const query of [
        'Action=CreateStack&StackName=evil',
        'StackName=evil&%41ction=CreateStack',
        `Action=CreateStack&${PRESIGNED}`,
      ])
        for (const method of ['GET', 'HEAD', 'POST'])
          expect((await send({ host: `${host}:${port}` }, method, `/?${query}`)).status).toBe(403);
    },
  );

  test('a signed Action in the query of a page that the engine serves', async () => {
    const page = {
      host: `127.0.0.1:${port}`,
      'sec-fetch-site': 'same-origin',
      authorization: signature('sts'),
    };
    expect((await send(page, 'GET', '/?Action=GetCallerIdentity')).status).toBe(403);
  });

  test.each<[string, Record<string, string>]>([
    ['an Origin', { origin: 'https://evil.example' }],
    ['a request that another site caused', { 'sec-fetch-site': 'cross-site' }],
    ['a Host that was rebound', { ':authority': 'evil.example' }],
  ])('%s over HTTP/2', async (_what, headers) => {
    const answer = await sendHttp2(port, { ':path': '/_ministack/health', ...headers });
    expect(answer).toEqual({ status: 403, body: expect.stringMatching(/^The local AWS .*\.\n$/) });
  });

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
  test('HTTP/2', async () => {
    const { status, body } = await sendHttp2(port, { ':path': '/_ministack/health' });
    expect(status).toBe(200);
    expect(body).toContain('services');
  });

  test('HTTP/2 and HTTP/1.1 whose first line comes in two parts', async () => {
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    const http2 = await answerToParts(port, ['PRI *', ` HTTP/2.0\r\n\r\nSM\r\n\r\n${settings}`]);
    expect(http2.at(3)).toBe(4); // settings
    const http1 = await answerToParts(port, ['P', 'OST / HTTP/1.1\r\nHost: evil.example\r\n\r\n']);
    expect(String(http1)).toMatch(/^HTTP\/1\.1 403 /);
  });

  test.each([
    ...['127.0.0.1', 'localhost', '[::1]', 'LOCALHOST', '0a1b2c3d.execute-api.127.0.0.1'],
    ...['on.aws', 'localhost', '127.0.0.1'].map((end) => `${URL_ID}.lambda-url.us-east-1.${end}`),
    '0a1b2c3d-0000-4000-8000-0123456789ab.lambda-url.us-east-1.on.aws',
  ])('the Host %s', async (host) => {
    for (const name of [host, `${host}:${port}`])
      expect((await send({ host: name, ...listTables }, 'GET', '/_ministack/health')).status).toBe(200);
  });

  test.each([
    'localhost.localstack.cloud',
    'bucket.s3.localhost.localstack.cloud',
    'bucket.127.0.0.1',
    'b.localhost',
  ])('a signed request to the Host %s', async (host) => {
    const signed = { authorization: signature('sts'), host: `${host}:${port}` };
    expect((await send(signed, 'GET', '/_ministack/health')).status).toBe(200);
  });

  test.each(['none', 'same-origin'])('a browser that says it is on this machine: %s', async (site) => {
    const browser = { host: `127.0.0.1:${port}`, 'user-agent': OLD_BROWSER, 'sec-fetch-site': site };
    expect((await send(browser, 'GET', '/_ministack/health')).status).toBe(200);
  });

  test('a signed Action in the query', async () => {
    const signed = { host: `127.0.0.1:${port}`, authorization: signature('sts') };
    const { status, body } = await send(signed, 'GET', '/?Action=GetCallerIdentity&Version=2011-06-15');
    expect(status).toBe(200);
    expect(body).toContain('000000000000');
  });

  test('a presigned URL of S3, whose signature S3 checks', async () => {
    const bucket = `/bucket-${randomUUID()}`;
    const headers = { authorization: signature('s3') };
    expect((await fetch(`${engine.endpoint}${bucket}`, { method: 'PUT', headers })).status).toBe(200);
    const { body } = await send({ host: `127.0.0.1:${port}` }, 'GET', `${bucket}/key?${PRESIGNED}`);
    expect(body).toContain('<Code>SignatureDoesNotMatch</Code>');
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
  const code =
    "exports.handler = async () => ({ env: process.env, title: process.title, home: require('fs').readdirSync(process.env.HOME) });";
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
  const { env, home } = JSON.parse(said) as { env: Record<string, string>; home: string[] };
  expect(home).toEqual([]);
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
