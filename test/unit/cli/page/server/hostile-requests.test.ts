import { describe, expect, test } from 'vitest';
import { BODY_MAX_BYTES } from '../../../../../cli/page/server/guards.ts';
import { runningUi, tokenIn } from '../../support/running-ui.ts';

const codeOf = (response: { readonly json: () => { readonly code?: string } }) => response.json().code;

describe('a request for another host', () => {
  test.each(['evil.example', 'localhost', '127.0.0.1', '[::1]'])(
    '%s is refused on every path, the page included',
    async (name) => {
      const { send, ui, withKey } = await runningUi();
      const headers = { Host: `${name}:${new URL(ui.url).port}`, ...(await withKey()) };
      const hosts = name === '127.0.0.1' ? { ...headers, Host: name } : headers;
      for (const path of ['/', '/api/mailroom', '/nothing']) {
        const response = await send(path, { headers: hosts });
        expect([response.status, codeOf(response)]).toEqual([403, 'EXTERNAL_HOST']);
        expect(response.headers['content-security-policy']).toContain("default-src 'none'");
      }
    },
  );
});

describe('a request without the key', () => {
  test('gets no data, whatever it asks for', async () => {
    const { send, post, calls } = await runningUi({ allowsChanges: true });
    for (const path of ['/api/mailroom', '/api/live', '/api/readings/doctor', '/api/demo', '/api/nothing']) {
      const response = await send(path);
      expect([path, response.status, codeOf(response)]).toEqual([path, 401, 'NO_KEY']);
    }
    // The id of a plan is not a secret: someone may have seen it in a screenshot.
    for (const path of ['/api/plans', '/api/plans/plan-1/apply', '/api/runs/run-1/stop']) {
      const response = await post(path, {});
      expect([path, response.status, codeOf(response)]).toEqual([path, 401, 'NO_KEY']);
    }
    expect(calls).toEqual([]);
  });

  test.each(['Bearer wrong', 'Bearer ', 'Basic a2V5', 'Bearer key key'])(
    'or with %j is refused',
    async (Authorization) => {
      const { send } = await runningUi();
      expect((await send('/api/mailroom', { headers: { Authorization } })).status).toBe(401);
    },
  );

  test('a request with the one-time token instead of the key is refused', async () => {
    const { send, ui } = await runningUi();
    const headers = { Authorization: `Bearer ${await tokenIn(ui.redirectFile)}` };
    expect((await send('/api/mailroom', { headers })).status).toBe(401);
  });

  test('a request with the key in a cookie or in the address is refused', async () => {
    const { send, withKey } = await runningUi();
    const [, key = ''] = (await withKey()).Authorization.split(' ');
    expect((await send(`/api/mailroom?key=${key}`, { headers: { Cookie: `key=${key}` } })).status).toBe(401);
  });
});

