import { describe, expect, it } from 'vitest';
import { PaymentRejected, StockRejected } from '../../../lambdas/example/events.ts';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import type { Bank, Refund } from '../../../lambdas/example/payments/bank-client.ts';
import { cancelPayment } from '../../../lambdas/example/payments/cancel-payment.ts';
import { chargeOrder } from '../../../lambdas/example/payments/charge-order.ts';
import { decide, putPayment } from '../../../lambdas/example/payments/payment.ts';
import { refundRejected, rejectPayment } from '../../../lambdas/example/payments/reject-payment.ts';
import type { PastEffect, RejectedContext } from '../../../lambdas/runtime/index.ts';
import { memoryTable } from '../../../testing/index.ts';
import { consumerRig } from './consumer-rig.ts';

const orderId = orderIdOf('key');
const invoice = { orderId, customerId: 'alice', amountCents: 2_500 };
const captured = { outcome: 'captured', chargeId: 'c-1' };

function context(charge?: Pick<PastEffect, 'state'> & Partial<PastEffect>): RejectedContext {
  const effects: RejectedContext['effects'] =
    charge === undefined ? {} : { charge: { idempotencyKey: 'key', result: undefined, ...charge } };
  return {
    by: 'ada',
    reason: 'the customer left',
    cause: undefined,
    effects,
    remainingMs: () => 1_000,
    logFields: {},
  };
}

describe('the rejection of a payment', () => {
  it.each([
    ['is announced without a charge if none was started', undefined, undefined],
    ['is announced without a charge if nothing happened', { state: 'nothing-happened' as const }, undefined],
    [
      'is announced without a charge if the bank declined',
      { state: 'completed' as const, result: { outcome: 'declined' } },
      undefined,
    ],
    ['is announced with a completed charge', { state: 'completed' as const, result: captured }, 'c-1'],
  ])('%s', async (_what, charge, chargeId) => {
    const table = memoryTable();
    await table.write(putPayment({ ...invoice, status: 'charging' }));
    const { writes = [], events = [] } = await rejectPayment(table, invoice, context(charge));
    await table.transact(writes, 'token');
    expect(table.item({ PK: `PAYMENT#${orderId}`, SK: 'PAYMENT' })).toMatchObject({ status: 'rejected' });
    expect(events).toMatchObject([
      { definition: PaymentRejected, data: { ...invoice, reason: 'the customer left' } },
    ]);
    expect(events[0]?.data).toHaveProperty('chargeId', chargeId);
  });

  it.each(['failed', 'unknown'] as const)(
    'is refused if the charge %s: only the bank knows',
    async (state) => {
      await expect(rejectPayment(memoryTable(), invoice, context({ state }))).rejects.toThrow(
        'The bank may have charged under the key key',
      );
    },
  );

  it('changes nothing once the payment is decided', async () => {
    const table = memoryTable();
    await table.write(putPayment({ orderId, status: 'cancelled' }));
    expect(await rejectPayment(table, invoice, context())).toEqual({});
  });
});

describe('payments, on a rejected payment', () => {
  function setUp() {
    const refunds: Refund[] = [];
    const bank: Bank = {
      charge: async () => Promise.reject(new Error('not asked')),
      refund: async (refund) => {
        refunds.push(refund);
        return { refundId: 'r-1' };
      },
    };
    const rig = consumerRig((table) => [
      chargeOrder({ bank, table }),
      cancelPayment({ bank, table }),
      refundRejected({ bank }),
    ]);
    return { ...rig, refunds };
  }

  const rejection = (chargeId?: string) =>
    PaymentRejected.create({
      aggregateId: orderId,
      sequence: 1,
      data: { ...invoice, reason: 'the customer left', ...(chargeId !== undefined && { chargeId }) },
    });

  it('refunds a charge once, and announces it', async () => {
    const { announce, deliver, announced, refunds, rows, table } = setUp();
    const { writes = [] } = decide({ ...invoice, status: 'rejected', chargeId: 'c-1', reason: 'gone' });
    await table.transact(writes);
    const event = await announce(rejection('c-1'));
    expect(await deliver(event)).toBe('done');
    expect(await deliver(event)).toBe('done');
    expect(refunds).toMatchObject([{ ...invoice, chargeId: 'c-1' }]);
    expect(rows('PAYMENT#')).toMatchObject([{ status: 'refunded', refundId: 'r-1' }]);
    expect(announced('PaymentRefunded')).toHaveLength(1);
  });

  it('does nothing without a charge, and neither does a rejection of its stock', async () => {
    const { announce, deliver, refunds, rows, table } = setUp();
    await table.write(putPayment({ ...invoice, status: 'rejected', reason: 'gone' }));
    expect(await deliver(await announce(rejection()))).toBe('done');
    const outOfStock = StockRejected.create({
      aggregateId: orderId,
      sequence: 1,
      data: { orderId, missingSkus: ['tea'] },
    });
    expect(await deliver(await announce(outOfStock))).toBe('done');
    expect(refunds).toEqual([]);
    expect(rows('PAYMENT#')).toMatchObject([{ status: 'rejected' }]);
  });
});
