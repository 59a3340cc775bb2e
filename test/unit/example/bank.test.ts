import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { createBank } from '../../../lambdas/example/bank/bank.ts';
import type { ChargeRequest, RefundRequest } from '../../../lambdas/example/bank/bank-request.ts';
import { dynamoLedger } from '../../../lambdas/example/bank/ledger.ts';
import { misbehavior } from '../../../lambdas/example/bank/misbehavior.ts';

const TABLE = 'Mailroom';

const charge: ChargeRequest = {
  operation: 'charge',
  orderId: 'order-1',
  customerId: 'alice',
  amountCents: 2_500,
  idempotencyKey: 'payments:event-1:charge',
};

function setUp() {
  const aws = createMeteredAws([{ name: TABLE, keys: ['PK', 'SK'] }]);
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient(aws.client));
  const slept: number[] = [];
  const bank = createBank({
    ledger: dynamoLedger({ documents, tableName: TABLE }),
    now: () => 1_000,
    sleep: async (ms) => {
      slept.push(ms);
    },
  });
  const rows = (PK: string) => aws.items(TABLE).filter((item) => item.PK === PK);
  return {
    bank,
    slept,
    requests: () => rows('REQUEST#order-1'),
    charges: () => rows('CHARGE#order-1'),
    refunds: () => rows('REFUND#order-1'),
  };
}

describe('the bank', () => {
  it('charges, and keeps a row for the request and one for the charge', async () => {
    const { bank, requests, charges } = setUp();
    const { statusCode, body } = await bank(charge);
    expect(statusCode).toBe(200);
    expect(charges()).toEqual([
      expect.objectContaining({ SK: body.chargeId, amountCents: 2_500, chargedAt: 1_000 }),
    ]);
    expect(requests()).toEqual([
      expect.objectContaining({
        SK: '000001',
        idempotencyKey: charge.idempotencyKey,
        receivedAt: 1_000,
        outcome: 'charged',
      }),
    ]);
  });

  it('answers the same key with the first charge', async () => {
    const { bank, requests, charges } = setUp();
    const first = await bank(charge);
    expect(await bank(charge)).toEqual(first);
    expect(charges()).toHaveLength(1);
    expect(requests().map((row) => row.outcome)).toEqual(['charged', 'replayed']);
  });

  it('charges once when the same key comes twice at once', async () => {
    const { bank, charges } = setUp();
    const [first, second] = await Promise.all([bank(charge), bank(charge)]);
    expect(second).toEqual(first);
    expect(charges()).toHaveLength(1);
  });

  it('refuses a key that was used for another charge', async () => {
    const { bank, charges } = setUp();
    await bank(charge);
    const answer = await bank({ ...charge, amountCents: 1 });
    expect(answer).toMatchObject({ statusCode: 400, body: { code: 'KEY_REUSED' } });
    expect(charges()).toHaveLength(1);
  });

  it('charges twice under two keys: a double charge is two rows', async () => {
    const { bank, charges } = setUp();
    await bank(charge);
    await bank({ ...charge, idempotencyKey: 'another' });
    expect(charges()).toHaveLength(2);
  });

  it.each([
    ['operation', { operation: 'transfer' }],
    ['chargeId', { operation: 'refund' }],
    ['orderId', { orderId: '' }],
    ['customerId', { customerId: 7 }],
    ['amountCents', { amountCents: -1 }],
    ['amountCents', { amountCents: 0.5 }],
    ['idempotencyKey', { idempotencyKey: undefined }],
  ])('answers 400 and names %s', async (field, part) => {
    const { bank, requests } = setUp();
    const answer = await bank({ ...charge, ...part });
    expect(answer.statusCode).toBe(400);
    expect(answer.body.message).toContain(field);
    expect(requests()).toEqual([]);
  });

  it('answers 400 to an invalid request', async () => {
    const { bank } = setUp();
    expect(await bank('hello')).toMatchObject({ statusCode: 400 });
  });
});

