import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { errorCode } from '../../../lambdas/runtime/base/errors.ts';
import {
  createOncePerKey,
  type HttpAnswer,
  httpProblem,
  type IdempotentRequest,
} from '../../../lambdas/runtime/http.ts';

const NOW = Date.parse('2026-11-21T10:00:00Z');
const REMAINING_MS = 10_000;
const DAY_MS = 86_400_000;
const REPLAYED = { 'idempotent-replayed': 'true' };

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ['Date'] });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

/** Requests whose work commits their payload under their key, once, and answers with it. */
function service(operation = 'orders') {
  const aws = createMeteredAws([{ name: 'Mailroom', keys: ['PK', 'SK'] }]);
  const client = new DynamoDBClient(aws.client);
  const oncePerKey = createOncePerKey({ client, tableName: 'Mailroom', operation });
  const committed = new Map<string, unknown>();
  const runs: string[] = [];
  const commit = (key: string, payload: unknown) => {
    if (committed.has(key)) throw new Error('refused by the condition');
    committed.set(key, payload);
  };
  const send = (payload: unknown, part: Partial<IdempotentRequest> = {}): Promise<HttpAnswer> =>
    oncePerKey({
      idempotencyKey: 'key-1',
      payload,
      remainingMs: REMAINING_MS,
      first: async (key) => {
        runs.push(key);
        commit(key, payload);
        return JSON.stringify(payload);
      },
      earlier: async (key) => {
        if (!committed.has(key)) return undefined;
        const body = JSON.stringify(committed.get(key));
        return { body, samePayload: body === JSON.stringify(payload) };
      },
      ...part,
    });
  /** Starts a request that never ends, before its commit or after it. */
  const die = (at: 'before' | 'after', payload: unknown, remainingMs = REMAINING_MS) =>
    new Promise<void>((reached) => {
      const first = async (key: string) => {
        if (at === 'after') commit(key, payload);
        reached();
        return new Promise<string>(() => {});
      };
      void send(payload, { first, remainingMs });
    });
  const records = () => aws.items('Mailroom');
  return { send, die, records, runs, committed };
}

function problemOf({ body }: HttpAnswer) {
  return JSON.parse(body).error;
}

describe('the first request with a key', () => {
  test('is answered with what its work returns, and 201', async () => {
    const { send, runs } = service();
    expect(await send({ cents: 1 })).toEqual({
      statusCode: 201,
      headers: { 'content-type': 'application/json' },
      body: '{"cents":1}',
    });
    expect(runs).toEqual(['key-1']);
  });

  test('is answered with the status and the headers of the request', async () => {
    const { send } = service();
    const headers = (key: string) => ({ location: `/orders/${key}` });
    expect(await send({}, { statusCode: 200, headers })).toMatchObject({
      statusCode: 200,
      headers: { 'content-type': 'application/json', location: '/orders/key-1' },
    });
  });

  test('throws what its work throws, stores no answer, and can be sent again', async () => {
    const { send, records } = service();
    const first = () => Promise.reject(new Error('table on fire'));
    await expect(send({}, { first })).rejects.toThrow('table on fire');
    expect(records()).toEqual([]);
    expect(await send({})).toMatchObject({ statusCode: 201, headers: expect.not.objectContaining(REPLAYED) });
  });
});

describe('a payload', () => {
  test('whose JSON lacks a part is refused, because other requests would count as the same', async () => {
    const { send, runs } = service();
    const refused = send({ lines: [{ fees: new Map([['EUR', 1]]) }] });
    await expect(refused).rejects.toMatchObject({
      code: 'BAD_ARGUMENT',
      message: 'The payload cannot be written as JSON: payload.*.0.* is a Map. Use Object.fromEntries(map).',
    });
    expect(runs).toEqual([]);
  });
});

describe('a repeated request', () => {
  test('gets the same status, headers and body, and is marked as replayed', async () => {
    const { send, runs } = service();
    const part = { statusCode: 200, headers: () => ({ location: '/orders/1' }) };
    const first = await send({ cents: 1 }, part);
    expect(await send({ cents: 1 }, part)).toEqual({ ...first, headers: { ...first.headers, ...REPLAYED } });
    expect(runs).toHaveLength(1);
  });

  test('may have its properties in another order', async () => {
    const { send, runs } = service();
    const first = await send({ a: 1, b: { c: 2, d: 3 } });
    expect(await send({ b: { d: 3, c: 2 }, a: 1 })).toMatchObject({ statusCode: 201, body: first.body });
    expect(runs).toHaveLength(1);
  });

  test('is answered from what was committed, once the stored answer has expired', async () => {
    const { send, runs } = service();
    const first = await send({ cents: 1 });
    vi.setSystemTime(NOW + DAY_MS + 2_000);
    expect(await send({ cents: 1 })).toMatchObject({ statusCode: 201, body: first.body, headers: REPLAYED });
    expect(runs).toHaveLength(2);
  });

  test('is answered from what was committed, if Powertools is switched off', async () => {
    vi.stubEnv('POWERTOOLS_IDEMPOTENCY_DISABLED', 'true');
    const { send, records } = service();
    const first = await send({ cents: 1 });
    expect(await send({ cents: 1 })).toMatchObject({ statusCode: 201, body: first.body, headers: REPLAYED });
    expect(await send({ cents: 2 })).toMatchObject({ statusCode: 422 });
    expect(records()).toEqual([]);
  });
});

