import { expect, test } from 'vitest';
import { MailroomError, TransactionCancelled } from '../../../../lambdas/runtime/base/errors.ts';
import { backoffMs } from '../../../../lambdas/runtime/store/backoff.ts';
import { transactWithRetry, writeWithRetry } from '../../../../lambdas/runtime/store/retry.ts';
import type { TransactAction } from '../../../../lambdas/runtime/store/table.ts';
import { rig, runThrough } from '../../../support/runtime-rig.ts';

const random = (count: number) => new Uint8Array(count).fill(128);
const cancelled = (...codes: string[]) => new TransactionCancelled(codes.map((code) => ({ code })));
const named = (name: string) => Object.assign(new Error(name), { name });

/** Runs a transaction of which the first tries fail like this; tells the tokens that were used. */
async function tried(failures: readonly Error[], happened = false) {
  const { memory, clock } = rig();
  const startedAt = clock.now();
  const tokens: (string | undefined)[] = [];
  let count = 0;
  const random = (bytes: number) => {
    count += 1;
    return new Uint8Array(bytes).fill(count);
  };
  const table = {
    ...memory,
    transact: async (actions: readonly TransactAction[], token?: string) => {
      tokens.push(token);
      const failure = failures[tokens.length - 1];
      if (failure === undefined || happened) await memory.transact(actions, token);
      if (failure !== undefined) throw failure;
    },
  };
  const add = {
    Update: {
      Key: { PK: 'a', SK: 'b' },
      UpdateExpression: 'ADD n :one',
      ExpressionAttributeValues: { ':one': 1 },
    },
  };
  const result = await runThrough(clock, transactWithRetry({ table, clock, random }, [add])).then(
    () => 'done',
    (error: Error) => error.name,
  );
  return { result, tokens, tookMs: clock.now() - startedAt, count: memory.item({ PK: 'a', SK: 'b' })?.n };
}

test('a transaction that only conflicted is retried', async () => {
  const { result, tokens, count } = await tried([
    cancelled('TransactionConflict'),
    cancelled('None', 'TransactionConflict'),
  ]);
  expect(result).toBe('done');
  expect(tokens).toHaveLength(3);
  expect(new Set(tokens).size).toBe(1); // an earlier try that is only late must not happen beside it
  expect(count).toBe(1);
});

test('a transaction whose response was lost is retried under its token, and happens once', async () => {
  const { result, tokens, count } = await tried([named('TimeoutError')], true);
  expect(result).toBe('done');
  expect(new Set(tokens).size).toBe(1);
  expect(count).toBe(1);
});

test.each([
  ['a refused condition', cancelled('ConditionalCheckFailed')],
  ['a refused condition among conflicts', cancelled('TransactionConflict', 'ConditionalCheckFailed')],
  ['a cancellation without a reason', cancelled('None', 'None')],
  ['a throttle among conflicts', cancelled('TransactionConflict', 'ThrottlingError')],
  ['an invalid request', named('ValidationException')],
  ['a missing right', named('AccessDeniedException')],
  ['an item that cannot be stored', new MailroomError('BAD_ITEM', 'a Date')],
])('%s is for the caller to judge, at once', async (_what, failure) => {
  const { result, tokens } = await tried([failure]);
  expect(result).toBe(failure.name);
  expect(tokens).toHaveLength(1);
});

test('after a lost response, a refusal proves nothing: the caller gets the loss', async () => {
  const lost = await tried([
    named('TimeoutError'),
    cancelled('TransactionConflict'),
    cancelled('ConditionalCheckFailed'),
  ]);
  expect(lost.result).toBe('TimeoutError');
  const refused = await tried([named('TimeoutError'), named('ValidationException')]);
  expect(refused.result).toBe('TimeoutError');
});

test.each(['ThrottlingException', 'ProvisionedThroughputExceededException', 'RequestLimitExceeded'])(
  'a request refused with %s is retried under its token, after a longer pause',
  async (name) => {
    const { result, tokens, tookMs, count } = await tried([named(name), named(name)]);
    expect(result).toBe('done');
    expect(tookMs).toBeGreaterThanOrEqual(750);
    expect(new Set(tokens).size).toBe(1);
    expect(count).toBe(1);
    const refused = await tried([named(name), cancelled('ConditionalCheckFailed')]);
    expect(refused.result).toBe('TransactionCancelled'); // nothing was written before either
  },
);

test.each(['ThrottlingException', 'InternalServerError', 'TransactionInProgressException'])(
  '%s without end is thrown after three tries',
  async (name) => {
    const { result, tokens } = await tried(Array(20).fill(named(name)));
    expect(result).toBe(name);
    expect(tokens).toHaveLength(3);
  },
);

test('an earlier try that is still in progress may happen yet: a refusal after it proves nothing', async () => {
  const { result } = await tried([
    named('TransactionInProgressException'),
    cancelled('ConditionalCheckFailed'),
  ]);
  expect(result).toBe('TransactionInProgressException');
});

test('a throttle after a lost response does not replace the loss', async () => {
  const { result } = await tried([named('TimeoutError'), ...Array(20).fill(named('ThrottlingException'))]);
  expect(result).toBe('TimeoutError');
});

test('a conflict with its own error is not a lost response', async () => {
  const { result } = await tried([
    named('TransactionConflictException'),
    cancelled('ConditionalCheckFailed'),
  ]);
  expect(result).toBe('TransactionCancelled');
});

test('retries of endless conflicts stop', async () => {
  const { result, tokens } = await tried(Array(20).fill(cancelled('TransactionConflict')));
  expect(result).toBe('TransactionCancelled');
  expect(tokens.length).toBeLessThan(10);
});

test('backoff doubles up to its cap, and never is less than half of it', () => {
  expect([1, 2, 3, 10, 1_000].map((attempt) => backoffMs(attempt, 1_000, 60_000, random))).toEqual([
    750, 1_500, 3_000, 45_000, 45_000,
  ]);
  expect(backoffMs(1, 1_000, 60_000, () => new Uint8Array([0]))).toBe(500);
});

/** Makes a write whose first tries meet a transaction, or fail with another error. */
async function written(failures: readonly Error[]) {
  const { memory, clock } = rig();
  let tries = 0;
  const write: typeof memory.write = async (action) => {
    tries += 1;
    const failure = failures[tries - 1];
    if (failure !== undefined) throw failure;
    return memory.write(action);
  };
  const Update = {
    Key: { PK: 'a', SK: 'b' },
    UpdateExpression: 'SET n = :one',
    ExpressionAttributeValues: { ':one': 1 },
  };
  const result = await runThrough(
    clock,
    writeWithRetry({ table: { ...memory, write }, clock, random }, { Update }),
  ).then(
    (item) => item,
    (error: Error) => error.name,
  );
  return { result, tries };
}

test('a write that meets a transaction is repeated, up to 6 tries in all, and returns the item', async () => {
  const conflict = named('TransactionConflictException');
  expect(await written([conflict, conflict])).toEqual({ result: { PK: 'a', SK: 'b', n: 1 }, tries: 3 });
  expect(await written(Array(9).fill(conflict))).toEqual({
    result: 'TransactionConflictException',
    tries: 6,
  });
});

test.each(['ThrottlingException', 'TimeoutError', 'ConditionalCheckFailedException'])(
  'a write that fails with %s is for the caller to judge, because the SDK has repeated it where it may',
  async (name) => {
    expect(await written([named(name)])).toEqual({ result: name, tries: 1 });
  },
);
