import { describe, expect, it } from 'vitest';
import {
  isOrderId,
  isSettled,
  orderIdOf,
  orderStatus,
  requestHash,
} from '../../../lambdas/example/orders/order.ts';

describe('the id of an order', () => {
  it('is a UUID of version 8 that depends on the key alone', () => {
    expect(orderIdOf('key-1')).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(orderIdOf('key-1')).toBe(orderIdOf('key-1'));
    expect(orderIdOf('key-1')).not.toBe(orderIdOf('key-2'));
  });

  it('always has the form that the API requires', () => {
    for (let i = 0; i < 1_000; i += 1) expect(isOrderId(orderIdOf(`key-${i}`))).toBe(true);
  });

  it('never changes: orders are stored under it', () => {
    expect(orderIdOf('key-1')).toBe('09e62b5e-1c5e-8e84-b921-12f1c4c4134a');
  });
});

describe('the hash of a request', () => {
  const item = { sku: 'coffee', quantity: 1, unitPrice: 100 };

  it('differs with every member, and with the order of the items', () => {
    const tea = { ...item, sku: 'tea' };
    const requests = [
      { customerId: 'a', items: [item] },
      { customerId: 'b', items: [item] },
      { customerId: 'a', items: [tea] },
      { customerId: 'a', items: [{ ...item, quantity: 2 }] },
      { customerId: 'a', items: [{ ...item, unitPrice: 101 }] },
      { customerId: 'a', items: [item, tea] },
      { customerId: 'a', items: [tea, item] },
      { customerId: 'a', items: [item], payWithinSeconds: 60 },
    ];
    expect(new Set(requests.map(requestHash)).size).toBe(requests.length);
  });

  it('does not depend on the order of the members', () => {
    const other = { items: [{ unitPrice: 100, quantity: 1, sku: 'coffee' }], customerId: 'a' };
    expect(requestHash(other)).toBe(requestHash({ customerId: 'a', items: [item] }));
  });
});

describe('the status of an order', () => {
  it.each([
    ['pending', 'pending', 'placed'],
    ['captured', 'pending', 'paid'],
    ['pending', 'reserved', 'reserved'],
    ['captured', 'reserved', 'confirmed'],
    ['declined', 'pending', 'cancelling'],
    ['declined', 'reserved', 'cancelling'],
    ['pending', 'rejected', 'cancelling'],
    ['captured', 'rejected', 'cancelling'],
    ['refunded', 'pending', 'cancelling'],
    ['declined', 'rejected', 'cancelled'],
    ['declined', 'released', 'cancelled'],
    ['refunded', 'rejected', 'cancelled'],
    ['cancelled', 'rejected', 'cancelled'],
  ] as const)('with payment %s and stock %s is %s', (payment, stock, status) => {
    expect(orderStatus({ payment, stock })).toBe(status);
    expect(isSettled({ payment, stock })).toBe(status === 'confirmed' || status === 'cancelled');
  });
});