describe('another payload under the same key', () => {
  const reused = {
    code: 'IDEMPOTENCY_KEY_REUSED',
    message: 'This Idempotency-Key was used for another request.',
    remedy: 'Use a new key for a new request.',
    field: 'Idempotency-Key',
  };

  test('is answered 422 and runs nothing', async () => {
    const { send, runs } = service();
    await send({ cents: 1 });
    const answer = await send({ cents: 2 });
    expect(answer.statusCode).toBe(422);
    expect(problemOf(answer)).toEqual(reused);
    expect(runs).toHaveLength(1);
  });

  test('is answered 422 by what was committed, once the stored answer has expired; the first request still gets its answer', async () => {
    const { send, committed } = service();
    await send({ cents: 1 });
    vi.setSystemTime(NOW + DAY_MS + 2_000);
    const answer = await send({ cents: 2 });
    expect(answer.statusCode).toBe(422);
    expect(problemOf(answer)).toEqual(reused);
    expect(committed.get('key-1')).toEqual({ cents: 1 });
    expect(await send({ cents: 1 })).toMatchObject({ statusCode: 201, body: '{"cents":1}' });
  });

  test.each([undefined, null, 0, '', false, []])('is told apart from %s', async (payload) => {
    const { send } = service();
    await send(payload, { first: async () => '{}' });
    expect(await send(payload)).toMatchObject({ statusCode: 201, body: '{}', headers: REPLAYED });
    expect(await send({ cents: 2 })).toMatchObject({ statusCode: 422 });
  });
});

describe('a request while the first is in progress', () => {
  test('is answered 409 with Retry-After', async () => {
    const { send, die } = service();
    await die('before', {});
    const answer = await send({});
    expect(answer).toMatchObject({ statusCode: 409, headers: { 'retry-after': '1' } });
    expect(problemOf(answer)).toEqual({
      code: 'REQUEST_IN_PROGRESS',
      message: 'A request with this Idempotency-Key is in progress.',
      remedy: 'Send it again with the same key after the time in the header Retry-After.',
      field: 'Idempotency-Key',
    });
  });

  test('is answered from what was committed, if there is something', async () => {
    const { send, die } = service();
    await die('after', { cents: 1 });
    expect(await send({ cents: 1 })).toMatchObject({
      statusCode: 201,
      body: '{"cents":1}',
      headers: REPLAYED,
    });
    expect(await send({ cents: 2 })).toMatchObject({ statusCode: 422 });
  });

  test.each([
    ['the remaining time', REMAINING_MS, REMAINING_MS + 1],
    ['a millisecond if no time remains', 0, 2],
    ['a millisecond if less than none remains', -50, 2],
    ['whole milliseconds', 0.5, 2],
  ])('blocks the key for %s only', async (_, remainingMs, laterMs) => {
    const { send, die } = service();
    await die('before', {}, remainingMs);
    expect(await send({})).toMatchObject({ statusCode: 409 });
    vi.setSystemTime(NOW + laterMs);
    expect(await send({})).toMatchObject({ statusCode: 201 });
  });
});

describe('two runs of one key, the first of which outlived its time', () => {
  /** A run that ends when it is told to. */
  function slowRun({ send }: ReturnType<typeof service>, payload: unknown) {
    let finish: (end: () => string) => void = () => {};
    const ended = new Promise<() => string>((resolve) => {
      finish = resolve;
    });
    const first = async () => (await ended)();
    return { answer: send(payload, { first }), finish };
  }

  test('give one answer: the condition of the commit refuses the slower one', async () => {
    const parts = service();
    const slow = slowRun(parts, { cents: 1 });
    vi.setSystemTime(NOW + REMAINING_MS + 1);
    const fast = await parts.send({ cents: 1 });
    slow.finish(() => {
      throw new Error('refused by the condition');
    });
    expect(await slow.answer).toMatchObject({ statusCode: 201, body: fast.body, headers: REPLAYED });
    expect(await parts.send({ cents: 1 })).toMatchObject({ body: fast.body, headers: REPLAYED });
    expect(parts.runs).toHaveLength(1);
  });

  test('give the slower one 422 for its other payload; the removed record is made again', async () => {
    const parts = service();
    const slow = slowRun(parts, { cents: 2 });
    vi.setSystemTime(NOW + REMAINING_MS + 1);
    expect(await parts.send({ cents: 1 })).toMatchObject({ statusCode: 201 });
    slow.finish(() => {
      throw new Error('refused by the condition');
    });
    expect(await slow.answer).toMatchObject({ statusCode: 422 });
    // Powertools has removed the record of the other run.
    expect(parts.records()).toEqual([]);
    expect(await parts.send({ cents: 1 })).toMatchObject({ statusCode: 201, headers: REPLAYED });
    expect(await parts.send({ cents: 2 })).toMatchObject({ statusCode: 422 });
    expect(parts.committed.get('key-1')).toEqual({ cents: 1 });
  });
});

