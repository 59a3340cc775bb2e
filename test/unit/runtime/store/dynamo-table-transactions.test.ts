import { DynamoDBClient, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { dynamoTable } from '../../../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { systemRandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { transactWithRetry } from '../../../../lambdas/runtime/store/retry.ts';
import {
  STUB_CONFIGURATION,
  type StubAnswer,
  stubHandler,
  triesAtOnce,
} from '../../../support/stub-client.ts';

const SERVER_ERROR: StubAnswer = {
  status: 500,
  body: { __type: 'InternalServerError', message: 'try later' },
};
const TIMEOUT: StubAnswer = { error: Object.assign(new Error('no answer'), { name: 'TimeoutError' }) };
const RESET: StubAnswer = { error: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) };
const THROTTLE: StubAnswer = { status: 400, body: { __type: 'ThrottlingException', message: 'slow down' } };
const DONE: StubAnswer = { status: 200, body: {} };
/** What the try after one that committed unhandled meets: its own row. */
const REFUSED: StubAnswer = {
  status: 400,
  body: {
    __type: 'TransactionCanceledException',
    Message: 'cancelled',
    CancellationReasons: [{ Code: 'ConditionalCheckFailed', Message: 'no' }],
  },
};

/** A retry strategy of the caller's. */
const TRIES_EVERYTHING = triesAtOnce(3);

/** Clients as a caller may hand them over, and how each is set to retry. */
const CLIENTS = [
  ['default settings', {}],
  ['five tries', { maxAttempts: 5 }],
  ['adaptive retries', { maxAttempts: 5, retryMode: 'adaptive' }],
  ['a retry strategy that tries everything', { retryStrategy: TRIES_EVERYTHING }],
  ['cached middleware', { retryStrategy: TRIES_EVERYTHING, cacheMiddleware: true }],
] as const;

function transacting(settings: object, answers: readonly StubAnswer[]) {
  const handler = stubHandler((request) => answers[request - 1] ?? DONE);
  const client = new DynamoDBClient({ ...STUB_CONFIGURATION, requestHandler: handler, ...settings });
  const table = dynamoTable({ client, tableName: 'Orders' });
  const Put = { Item: { PK: 'P', SK: 'a' }, ConditionExpression: 'attribute_not_exists(PK)' };
  const clock = { now: () => 0, sleep: async () => {} };
  return {
    client,
    requests: handler.requests as { readonly ClientRequestToken: string }[],
    once: () => table.transact([{ Put }], 'token'),
    withRetry: () => transactWithRetry({ table, clock, random: systemRandomBytes }, [{ Put }]),
  };
}

describe.each(CLIENTS)('a transaction through a client with %s', (_settings, settings) => {
  it.each([
    ['a server error', SERVER_ERROR, 'InternalServerError'],
    ['a time-out', TIMEOUT, 'TimeoutError'],
    ['a lost connection', RESET, 'Error'],
    ['a throttle', THROTTLE, 'ThrottlingException'],
  ])('is sent once for each call: %s', async (_failure, answer, name) => {
    const { once, requests } = transacting(settings, [answer]);
    await expect(once()).rejects.toMatchObject({ name });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ['a server error', SERVER_ERROR, { name: 'InternalServerError' }],
    ['a time-out', TIMEOUT, { name: 'TimeoutError' }],
    ['a lost connection', RESET, { code: 'ECONNRESET' }],
  ])(
    'a transaction that commits behind %s and is refused when it is sent again is not reported as cancelled',
    async (_failure, answer, error) => {
      const { withRetry, requests } = transacting(settings, [answer, REFUSED]);
      await expect(withRetry()).rejects.toMatchObject(error);
      expect(requests).toHaveLength(2);
      expect(requests[1]?.ClientRequestToken).toBe(requests[0]?.ClientRequestToken);
    },
  );

  it('a transaction that was only refused is reported as cancelled', async () => {
    const { withRetry, requests } = transacting(settings, [REFUSED]);
    await expect(withRetry()).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
    expect(requests).toHaveLength(1);
  });
});

describe('a client passed to the table', () => {
  it.each([false, true])(
    "retries its owner's own transactions as before (cached middleware: %s)",
    async (cacheMiddleware) => {
      const { client, once, requests } = transacting({ retryStrategy: TRIES_EVERYTHING, cacheMiddleware }, [
        THROTTLE,
        SERVER_ERROR,
      ]);
      await expect(once()).rejects.toMatchObject({ name: 'ThrottlingException' });
      const Put = { TableName: 'Orders', Item: { PK: { S: 'P' } } };
      await client.send(new TransactWriteItemsCommand({ TransactItems: [{ Put }] }));
      expect(requests).toHaveLength(3);
    },
  );

  it('retries idempotent requests, such as a read', async () => {
    const handler = stubHandler((request) =>
      request === 1 ? SERVER_ERROR : { status: 200, body: { Item: {} } },
    );
    const client = new DynamoDBClient({
      ...STUB_CONFIGURATION,
      requestHandler: handler,
      retryStrategy: TRIES_EVERYTHING,
    });
    expect(await dynamoTable({ client, tableName: 'Orders' }).get({ PK: 'P', SK: 'a' })).toEqual({});
    expect(handler.requests).toHaveLength(2);
  });

  it('has its clock corrected by a transaction, which is then made', async () => {
    const skewed: StubAnswer = {
      status: 400,
      body: { __type: 'InvalidSignatureException', message: 'Signature not yet current' },
      headers: { date: new Date(Date.now() + 3_600_000).toUTCString() },
    };
    const { withRetry, requests } = transacting({}, [skewed]);
    await withRetry();
    expect(requests).toHaveLength(2);
  });
});
