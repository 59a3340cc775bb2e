import { expect, onTestFinished, test, vi } from 'vitest';
import type { Handler, LeasedContext } from '../../../lambdas/runtime/index.ts';
import { codeOf } from '../page-module.ts';

const { shipOrder } = await codeOf<{ shipOrder(carrierUrl: string): Handler }>(
  'docs/recipes/call-an-api.md',
  'src/ship-order.ts',
);

test.each([
  [201, {}, 'committed'],
  [422, {}, 'PoisonMessage'],
  [429, { 'retry-after': '60' }, 'RetryLater'],
  [500, {}, 'Error'],
])('a carrier that answers %i with %j: %s', async (status, headers, outcome) => {
  const reply = new Response('{"shipmentId":"s-1"}', { status, headers });
  const call = vi.spyOn(globalThis, 'fetch').mockResolvedValue(reply);
  onTestFinished(() => call.mockRestore());
  const commit = vi.fn(async () => {});
  const ctx = {
    once: (name: string, effect: (key: string, signal: AbortSignal) => Promise<unknown>) =>
      effect(`shipping:event-1:${name}`, new AbortController().signal),
    commit,
  } as unknown as LeasedContext;
  const run = shipOrder('http://carrier/shipments').handle({ data: { orderId: '42' } } as never, ctx);
  expect(await run.then(() => 'committed').catch(({ name }) => name)).toBe(outcome);
  expect(commit).toHaveBeenCalledTimes(outcome === 'committed' ? 1 : 0);
  expect(call.mock.calls[0]?.[1]?.headers).toMatchObject({ 'Idempotency-Key': 'shipping:event-1:ship' });
});
