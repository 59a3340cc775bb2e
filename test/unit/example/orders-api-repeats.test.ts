import { describe, expect, it, vi } from 'vitest';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import type { Outbox } from '../../../lambdas/runtime/index.ts';
import {
  context,
  FUNCTION_TIMEOUT_MS,
  moveOn,
  NOW,
  order,
  parsed,
  post,
  replayOf,
  setUp,
  withStillClock,
} from './orders-api-rig.ts';

withStillClock();

describe('the same request again', () => {
  it('gets the same bytes and places nothing', async () => {
    const { api, rows } = setUp();
    const first = await api(post(), context());
    vi.setSystemTime(NOW + 60_000);
    expect(await api(post(), context())).toEqual(replayOf(first));
    expect(rows('ORDER#')).toHaveLength(1);
    expect(rows('OUTBOX#')).toHaveLength(2);
  });

  it('gets the same bytes although its JSON is written another way', async () => {
    const { api } = setUp();
    const first = await api(post(), context());
    const other = { items: [{ unitPrice: 1_250, quantity: 2, sku: 'coffee' }], customerId: 'alice' };
    expect(await api(post(other), context())).toEqual(replayOf(first));
  });

  it('gets the same bytes after the order has moved on and the stored answer has gone', async () => {
    const { api, table, rows } = setUp();
    const first = await api(post(), context());
    await moveOn(table, 'payment', 'captured');
    for (const { PK, SK } of rows('REQUEST#')) await table.write({ Delete: { Key: { PK, SK } } });
    expect(await api(post(), context())).toEqual(replayOf(first));
    expect(rows('OUTBOX#')).toHaveLength(2);
  });

  it('is refused with 422 if it contains a different order', async () => {
    const { api, rows } = setUp();
    await api(post(), context());
    const response = await api(post({ ...order, customerId: 'bob' }), context());
    expect(response.statusCode).toBe(422);
    expect(parsed(response).error).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
      field: 'Idempotency-Key',
    });
    expect(rows('OUTBOX#')).toHaveLength(2);
  });

  it('is refused with 422 also when the stored answer has gone', async () => {
    const { api, table, rows } = setUp();
    await api(post(), context());
    for (const { PK, SK } of rows('REQUEST#')) await table.write({ Delete: { Key: { PK, SK } } });
    const other = { ...order, items: [{ ...order.items[0], quantity: 3 }] };
    expect(await api(post(other), context())).toMatchObject({ statusCode: 422 });
    expect(await api(post(), context())).toMatchObject({ statusCode: 201 });
  });

  it('of two at once, one places the order and the other gets its answer or is told to retry', async () => {
    const { api, rows } = setUp();
    const responses = await Promise.all([api(post(), context()), api(post(), context())]);
    for (const response of responses) expect([201, 409]).toContain(response.statusCode);
    expect(responses.map((response) => response.statusCode)).toContain(201);
    expect(rows('OUTBOX#')).toHaveLength(2);
  });
});

describe('a run that dies', () => {
  /** Starts a run that stops permanently at its commit: before it, or right after it. */
  async function die(
    at: 'before' | 'after',
    { apiWith, outbox }: ReturnType<typeof setUp>,
    remainingMs?: number,
  ) {
    await new Promise<void>((reached) => {
      const commit: Outbox['commit'] = async (input) => {
        if (at === 'after') await outbox.commit(input);
        reached();
        return new Promise(() => {});
      };
      void apiWith({ commit })(post(), context(remainingMs));
    });
  }

  it('after its commit: the next run answers at once, as the first would have', async () => {
    const parts = setUp();
    await die('after', parts);
    vi.setSystemTime(NOW + 1_000);
    const second = await parts.api(post(), context());
    expect(second.statusCode).toBe(201);
    expect(parsed(second)).toMatchObject({ orderId: orderIdOf('key-1'), status: 'placed', placedAt: NOW });
    expect(parts.rows('OUTBOX#')).toHaveLength(2);
  });

  it('after its commit: once its time is over the next run stores the same answer', async () => {
    const parts = setUp();
    await die('after', parts);
    const before = await parts.api(post(), context());
    vi.setSystemTime(NOW + FUNCTION_TIMEOUT_MS + 1);
    const after = await parts.api(post(), context());
    expect(after).toEqual(before);
    expect(parts.rows('REQUEST#')).toEqual([
      expect.objectContaining({ status: 'COMPLETED', answer: after.body }),
    ]);
    expect(parts.rows('OUTBOX#')).toHaveLength(2);
  });

  it('after its commit: another request under its key is refused', async () => {
    const parts = setUp();
    await die('after', parts);
    const other = { ...order, customerId: 'bob' };
    expect(await parts.api(post(other), context())).toMatchObject({ statusCode: 422 });
    vi.setSystemTime(NOW + FUNCTION_TIMEOUT_MS + 1);
    expect(await parts.api(post(other), context())).toMatchObject({ statusCode: 422 });
  });

  it('before its commit: blocks the key for its own time only, with Retry-After', async () => {
    const parts = setUp();
    await die('before', parts);
    const blocked = await parts.api(post(), context());
    expect(blocked).toMatchObject({ statusCode: 409, headers: { 'retry-after': '1' } });
    expect(parsed(blocked).error.code).toBe('REQUEST_IN_PROGRESS');
    vi.setSystemTime(NOW + FUNCTION_TIMEOUT_MS + 1);
    expect(await parts.api(post(), context())).toMatchObject({ statusCode: 201 });
    expect(parts.rows('OUTBOX#')).toHaveLength(2);
  });

  it('before its commit and with no time left: does not block the key', async () => {
    const parts = setUp();
    await die('before', parts, 0);
    vi.setSystemTime(NOW + 2);
    expect(await parts.api(post(), context())).toMatchObject({ statusCode: 201 });
  });
});