describe('the key', () => {
  test.each([undefined, null])('is missing (%s): 400, and nothing runs', async (idempotencyKey) => {
    const { send, runs, records } = service();
    const answer = await send({}, { idempotencyKey });
    expect(answer.statusCode).toBe(400);
    expect(problemOf(answer)).toEqual({
      code: 'IDEMPOTENCY_KEY_MISSING',
      message: 'The header Idempotency-Key is missing.',
      remedy: 'Send a new random value with each new request, and the same value when you repeat it.',
      field: 'Idempotency-Key',
    });
    expect([...runs, ...records()]).toEqual([]);
  });

  test.each([
    ['is empty', ''],
    ['is too long', 'k'.repeat(256)],
    ['has a blank', 'key 1'],
    ['is not ASCII', 'clé'],
    ['has a control character', 'key\n'],
  ])('%s: 400, and nothing runs', async (_, idempotencyKey) => {
    const { send, runs, records } = service();
    const answer = await send({}, { idempotencyKey });
    expect(answer.statusCode).toBe(400);
    expect(problemOf(answer)).toEqual({
      code: 'INVALID_REQUEST',
      message: `The header Idempotency-Key has ${idempotencyKey.length} characters; it must be 1 to 255 visible ASCII characters.`,
      remedy: 'Send a random value, such as a UUID.',
      field: 'Idempotency-Key',
    });
    expect([...runs, ...records()]).toEqual([]);
  });

  test.each(['k', 'k'.repeat(255), '!~"/#'])('may be %s', async (idempotencyKey) => {
    const { send } = service();
    expect(await send({}, { idempotencyKey })).toMatchObject({ statusCode: 201 });
  });

  test('belongs to its caller, whatever the names of callers and keys', async () => {
    const { send, runs } = service();
    for (const [caller, idempotencyKey] of [
      ['alice', 'key-1'],
      ['bob', 'key-1'],
      ['alice/key-1', 'key-1'],
      ['alice', 'key-1/key-1'],
    ])
      expect(await send({ caller }, { caller, idempotencyKey })).toMatchObject({ statusCode: 201 });
    expect(runs).toEqual(['alice/key-1', 'bob/key-1', 'alice%2Fkey-1/key-1', 'alice/key-1/key-1']);
  });

  test('has its own partition, and an expiry', async () => {
    const { send, records } = service();
    await send({});
    await send({}, { idempotencyKey: 'key-2' });
    expect(records().map(({ PK }) => PK)).toEqual(['REQUEST#key-1', 'REQUEST#key-2']);
    for (const { SK, expiresAt } of records()) {
      expect(SK).toMatch(/^orders#/);
      expect(expiresAt).toBe((NOW + DAY_MS) / 1_000);
    }
  });
});

describe('an argument that cannot work is refused', () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY, undefined])('remainingMs: %s', async (remainingMs) => {
    const { send, runs } = service();
    const error = await send({}, { remainingMs: remainingMs as number }).catch((thrown: unknown) => thrown);
    expect(errorCode(error)).toBe('BAD_ARGUMENT');
    expect(String(error)).toContain('context.getRemainingTimeInMillis()');
    expect(runs).toEqual([]);
  });

  test.each(['', 'or ders', 'o#1', 'o'.repeat(65)])('operation: "%s"', (operation) => {
    expect(() => service(operation)).toThrow(`The operation is "${operation}"; allowed: 1 to 64 `);
  });
});

test('the answer to a refused request is JSON with its problem, and has the headers', () => {
  const problem = { code: 'NO_SUCH_ORDER', message: 'Order 1 does not exist.' };
  expect(httpProblem(404, problem, { 'cache-control': 'no-store' })).toEqual({
    statusCode: 404,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: '{"error":{"code":"NO_SUCH_ORDER","message":"Order 1 does not exist."}}',
  });
});
