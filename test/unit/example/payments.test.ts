import { describe, expect, it } from 'vitest';
import { OrderExpired, OrderPlaced, StockRejected } from '../../../lambdas/example/events.ts';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import {
  type Bank,
  BankError,
  type Charge,
  type ChargeResult,
  type Refund,
} from '../../../lambdas/example/payments/bank-client.ts';
import { cancelPayment } from '../../../lambdas/example/payments/cancel-payment.ts';
import { chargeOrder } from '../../../lambdas/example/payments/charge-order.ts';
import { nothingHappened, PoisonMessage, RetryLater } from '../../../lambdas/runtime/index.ts';
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

const rejected = StockRejected.create({
  aggregateId: orderId,
  sequence: 1,
  data: { orderId, missingSkus: ['coffee'] },
});

/** Payments with a bank that gives these answers to charges, one after the other. */
function setUp(...answers: (ChargeResult | Error)[]) {
  const asked: Charge[] = [];
  const refunds: Refund[] = [];
  const bank: Bank = {
    charge: async (charge) => {
      asked.push(charge);
      const answer = answers.shift() ?? new Error('the bank was asked once too often');
      if (answer instanceof Error) throw answer;
      return answer;
    },
    refund: async (refund) => {
      refunds.push(refund);
      return { refundId: 'r-1' };
    },
  };
  const rig = consumerRig((table) => [
    chargeOrder({ bank, table }),
    cancelPayment({ bank, table }),
    cancelPayment({ bank, table }, OrderExpired),
  ]);
  return { ...rig, asked, refunds };
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
      { PK: `PAYMENT#${orderId}`, SK: 'PAYMENT', schema: 1, version: 1, status: 'captured', ...payment },
    ]);
    expect(announced('PaymentCaptured')).toEqual([
      expect.objectContaining({ aggregateId: orderId, causationId: event.eventId, data: payment }),
    ]);
  });

  it('calls the bank once, however often the message is delivered', async () => {
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

  it('calls again, with the same key, if the bank did not decide', async () => {
    const { announce, deliver, rows, asked } = setUp(
      new BankError('the bank answered 500'),
      new BankError('the bank answered 500'),
      { outcome: 'captured', chargeId: 'c-1' },
    );
    const event = await announce(placed);
    expect(await deliver(event)).toBe('is redelivered');
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'charging' })]);
    expect([await deliver(event), await deliver(event)]).toEqual(['is redelivered', 'done']);
    expect(new Set(asked.map((charge) => charge.idempotencyKey)).size).toBe(1);
    expect(rows('PAYMENT#')).toHaveLength(1);
  });

  it('treats a refusal as a result: stores it, announces it, and does not call again', async () => {
    const { announce, deliver, rows, announced, asked } = setUp({ outcome: 'declined', reason: 'no money' });
    const event = await announce(placed);
    expect([await deliver(event), await deliver(event)]).toEqual(['done', 'done']);
    expect(asked).toHaveLength(1);
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'declined', reason: 'no money' })]);
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
    expect(await deliver(event)).toBe('is redelivered');
    expect(rows('INBOX#')).toContainEqual(expect.objectContaining({ status: 'REJECTED' }));
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'charging' })]);
    expect(asked).toHaveLength(1);
  });
});

