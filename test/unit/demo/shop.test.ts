import { expect, test } from 'vitest';
import { createShop } from '../../../demo/shop.ts';

/** A shop whose orders API answers every request. */
function shop() {
  const keys: string[] = [];
  const { placeOrders } = createShop({
    outputs: { OrdersUrl: 'http://orders.test/' },
    endpoint: '',
    runId: 'run',
    call: async (_url, { headers = {} }) => {
      const key = headers['idempotency-key'] ?? '';
      keys.push(key);
      return { status: 201, headers: {}, text: JSON.stringify({ orderId: key }) };
    },
  });
  return { keys, placeOrders };
}

test('a number of orders is placed, one in five twice', async () => {
  const { keys, placeOrders } = shop();
  let placed = 0;
  const repeats = await placeOrders(6, { ratePerSecond: 1_000, onPlaced: () => (placed += 1) });
  expect(placed).toBe(6);
  expect(keys).toHaveLength(8);
  expect(repeats).toEqual(['run-0', 'run-5'].map((orderId) => ({ orderId, sameAnswer: true })));
});

test('orders without a number are placed until they are ended', async () => {
  const { placeOrders } = shop();
  const end = new AbortController();
  let placed = 0;
  await placeOrders(Number.POSITIVE_INFINITY, {
    ratePerSecond: 1_000,
    ends: end.signal,
    onPlaced: () => {
      placed += 1;
      if (placed === 12) end.abort();
    },
  });
  // Those that were begun are placed, too: at most 10 at a time.
  expect(placed).toBeGreaterThanOrEqual(12);
  expect(placed).toBeLessThan(12 + 10);
});
