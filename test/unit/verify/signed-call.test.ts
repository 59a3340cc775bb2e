import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../../localstack/free-port.ts';
import { signedCall } from '../../local/support/signed-call.ts';

const hash = (data: string) => createHash('sha256').update(data).digest('hex');
const mac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();

/** The signature of a request by the rules of AWS Signature Version 4 (IAM User Guide, "Create a signed AWS API request"). */
function signatureOf(
  { method = '', url = '', headers }: IncomingMessage,
  body: string,
  secret: string,
): string {
  const [, scope = '', names = ''] =
    /Credential=[^/]+\/([^,]+), ?SignedHeaders=([^,]+)/.exec(headers.authorization ?? '') ?? [];
  const lines = names.split(';').map((name) => `${name}:${headers[name]}\n`);
  const [path = '', query = ''] = url.split('?');
  const request = [method, path, query, lines.join(''), names, hash(body)].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, hash(request)].join('\n');
  const key = scope.split('/').reduce<string | Buffer>(mac, `AWS4${secret}`);
  return mac(key as Buffer, toSign).toString('hex');
}

test('a request to the orders API is signed for Lambda with the credentials of the environment', async () => {
  vi.stubEnv('AWS_PROFILE', undefined);
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  vi.stubEnv('AWS_SESSION_TOKEN', 'token');
  const heard: string[] = [];
  const server = createServer(async (request, response) => {
    heard.push(request.headers.authorization ?? '', signatureOf(request, await text(request), 'secret'));
    heard.push(String(request.headers['x-amz-security-token']));
    response.end('done');
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());

  vi.stubEnv('AWS_REGION', 'eu-west-1');
  const call = signedCall('');
  const answer = await call(new URL(`http://127.0.0.1:${port}/orders?a=1`), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
    body: '{"customerId":"Zoë"}',
  });
  expect(answer).toMatchObject({ status: 200, text: 'done' });
  const [authorization = '', signature = '', token] = heard;
  expect(authorization).toMatch(/Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/lambda\/aws4_request/);
  expect(authorization).toContain(`Signature=${signature}`);
  expect(token).toBe('token');
});