describe('a request of another page', () => {
  test.each(['https://evil.example', 'null', 'http://localhost:1', 'http://127.0.0.1:1'])(
    'at %s is refused',
    async (Origin) => {
      const { ui, post, send, change, withKey, calls } = await runningUi({ allowsChanges: true });
      const token = await tokenIn(ui.redirectFile);
      const exchange = await post('/api/key', { token }, { Origin });
      expect([exchange.status, codeOf(exchange)]).toEqual([403, 'EXTERNAL_ORIGIN']);
      const changed = await change('/api/plans', {}, { Origin });
      expect([changed.status, codeOf(changed)]).toEqual([403, 'EXTERNAL_ORIGIN']);
      expect((await send('/api/mailroom', { headers: { ...(await withKey()), Origin } })).status).toBe(403);
      expect(calls).toEqual([]);
    },
  );

  test('a request that hides its origin cannot change anything', async () => {
    const { send, withKey, calls } = await runningUi({ allowsChanges: true });
    const headers = { ...(await withKey()), 'Content-Type': 'application/json' };
    const response = await send('/api/plans', { method: 'POST', headers, body: '{}' });
    expect([response.status, codeOf(response)]).toEqual([403, 'EXTERNAL_ORIGIN']);
    expect(calls).toEqual([]);
  });

  test('gets no permission of CORS, not even to a preflight', async () => {
    const { send, origin } = await runningUi();
    const headers = {
      Origin: 'https://evil.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization,content-type',
    };
    for (const from of [headers, { ...headers, Origin: origin }]) {
      const response = await send('/api/plans', { method: 'OPTIONS', headers: from });
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(Object.keys(response.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });
});

describe('a change', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', ''])(
    'a change of the type %j, which a form of any page can send, is refused',
    async (type) => {
      const { change, calls } = await runningUi({ allowsChanges: true });
      const response = await change('/api/plans', {}, { 'Content-Type': type });
      expect([response.status, codeOf(response)]).toEqual([415, 'NOT_JSON']);
      expect(calls).toEqual([]);
    },
  );

  test('a change of more than a megabyte is refused, even without a length', async () => {
    const { change, calls } = await runningUi({ allowsChanges: true });
    const large = { text: 'x'.repeat(BODY_MAX_BYTES) };
    for (const [name, value] of [
      ['Content-Length', '1000011'],
      ['Transfer-Encoding', 'chunked'],
    ] as const) {
      const response = await change('/api/plans', large, { [name]: value });
      expect([response.status, codeOf(response)]).toEqual([413, 'TOO_LARGE']);
    }
    expect(calls).toEqual([]);
  });

  test('whose body is nested so deeply that no command could write it again is refused', async () => {
    const { send, withKey, origin, calls } = await runningUi({ allowsChanges: true });
    const headers = { ...(await withKey()), Origin: origin, 'Content-Type': 'application/json' };
    const body = `{"data":${'['.repeat(400_000)}${']'.repeat(400_000)}}`;
    const response = await send('/api/plans', { method: 'POST', headers, body });
    expect([response.status, codeOf(response)]).toEqual([400, 'JSON_TOO_DEEP']);
    expect(calls).toEqual([]);
  });

  test.each(['[]', 'null', '"text"', '{'])('whose body is %s is refused', async (body) => {
    const { send, withKey, origin } = await runningUi({ allowsChanges: true });
    const headers = { ...(await withKey()), Origin: origin, 'Content-Type': 'application/json' };
    const response = await send('/api/plans', { method: 'POST', headers, body });
    expect([response.status, codeOf(response)]).toEqual([400, 'BAD_ARGUMENT']);
  });

  test('is refused unless the command allows changes', async () => {
    const { change, calls } = await runningUi();
    for (const path of [
      '/api/plans',
      '/api/plans/plan-1/apply',
      '/api/runs/run-1/stop',
      '/api/demo/faults/rule-off/break',
    ]) {
      const response = await change(path);
      expect([path, response.status, codeOf(response)]).toEqual([path, 403, 'READ_ONLY']);
    }
    expect(calls).toEqual([]);
  });

  test('cannot be made by a GET', async () => {
    const { get, calls } = await runningUi({ allowsChanges: true });
    for (const path of ['/api/plans', '/api/plans/plan-1/apply', '/api/runs/run-1/stop', '/api/key'])
      expect((await get(path)).status).toBe(404);
    expect(calls).toEqual([]);
  });

  test('a change of the page itself is made', async () => {
    const { change, calls } = await runningUi({ allowsChanges: true });
    const made = await change('/api/plans', { kind: 'repair', since: '1h' });
    expect(made.json<{ id: string }>().id).toBe('plan-1');
    await change('/api/plans/plan-1/apply', { reason: 'the bank is back', confirmation: '1' });
    await change('/api/runs/run-1/stop');
    expect(calls).toEqual([
      ['make', { kind: 'repair', since: '1h' }],
      ['apply', 'plan-1', { reason: 'the bank is back', confirmation: '1' }],
      ['stop', 'run-1'],
    ]);
  });
});

test.each(['/nothing', '/api', '/page.js.map', '/..%2fpackage.json', '/../package.json', '//evil.example/'])(
  'nothing is at %s',
  async (path) => {
    const { get } = await runningUi();
    const response = await get(path);
    expect([response.status, codeOf(response)]).toEqual([404, 'NOT_FOUND']);
  },
);

test.each(['HEAD', 'PUT', 'DELETE', 'PATCH'])(
  'a %s is refused: no stream opens that has no reader, and would keep the server awake',
  async (method) => {
    const { send, withKey, listeners } = await runningUi({ allowsChanges: true });
    const response = await send('/api/live', { method, headers: await withKey() });
    expect(response.status).toBe(405);
    expect(listeners.size).toBe(0);
  },
);

test('every response forbids inline scripts, frames, other origins and storage', async () => {
  const { send, get } = await runningUi();
  for (const response of [
    await send('/'),
    await send('/api/mailroom'),
    await get('/api/mailroom'),
    await send('/nothing'),
  ]) {
    expect(response.headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
        "form-action 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(response.headers['set-cookie']).toBeUndefined();
  }
});
