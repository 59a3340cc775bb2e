import { describe, expect, it } from 'vitest';
import { BODY_BYTES_MAX } from '../../../lambdas/example/orders/http.ts';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import { context, order, parsed, post, request, setUp, withStillClock } from './orders-api-rig.ts';

withStillClock();

describe('a bad request', () => {
  const item = { sku: 'coffee', quantity: 1, unitPrice: 100 };
  const withItem = (part: object) => ({ customerId: 'alice', items: [item, { ...item, ...part }] });

  it.each<[what: string, body: unknown, field: string]>([
    ['no object', 'hello', 'body'],
    ['null', null, 'body'],
    ['a list', [], 'body'],
    ['no customer', { items: [item] }, 'customerId'],
    ['an empty customer', { customerId: '', items: [item] }, 'customerId'],
    ['a customer that is not text', { customerId: 7, items: [item] }, 'customerId'],
    ['a customer that is too long', { customerId: 'c'.repeat(101), items: [item] }, 'customerId'],
    ['a customer with a control character', { customerId: 'a\u0000', items: [item] }, 'customerId'],
    ['a customer that is not valid Unicode', { customerId: 'a\ud800', items: [item] }, 'customerId'],
    ['no items', { customerId: 'alice' }, 'items'],
    ['an empty list', { customerId: 'alice', items: [] }, 'items'],
    ['too many items', { customerId: 'alice', items: Array(51).fill(item) }, 'items'],
    ['items that are not a list', { customerId: 'alice', items: item }, 'items'],
    ['an item that is not an object', { customerId: 'alice', items: ['coffee'] }, 'items.0'],
    ['no sku', withItem({ sku: undefined }), 'items.1.sku'],
    ['an empty sku', withItem({ sku: '' }), 'items.1.sku'],
    ['a sku that is too long', withItem({ sku: 's'.repeat(101) }), 'items.1.sku'],
    ['a quantity of 0', withItem({ quantity: 0 }), 'items.1.quantity'],
    ['a negative quantity', withItem({ quantity: -1 }), 'items.1.quantity'],
    ['a quantity that is not a whole number', withItem({ quantity: 1.5 }), 'items.1.quantity'],
    ['a quantity that is a text', withItem({ quantity: '1' }), 'items.1.quantity'],
    ['a quantity that is too large', withItem({ quantity: 10_001 }), 'items.1.quantity'],
    ['a fraction of a cent', withItem({ unitPrice: 9.99 }), 'items.1.unitPrice'],
    ['a negative price', withItem({ unitPrice: -1 }), 'items.1.unitPrice'],
    ['a price that is too high', withItem({ unitPrice: 1e300 }), 'items.1.unitPrice'],
    ['no price', withItem({ unitPrice: undefined }), 'items.1.unitPrice'],
    ['an unknown member', { customerId: 'alice', items: [item], coupon: 'x' }, 'coupon'],
    ['no time to pay', { customerId: 'alice', items: [item], payWithinSeconds: 0 }, 'payWithinSeconds'],
    ['a time to pay that is too long', { ...order, payWithinSeconds: 1_801 }, 'payWithinSeconds'],
    ['an unknown member of an item', withItem({ price: 1 }), 'items.1.price'],
  ])('with %s is answered 400 and names the field', async (_, body, field) => {
    const { api, items } = setUp();
    const response = await api(post(body), context());
    expect(response.statusCode).toBe(400);
    const { error } = parsed(response);
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', field });
    expect(error.message).toMatch(/must be|is not known/);
    expect(items()).toEqual([]);
  });

  it.each([
    ['text', '{"customerId": "alice"'],
    ['an empty body', ''],
    ['no body', undefined],
  ])('with %s instead of JSON is answered 400', async (_, body) => {
    const { api } = setUp();
    const response = await api(
      request('POST', '/orders', { key: 'key-1', ...(body === undefined ? {} : { body }) }),
      context(),
    );
    expect(response.statusCode).toBe(400);
    expect(parsed(response).error).toMatchObject({ code: 'NOT_JSON', field: 'body' });
  });

  it('that is too large is answered 413', async () => {
    const { api } = setUp();
    const response = await api(post({ ...order, note: 'n'.repeat(BODY_BYTES_MAX) }), context());
    expect(response.statusCode).toBe(413);
    expect(parsed(response).error.message).toContain(`at most ${BODY_BYTES_MAX}`);
  });

  it.each([
    ['no key', undefined, 'IDEMPOTENCY_KEY_MISSING'],
    ['an empty key', '', 'INVALID_REQUEST'],
    ['a key that is too long', 'k'.repeat(256), 'INVALID_REQUEST'],
    ['a key with a blank', 'key 1', 'INVALID_REQUEST'],
    ['a key that is not ASCII', 'clé', 'INVALID_REQUEST'],
  ])('with %s is answered 400 and names the header', async (_, key, code) => {
    const { api } = setUp();
    const body = JSON.stringify(order);
    const response = await api(
      request('POST', '/orders', key === undefined ? { body } : { key, body }),
      context(),
    );
    expect(response.statusCode).toBe(400);
    expect(parsed(response).error).toMatchObject({ code, field: 'Idempotency-Key' });
  });

  it.each(['/', '/order', '/orders/', '/orders/a/b', '/ordersx'])('to %s is answered 404', async (path) => {
    const { api } = setUp();
    expect(await api(request('GET', path), context())).toMatchObject({ statusCode: 404 });
  });

  it.each([
    ['GET', '/orders', 'POST'],
    ['DELETE', '/orders', 'POST'],
    ['POST', `/orders/${orderIdOf('key-1')}`, 'GET'],
    ['PUT', `/orders/${orderIdOf('key-1')}`, 'GET'],
  ])('%s %s is answered 405 and says what is allowed', async (method, path, allowed) => {
    const { api } = setUp();
    const response = await api(request(method, path, { key: 'key-1' }), context());
    expect(response).toMatchObject({ statusCode: 405, headers: { allow: allowed } });
  });
});
