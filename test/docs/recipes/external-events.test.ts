import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { createConsumer, type Handler } from '../../../lambdas/runtime/index.ts';
import {
  consumerConfig,
  manualClock,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
} from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

interface Request {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
type Webhook = (request: Request) => Promise<{ statusCode: number }>;

const page = 'docs/recipes/external-events.md';
const { recordPayment } = await codeOf<{ recordPayment: Handler }>(page, 'src/stripe-events.ts');
const { createWebhook } = await codeOf<{
  createWebhook(secret: string, send: (body: string) => Promise<unknown>): Webhook;
}>(page, 'src/webhook.ts');

const body = JSON.stringify({
  id: 'evt_1',
  type: 'charge.succeeded',
  created: 1767225600,
  data: { object: { id: 'ch_1' } },
});

function signed(secret: string, t = Math.floor(Date.now() / 1_000)): Record<string, string> {
  return {
    'stripe-signature': `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`,
  };
}

test('a webhook that is sent twice is one charge', async () => {
  const clock = manualClock();
  const table = memoryTable({ clock });
  const queue = memoryQueue({ clock });
  const parts = { table, queue, clock, telemetry: memoryTelemetry() };
  const consume = createConsumer({ ...parts, config: consumerConfig(), handlers: [recordPayment] });
  const webhook = createWebhook('secret', async (text) => queue.send(JSON.parse(text)));
  for (const headers of [signed('secret'), signed('secret')]) {
    expect(await webhook({ headers, body })).toEqual({ statusCode: 200 });
    await queue.deliver(consume);
  }
  expect(queue.messages()).toEqual([]);
  expect(table.item({ PK: 'CHARGE#ch_1', SK: 'CHARGE' })).toMatchObject({ stripeEvent: 'evt_1' });
});

test.each([
  ['of another secret', signed('another secret')],
  ['of long ago', signed('secret', 1)],
  ['that is missing', {}],
])('a webhook with a signature %s is refused', async (_, headers) => {
  const webhook = createWebhook('secret', async () => expect.unreachable());
  expect(await webhook({ headers, body })).toEqual({ statusCode: 400 });
});
