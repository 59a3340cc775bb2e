import { describe, expect, it } from 'vitest';
import { reserveStock } from '../../lambdas/example/inventory/reserve-stock.ts';
import { stockKey, stockRow } from '../../lambdas/example/inventory/stock.ts';
import { cancelPayment } from '../../lambdas/example/payments/cancel-payment.ts';
import { chargeOrder } from '../../lambdas/example/payments/charge-order.ts';
import { type Payment, paymentKey, putPayment } from '../../lambdas/example/payments/payment.ts';
import type { Item } from '../../lambdas/runtime/index.ts';
import { explore } from '../../testing/index.ts';
import { fakeBank } from '../support/fake-bank.ts';
import { order, orderPlaced, stockRejected } from '../support/order-events.ts';
import { deviations } from './rounds.ts';

const { orderId, customerId, totalCents: amountCents } = order;
const payment = paymentKey(orderId);

/** A row that the handler finds. */
function found(status: Payment): Item[] {
  return [putPayment(status).Put?.Item ?? {}];
}

describe('the order system, whatever crashes and in whatever order its workers act,', () => {
  it('charges an order once, and stores the charge that the bank made', async () => {
    await explore(({ table }, bank) => chargeOrder({ bank, table }), {
      event: orderPlaced,
      deviations: deviations(2),
      world: fakeBank,
      check: (table, bank) => {
        expect(bank.charges.size).toBe(1);
        expect(bank.keptCents()).toBe(900);
        expect(table.item(payment)).toMatchObject({
          status: 'captured',
          chargeId: 'charge-1',
          amountCents: 900,
        });
      },
    });
  });

  it('payments does not charge an order that inventory has rejected', async () => {
    await explore(({ table }, bank) => chargeOrder({ bank, table }), {
      event: orderPlaced,
      deviations: deviations(2),
      world: fakeBank,
      items: found({ orderId, status: 'cancelled' }),
      check: (table, bank) => {
        expect(bank.charges.size).toBe(0);
        expect(table.item(payment)).toMatchObject({ status: 'cancelled' });
      },
    });
  });

  it('refunds a charge once, under its own key', async () => {
    const charge = { orderId, customerId, amountCents };
    const chargedBank = () => {
      const bank = fakeBank();
      void bank.charge({ ...charge, idempotencyKey: 'charge' }, new AbortController().signal);
      return bank;
    };
    await explore(({ table }, bank) => cancelPayment({ bank, table }), {
      event: stockRejected,
      deviations: deviations(2),
      world: chargedBank,
      items: found({ ...charge, status: 'captured', chargeId: 'charge-1' }),
      check: (table, bank) => {
        expect([...bank.refunds.keys()]).toEqual([expect.stringMatching(/:refund$/)]);
        expect(bank.keptCents()).toBe(0);
        expect(table.item(payment)).toMatchObject({ status: 'refunded', refundId: 'refund-1' });
      },
    });
  });

  it('takes the stock of an order once', async () => {
    await explore(({ table }) => reserveStock({ table }), {
      event: orderPlaced,
      deviations: deviations(2),
      copies: 2,
      items: [stockRow('coffee', 10)],
      check: (table) => expect(table.item(stockKey('coffee'))).toMatchObject({ available: 8 }),
    });
  });
});