describe('the bank, refunding', () => {
  async function charged() {
    const made = setUp();
    const { body } = await made.bank(charge);
    const refund: RefundRequest = {
      ...charge,
      operation: 'refund',
      chargeId: body.chargeId ?? '',
      idempotencyKey: 'payments:event-2:refund',
    };
    return { ...made, refund };
  }

  it('gives the charge back, and keeps a row for it', async () => {
    const { bank, refund, refunds, charges, requests } = await charged();
    const { statusCode, body } = await bank(refund);
    expect(statusCode).toBe(200);
    expect(refunds()).toEqual([
      expect.objectContaining({ SK: body.refundId, chargeId: refund.chargeId, amountCents: 2_500 }),
    ]);
    expect(charges()).toEqual([expect.objectContaining({ amountCents: 2_500, leftCents: 0 })]);
    expect(requests().map((row) => row.outcome)).toEqual(['charged', 'refunded']);
  });

  it('answers the same key with the first refund', async () => {
    const { bank, refund, refunds } = await charged();
    const [first, second] = await Promise.all([bank(refund), bank(refund)]);
    expect(second).toEqual(first);
    expect(await bank(refund)).toEqual(first);
    expect(refunds()).toHaveLength(1);
  });

  it('refuses the key of the charge', async () => {
    const { bank, refund, refunds } = await charged();
    const answer = await bank({ ...refund, idempotencyKey: charge.idempotencyKey });
    expect(answer).toMatchObject({ statusCode: 400, body: { code: 'KEY_REUSED' } });
    expect(refunds()).toEqual([]);
  });

  it('refuses to refund a charge that it never made', async () => {
    const { bank, refund, refunds } = await charged();
    const answer = await bank({ ...refund, chargeId: 'another' });
    expect(answer).toMatchObject({ statusCode: 400, body: { code: 'NO_SUCH_CHARGE' } });
    expect(refunds()).toEqual([]);
  });

  it('refuses to give back more than is left of the charge', async () => {
    const { bank, refund, refunds } = await charged();
    await bank({ ...refund, amountCents: 2_000 });
    const again = { ...refund, idempotencyKey: 'another' };
    const answer = await bank({ ...again, amountCents: 501 });
    expect(answer).toMatchObject({ statusCode: 400, body: { code: 'MORE_THAN_CAPTURED' } });
    expect(await bank({ ...again, amountCents: 500 })).toMatchObject({ statusCode: 200 });
    expect(refunds()).toHaveLength(2);
  });

  it('refunds a customer who may no longer be charged', async () => {
    const { bank, refund, refunds } = await charged();
    expect(await bank({ ...refund, customerId: 'decline' })).toMatchObject({ statusCode: 200 });
    expect(refunds()).toHaveLength(1);
  });
});

describe('the bank, with injected faults', () => {
  it('slow-<ms>: has charged before it makes its caller wait', async () => {
    const { bank, slept, charges } = setUp();
    expect(await bank({ ...charge, customerId: 'slow-1500' })).toMatchObject({ statusCode: 200 });
    expect(slept).toEqual([1_500]);
    expect(charges()).toHaveLength(1);
  });

  it('fail-<n>: answers 500 n times for an order and then charges', async () => {
    const { bank, requests, charges } = setUp();
    const request = { ...charge, customerId: 'fail-2' };
    const codes = [await bank(request), await bank(request), await bank(request)].map((a) => a.statusCode);
    expect(codes).toEqual([500, 500, 200]);
    expect(requests().map((row) => row.outcome)).toEqual(['failed', 'failed', 'charged']);
    expect(charges()).toHaveLength(1);
    expect(await bank({ ...request, orderId: 'order-2' })).toMatchObject({ statusCode: 500 });
  });

  it('decline: answers 422 and charges nothing', async () => {
    const { bank, requests, charges } = setUp();
    expect(await bank({ ...charge, customerId: 'decline' })).toMatchObject({ statusCode: 422 });
    expect(charges()).toEqual([]);
    expect(requests().map((row) => row.outcome)).toEqual(['declined']);
  });

  it('late: answers 202 each time, charges nothing, and doubles the pause that it asks for', async () => {
    const { bank, requests, charges } = setUp();
    const request = { ...charge, customerId: 'anyone-late' };
    const pause = (seconds: number) => ({ statusCode: 202, body: { retryAfterSeconds: seconds } });
    expect([await bank(request), await bank(request)]).toMatchObject([pause(15), pause(30)]);
    expect(charges()).toEqual([]);
    expect(requests().map((row) => row.outcome)).toEqual(['not-approved', 'not-approved']);
  });

  it('no-keys: charges again whatever the key', async () => {
    const { bank, charges } = setUp();
    await bank({ ...charge, customerId: 'no-keys' });
    await bank({ ...charge, customerId: 'no-keys' });
    expect(charges()).toHaveLength(2);
  });

  it.each(['alice', 'slow', 'slow-', 'slow-x', 'fail--1', 'fail-1-2', 'decline-1', 'no-keys '])(
    'serves the customer %s like any other',
    (customerId) => {
      expect(misbehavior(customerId)).toEqual({
        delayMs: 0,
        failures: 0,
        declines: false,
        isLate: false,
        isUnknown: false,
        ignoresKeys: false,
      });
    },
  );
});
