import { describe, expect, it } from 'vitest';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { reserveStock } from '../../lambdas/example/inventory/reserve-stock.ts';
import { stockKey, stockRow } from '../../lambdas/example/inventory/stock.ts';
import { chargeOrder } from '../../lambdas/example/payments/charge-order.ts';
import { explore } from '../../lambdas/runtime/testing.ts';

const ORDER_ID = '0b8f5c6e-3f0a-4d63-9a55-6a1c3c1f7d01';

const event = OrderPlaced.create({
  aggregateId: ORDER_ID,
  data: {
    orderId: ORDER_ID,
    customerId: 'ada',
    items: [{ sku: 'coffee', quantity: 2, unitPrice: 450 }],
    totalCents: 900,
  },
});

/** A bank that charges once per key, and remembers every charge. */
function fakeBank() {
  const charges = new Map<string, string>();
  return {
    charges,
    charge: async ({ idempotencyKey }: { readonly idempotencyKey: string }) => {
      const chargeId = charges.get(idempotencyKey) ?? `charge-${charges.size + 1}`;
      charges.set(idempotencyKey, chargeId);
      return { outcome: 'captured' as const, chargeId };
    },
  };
}

describe('the order system, whatever crashes and in whatever order its workers act,', () => {
  it('charges an order once, and stores the charge that the bank made', async () => {
    await explore((_parts, bank) => chargeOrder({ bank }), {
      event,
      world: fakeBank,
      check: (table, { charges }) => {
        expect([...charges.values()]).toEqual(['charge-1']);
        expect(table.item({ PK: `PAYMENT#${ORDER_ID}`, SK: 'PAYMENT' })).toMatchObject({
          chargeId: 'charge-1',
          amountCents: 900,
        });
      },
    });
  });

  it('takes the stock of an order once', async () => {
    await explore(({ table }) => reserveStock({ table }), {
      event,
      copies: 2,
      items: [stockRow('coffee', 10)],
      check: (table) => expect(table.item(stockKey('coffee'))).toMatchObject({ available: 8 }),
    });
  });
});
