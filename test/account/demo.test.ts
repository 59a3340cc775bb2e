import { expect, inject, test } from 'vitest';
import { required } from '../../demo/readings.ts';
import { runDemo } from '../../demo/run.ts';
import { callFunctionUrl } from '../../localstack/function-url.ts';
import { call } from '../local/support/order-system.ts';

/** HTTP: the caller has no permission. */
const FORBIDDEN = 403;

const [endpoint, outputs] = [inject('endpoint'), inject('outputs')];
const [orders = 20, rate = 5] = [inject('orders'), inject('rate')];

test('orders, repeats and duplicates: nothing lost, nothing duplicated', async ({ annotate }) => {
  const steps = { say: () => {}, step: () => {}, detail: () => {} };
  const receipt = await runDemo({ outputs, endpoint, orders, rate, steps, call });
  expect(receipt.problems).toEqual([]);
  const { eventsPublished, duplicatesAbsorbed, commitToPublishedMs: ms } = receipt;
  await annotate(
    `${receipt.orders} orders, ${eventsPublished} events, ${duplicatesAbsorbed} duplicates absorbed; ` +
      `published after ${ms.p50} ms (median), ${ms.p99} ms (p99)`,
  );
});

test('the orders API refuses a request without a signature', async ({ skip }) => {
  const url = new URL('orders/none', required(outputs, 'OrdersUrl'));
  const { status } = await callFunctionUrl(endpoint || url.origin, url);
  skip(endpoint !== '' && status !== FORBIDDEN, `the engine checks no signatures: it answered ${status}`);
  expect(status).toBe(FORBIDDEN);
});
