import type { LambdaClient } from '@aws-sdk/client-lambda';
import { describe, expect, it } from 'vitest';
import { lambdaBank } from '../../../lambdas/example/payments/bank-client.ts';
import { isNothingHappened } from '../../../lambdas/runtime/base/nothing-happened.ts';

const charge = { orderId: 'order-1', customerId: 'alice', amountCents: 2_500, idempotencyKey: 'key' };
const signal = new AbortController().signal;

/** The bank behind a Lambda client that answers every invocation alike. */
function answering(payload: unknown, part: { FunctionError?: string } = {}) {
  const sent: { input: { FunctionName: string; Payload: string }; abortSignal: AbortSignal }[] = [];
  const send = async ({ input }: { input: never }, { abortSignal }: { abortSignal: AbortSignal }) => {
    sent.push({ input, abortSignal });
    return { Payload: Buffer.from(JSON.stringify(payload)), ...part };
  };
  return {
    bank: lambdaBank({ client: { send } as unknown as LambdaClient, functionName: 'the-bank' }),
    sent,
  };
}

describe('the bank behind its Lambda function', () => {
  it('is sent the charge with its key, and the signal', async () => {
    const { bank, sent } = answering({ statusCode: 200, body: { chargeId: 'c-1' } });
    expect(await bank.charge(charge, signal)).toEqual({ outcome: 'captured', chargeId: 'c-1' });
    expect(sent[0]?.input.FunctionName).toBe('the-bank');
    expect(JSON.parse(sent[0]?.input.Payload ?? '')).toEqual({ operation: 'charge', ...charge });
    expect(sent[0]?.abortSignal).toBe(signal);
  });

  it('is sent the refund with its key, and the signal', async () => {
    const { bank, sent } = answering({ statusCode: 200, body: { refundId: 'r-1' } });
    const refund = { ...charge, chargeId: 'c-1' };
    expect(await bank.refund(refund, signal)).toEqual({ refundId: 'r-1' });
    expect(JSON.parse(sent[0]?.input.Payload ?? '')).toEqual({ operation: 'refund', ...refund });
    expect(sent[0]?.abortSignal).toBe(signal);
  });

  it('treats a refused refund as poison, and anything else as undecided', async () => {
    const refund = { ...charge, chargeId: 'c-1' };
    const refused = answering({ statusCode: 400, body: { message: 'less than that is left' } });
    await expect(refused.bank.refund(refund, signal)).rejects.toMatchObject({ code: 'POISON_MESSAGE' });
    for (const answer of [{ statusCode: 422 }, { statusCode: 500 }, { statusCode: 200, body: {} }]) {
      const { bank } = answering(answer);
      await expect(bank.refund(refund, signal)).rejects.toMatchObject({ name: 'BankError' });
    }
  });

  it('takes 422 for a decision', async () => {
    const { bank } = answering({ statusCode: 422, body: { message: 'no money' } });
    expect(await bank.charge(charge, signal)).toEqual({ outcome: 'declined', reason: 'no money' });
  });

  it('takes 400 for poison: asking again would be the same request', async () => {
    const { bank } = answering({ statusCode: 400, body: { message: 'amountCents is not valid' } });
    await expect(bank.charge(charge, signal)).rejects.toMatchObject({ code: 'POISON_MESSAGE' });
  });

  it('takes 202 for a charge that is not approved: nothing happened, and the bank sets the pause', async () => {
    const { bank } = answering({ statusCode: 202, body: { message: 'not yet', retryAfterSeconds: 30 } });
    const error = await bank.charge(charge, signal).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'RETRY_LATER', retryAfterMs: 30_000, message: 'not yet' });
    expect(isNothingHappened(error)).toBe(true);
  });

  it.each([
    ['a 500', { statusCode: 500, body: { message: 'oops' } }, {}],
    ['its own 409', { statusCode: 409, body: {} }, {}],
    ['a success without a charge', { statusCode: 200, body: {} }, {}],
    ['a success without a body', { statusCode: 200 }, {}],
    ['a function that failed', { errorMessage: 'Task timed out' }, { FunctionError: 'Unhandled' }],
  ])('takes %s for no decision', async (_, payload, part) => {
    const { bank } = answering(payload, part);
    await expect(bank.charge(charge, signal)).rejects.toMatchObject({ name: 'BankError' });
  });
});
