import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { Table } from '../../../lambdas/runtime/index.ts';
import { memoryTable } from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';
import { localRules, type PostRules, type PostWebhook, receiver } from './webhook-receiver.ts';

const page = 'docs/recipes/webhooks.md';
const { createPost, isPublic } = await codeOf<{
  createPost(rules?: PostRules): PostWebhook;
  isPublic(address: string): boolean;
}>(page, 'src/public-post.ts');
const { signedHeaders } = await codeOf<{
  signedHeaders(secrets: string[], id: string, body: string, now?: number): Record<string, string>;
}>(page, 'src/signature.ts');
const { addEndpoint } = await codeOf<{
  addEndpoint(table: Table, added: Record<string, string>): Promise<string>;
}>(page, 'src/endpoints.ts');

/** The example of the specification. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

const call = { headers: { a: 'b' }, body: '{}', signal: new AbortController().signal };

describe('an address is public', () => {
  test.each(['93.184.216.34', '8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450::1'])(
    '%s',
    (address) => {
      expect(isPublic(address)).toBe(true);
    },
  );
});

describe('an address is not public', () => {
  test.each([
    '127.0.0.1',
    '127.9.9.9',
    '0.0.0.0',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '169.254.170.2',
    '100.64.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fe80::1',
    'fc00::1',
    'fd00:ec2::254',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '2002:7f00:1::',
    '2001:db8::1',
    '2001:0:7f00:1::',
    'ff02::1',
    'localhost',
    '',
  ])('%j', (address) => {
    expect(isPublic(address)).toBe(false);
  });
});

describe('the rules of a call', () => {
  test.each([
    ['https://127.0.0.1/', '127.0.0.1 is at 127.0.0.1'],
    ['https://localhost:8443/hook', 'localhost is at'],
    ['https://2130706433/', '127.0.0.1 is at 127.0.0.1'],
    ['https://0x7f.1/', '127.0.0.1 is at 127.0.0.1'],
    ['https://[::1]/', '[::1] is at ::1'],
    ['https://[::ffff:169.254.169.254]/', '[::ffff:a9fe:a9fe] is at ::ffff:'],
    ['http://example.com/', 'expected a URL that begins with https://'],
    ['https://user:secret@example.com/', 'has no user name or password'],
    ['https://user@example.com/', 'has no user name or password'],
    ['example.com', 'expected a URL that begins with https://'],
  ])('refuse %s, naming the field', async (url, problem) => {
    const message = expect.stringMatching(new RegExp(`^url: .*${problem.replace(/[.[\]]/g, '\\$&')}`));
    await expect(createPost()(url, call)).rejects.toMatchObject({ message });
    const added = { customerId: 'c', endpointId: 'e', url, whenDisabled: 'wait' } as const;
    await expect(addEndpoint(memoryTable(), added)).rejects.toMatchObject({ message });
  });

  test('refuse a name of which one address is private, and send nothing', async () => {
    const { port, requests } = await receiver((_request, response) => response.end());
    const resolve: PostRules['resolve'] = async () => [
      { address: '93.184.216.34', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    const { rules } = localRules({ resolve, isAllowed: isPublic });
    await expect(createPost(rules)(`http://hooks.example:${port}/`, call)).rejects.toThrow(
      'hooks.example is at 127.0.0.1',
    );
    expect(requests).toEqual([]);
  });

  test('refuse a name that cannot be resolved, naming the field', async () => {
    const { rules } = localRules({ resolve: () => Promise.reject(new Error('ENOTFOUND')) });
    const post = createPost(rules)('http://hooks.example/', call);
    await expect(post).rejects.toThrow('url: hooks.example cannot be resolved.');
  });

  test('connect to the address that was checked: the name is resolved once, and need not exist', async () => {
    const { port, requests } = await receiver((_request, response) => response.end());
    const { rules, hosts } = localRules();
    expect((await createPost(rules)(`http://hooks.example:${port}/in?a=1`, call)).status).toBe(200);
    expect(hosts).toEqual(['hooks.example']);
    expect(requests).toMatchObject([
      { url: '/in?a=1', body: '{}', headers: { host: `hooks.example:${port}`, a: 'b' } },
    ]);
  });

  test('follow no redirect', async () => {
    const { port, requests } = await receiver((_request, response) =>
      response.writeHead(307, { location: '/elsewhere' }).end(),
    );
    const { rules } = localRules();
    expect((await createPost(rules)(`http://hooks.example:${port}/`, call)).status).toBe(307);
    expect(requests.map(({ url }) => url)).toEqual(['/']);
  });

  test('read nothing of a response that never ends', async () => {
    let closed: Promise<unknown> | undefined;
    const { port } = await receiver((_request, response) => {
      closed = once(response, 'close');
      const part = 'x'.repeat(1_000_000);
      response.on('drain', () => setImmediate(() => response.write(part)));
      response.write(part);
    });
    const { rules } = localRules({ timeoutMs: 600_000 });
    expect((await createPost(rules)(`http://hooks.example:${port}/`, call)).status).toBe(200);
    await closed;
  });

  test('end a call that gets no response in time, or whose message is lost', async () => {
    const { port } = await receiver(() => {});
    const url = `http://hooks.example:${port}/`;
    await expect(createPost(localRules({ timeoutMs: 50 }).rules)(url, call)).rejects.toMatchObject({
      name: 'AbortError',
    });
    const stop = new AbortController();
    const lost = createPost(localRules({ timeoutMs: 600_000 }).rules)(url, { ...call, signal: stop.signal });
    stop.abort();
    await expect(lost).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('the signature', () => {
  test('is that of the specification, one for each secret', () => {
    const body = '{"test": 2432232314}';
    const headers = signedHeaders([SECRET, SECRET], 'msg_p5jXN8AQM9LWM0D4loKWxJek', body, 1_614_265_330_000);
    const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
    expect(headers).toMatchObject({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': `${signature} ${signature}`,
    });
  });

  test.each([
    ['', 'whsec_'],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_'],
    ['whsec_c2hvcnQ=', '24 to 64 bytes'],
  ])('%j is refused as a secret, naming the field', (secret, problem) => {
    expect(() => signedHeaders([SECRET, secret], 'msg_1', '{}')).toThrow(
      new RegExp(`^secrets\\[1\\]: .*${problem}`),
    );
  });
});