describe('payments, on rejected stock', () => {
  it('after the charge: refunds it once, under its own key, and announces it', async () => {
    const { announce, deliver, rows, announced, refunds } = setUp({ outcome: 'captured', chargeId: 'c-1' });
    await deliver(await announce(placed));
    const event = await announce(rejected);
    expect([await deliver(event), await deliver(event)]).toEqual(['done', 'done']);

    const payment = { orderId, customerId: 'alice', amountCents: 2_500, chargeId: 'c-1' };
    expect(refunds).toEqual([
      { ...payment, idempotencyKey: expect.stringMatching(`${event.eventId}:refund$`) },
    ]);
    expect(rows('PAYMENT#')).toEqual([
      expect.objectContaining({ ...payment, status: 'refunded', refundId: 'r-1' }),
    ]);
    expect(announced('PaymentRefunded')).toEqual([
      expect.objectContaining({ causationId: event.eventId, data: { ...payment, refundId: 'r-1' } }),
    ]);
  });

  it('before the order arrives: the bank is never called', async () => {
    const { announce, deliver, rows, announced, asked, refunds } = setUp();
    const event = await announce(rejected);
    expect(await deliver(event)).toBe('done');
    expect(await deliver(await announce(placed))).toBe('done');
    expect([...asked, ...refunds]).toEqual([]);
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'cancelled' })]);
    expect(announced('PaymentCancelled')).toEqual([
      expect.objectContaining({ causationId: event.eventId, data: { orderId } }),
    ]);
  });

  it('while the bank has not decided: the worker that charges also refunds, and announces only that', async () => {
    const { announce, deliver, rows, announced, asked, refunds } = setUp(
      new BankError('the bank answered 500'),
      { outcome: 'captured', chargeId: 'c-1' },
    );
    const event = await announce(placed);
    expect(await deliver(event)).toBe('is redelivered');
    expect(await deliver(await announce(rejected))).toBe('done');
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'cancelling' })]);
    expect(await deliver(event)).toBe('done');

    expect(asked).toHaveLength(2);
    expect(refunds).toEqual([
      expect.objectContaining({ idempotencyKey: expect.stringMatching(`${event.eventId}:refund$`) }),
    ]);
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'refunded' })]);
    expect(announced('PaymentRefunded')).toHaveLength(1);
    expect(announced('PaymentCaptured')).toEqual([]);
  });

  it.each(['before', 'after'])('%s the bank declines: there is nothing to refund', async (when) => {
    const { announce, deliver, rows, announced, refunds } = setUp(
      ...(when === 'before' ? [new BankError('the bank answered 500')] : []),
      { outcome: 'declined', reason: 'no money' },
    );
    const event = await announce(placed);
    await deliver(event);
    expect(await deliver(await announce(rejected))).toBe('done');
    expect(await deliver(event)).toBe('done');
    expect(refunds).toEqual([]);
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'declined' })]);
    expect(announced('PaymentDeclined')).toHaveLength(1);
  });
});

describe('payments, on an expired order', () => {
  const expired = OrderExpired.create({ aggregateId: orderId, data: { orderId } });
  const notApproved = () => nothingHappened(new RetryLater({ seconds: 15 }, 'not approved'));

  it('keeps a charge that was made in time', async () => {
    const { announce, deliver, rows, refunds } = setUp({ outcome: 'captured', chargeId: 'c-1' });
    await deliver(await announce(placed));
    expect(await deliver(await announce(expired))).toBe('done');
    expect(refunds).toEqual([]);
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'captured' })]);
  });

  it('before the order arrives: the bank is never called', async () => {
    const { announce, deliver, announced, asked } = setUp();
    await deliver(await announce(expired));
    expect(await deliver(await announce(placed))).toBe('done');
    expect(asked).toEqual([]);
    expect(announced('PaymentCancelled')).toMatchObject([{ sequence: 1, data: { orderId, expired: true } }]);
  });

  it('before the customer approves the charge: asks once more, and then ends the payment', async () => {
    const { announce, deliver, rows, announced, asked } = setUp(notApproved(), notApproved());
    const event = await announce(placed);
    expect(await deliver(event)).toBe('is redelivered');
    expect(rows('PAYMENT#')).toEqual([expect.objectContaining({ status: 'charging' })]);
    expect(await deliver(await announce(expired))).toBe('done');
    expect(await deliver(event)).toBe('done');
    expect(asked).toHaveLength(2);
    expect(announced('PaymentCancelled')).toMatchObject([{ data: { orderId, expired: true } }]);
  });

  it('refunds, once, a charge that the customer approves too late', async () => {
    const { announce, deliver, announced, refunds } = setUp(notApproved(), {
      outcome: 'captured',
      chargeId: 'c-1',
    });
    const event = await announce(placed);
    await deliver(event);
    const expiry = await announce(expired);
    for (const next of [expiry, event, expiry]) expect(await deliver(next)).toBe('done');
    expect(refunds).toHaveLength(1);
    expect(announced('PaymentRefunded')).toMatchObject([{ sequence: 1, data: { expired: true } }]);
    expect(announced('PaymentCaptured')).toEqual([]);
  });

  it('after a rejection of its stock: the order is out of stock, not expired', async () => {
    const { announce, deliver, announced } = setUp();
    for (const draft of [rejected, expired]) await deliver(await announce(draft));
    expect(announced('PaymentCancelled').map(({ data }) => data)).toEqual([{ orderId }]);
  });

  it('numbers the events of a payment', async () => {
    const { announce, deliver, announced } = setUp({ outcome: 'captured', chargeId: 'c-1' });
    for (const draft of [placed, rejected]) await deliver(await announce(draft));
    expect(announced('PaymentCaptured')).toMatchObject([{ sequence: 1 }]);
    expect(announced('PaymentRefunded')).toMatchObject([{ sequence: 2 }]);
  });
});
