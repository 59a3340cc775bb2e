import { describe, expect, it } from 'vitest';
import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import {
  type Bank,
  BankError,
  type Charge,
  type ChargeResult,
} from '../../../lambdas/example/payments/bank.ts';
import { chargeOrder } from '../../../lambdas/example/payments/charge-order.ts';
import { PoisonMessage } from '../../../lambdas/runtime/index.ts';
import { consumerRig } from './consumer-rig.ts';

const orderId = orderIdOf('key');
const placed = OrderPlaced.create({
  aggregateId: orderId,
  data: {
    orderId,
    customerId: 'alice',
    items: [{ sku: 'coffee', quantity: 2, unitPrice: 1_250 }],
    totalCents: 2_500,
  },
});

/** Payments with a bank that gives these answers, one after the other. */
function setUp(...answers: (ChargeResult | Error)[]) {
  const asked: Charge[] = [];
  const bank: Bank = {
    charge: async (charge) => {
      asked.push(charge);
      const answer = answers.shift() ?? new Error('the bank was asked once too often');
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  return { ...consumerRig(() => [chargeOrder({ bank })]), asked };
}

describe('payments', () => {
  it('charges the total and commits the payment with PaymentCaptured', async () => {
    const { announce, deliver, rows, announced, asked } = setUp({ outcome: 'captured', chargeId: 'c-1' });
    const event = await announce(placed);
    expect(await deliver(event)).toBe('done');

    expect(asked).toEqual([
      {
        orderId,
        customerId: 'alice',
        amountCents: 2_500,
        idempotencyKey: expect.stringContaining(event.eventId),
      },
    ]);
    const payment = { orderId, customerId: 'alice', amountCents: 2_500, chargeId: 'c-1' };
    expect(rows('PAYMENT#')).toEqual([
      { PK: `PAYMENT#${orderId}`, SK: 'PAYMENT', schema: 1, outcome: 'captured', ...payment },
    ]);
    expect(announced('PaymentCaptured')).toEqual([
      expect.objectContaining({ aggregateId: orderId, causationId: event.eventId, data: payment }),
    ]);
  });

  it('asks the bank once, however often the message comes', async () => {
    const { announce, deliver, announced, asked } = setUp({ outcome: 'captured', chargeId: 'c-1' });
    const event = await announce(placed);
    expect([await deliver(event), await deliver(event), await deliver(event)]).toEqual([
      'done',
      'done',
      'done',
    ]);
    expect(asked).toHaveLength(1);
    expect(announced('PaymentCaptured')).toHaveLength(1);
  });

  it('asks again, with the same key, when the bank did not decide', async () => {
    const { announce, deliver, rows, asked } = setUp(
      new BankError('the bank answered 500'),
      new BankError('the bank answered 500'),
      { outcome: 'captured', chargeId: 'c-1' },
    );
    const event = await announce(placed);
    expect(await deliver(event)).toBe('comes again');
    expect(rows('PAYMENT#')).toEqual([]);
    expect([await deliver(event), await deliver(event)]).toEqual(['comes again', 'done']);
    expect(new Set(asked.map((charge) => charge.idempotencyKey)).size).toBe(1);
    expect(rows('PAYMENT#')).toHaveLength(1);
  });

  it('takes a refusal for a result: stores it, announces it, and does not ask again', async () => {
    const { announce, deliver, rows, announced, asked } = setUp({ outcome: 'declined', reason: 'no money' });
    const event = await announce(placed);
    expect([await deliver(event), await deliver(event)]).toEqual(['done', 'done']);
    expect(asked).toHaveLength(1);
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ outcome: 'declined', reason: 'no money' })]);
    expect(announced('PaymentDeclined')).toEqual([
      expect.objectContaining({
        data: { orderId, customerId: 'alice', amountCents: 2_500, reason: 'no money' },
      }),
    ]);
    expect(announced('PaymentCaptured')).toEqual([]);
  });

  it('rejects the message when the bank does not accept the request', async () => {
    const { announce, deliver, rows, asked } = setUp(new PoisonMessage('the bank refused the request'));
    const event = await announce(placed);
    expect(await deliver(event)).toBe('comes again');
    expect(rows('INBOX#')).toContainEqual(expect.objectContaining({ status: 'REJECTED' }));
    expect(rows('PAYMENT#')).toEqual([]);
    expect(asked).toHaveLength(1);
  });
});
