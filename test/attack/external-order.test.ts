import { describe, expect, it } from 'vitest';
import type { HttpRequest } from '../../lambdas/example/orders/http.ts';
import { context, order, parsed, post, request, setUp } from '../unit/example/orders-api-rig.ts';

/** The request as a function URL hands it on for a caller whom IAM has identified. */
function signedBy(callerId: string, unsigned: HttpRequest): HttpRequest {
  const requestContext = { ...unsigned.requestContext, authorizer: { iam: { callerId } } };
  return { ...unsigned, requestContext };
}

describe('an order of the example', () => {
  it('an order is shown only to the caller who placed it, in any deployment', async () => {
    const { api } = setUp();
    const placed = await api(signedBy('AROAALICE:laptop', post()), context());
    expect(placed.statusCode).toBe(201);
    const read = request('GET', `/orders/${parsed(placed).orderId}`);
    expect(await api(signedBy('AROAALICE:phone', read), context())).toMatchObject({ statusCode: 200 });
    for (const other of [signedBy('AROAMALLORY:alice', read), read]) {
      const refused = await api(other, context());
      expect(refused.statusCode).toBe(404);
      expect(parsed(refused).error.code).toBe('NO_SUCH_ORDER');
    }
  });

  it("another caller's idempotency key does not find the order", async () => {
    const { api, rows } = setUp();
    const alice = await api(signedBy('AROAALICE:s', post(order, 'key-1')), context());
    const mallory = await api(signedBy('AROAMALLORY:s', post(order, 'key-1')), context());
    expect(mallory.statusCode).toBe(201);
    expect(parsed(mallory).orderId).not.toBe(parsed(alice).orderId);
    expect(rows('ORDER#')).toHaveLength(2);
  });
});
