import { expect, test } from 'vitest';
import {
  type Around,
  createConsumer,
  createOutbox,
  type Envelope,
  type Handler,
  type Outbox,
} from '../../../lambdas/runtime/index.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { consumerConfig, rig, runThrough } from '../../support/runtime-rig.ts';
import { codeOf } from '../page-module.ts';

type TenantOf = (token: string) => Promise<string | undefined>;
interface App {
  request(path: string, init: RequestInit): Promise<Response>;
}

const page = 'docs/recipes/hono.md';
const { createApp } = await codeOf<{ createApp(outbox: Outbox, tenantOf: TenantOf): App }>(
  page,
  'src/app.ts',
);
const { payOrder } = await codeOf<{ payOrder: Handler }>(page, 'src/payments.ts');
const { inTenant } = await codeOf<{ inTenant: Around }>(page, 'src/tenants.ts');

test('the tenant of a request is that of the handler of its event', async () => {
  const { clock, memory: table, queue, telemetry } = rig();
  const outbox = createOutbox({ config: consumerConfig, table, clock });
  const committed: Envelope[] = [];
  const commit: Outbox['commit'] = async (wanted) => {
    const events = await outbox.commit(wanted);
    committed.push(...events);
    return events;
  };
  const app = createApp(
    { ...outbox, commit },
    async (token) => ({ 'Bearer a': 'alpha', 'Bearer b': 'beta' })[token],
  );
  const put = (token: string, orderId: string) =>
    app.request(`/orders/${orderId}`, { method: 'PUT', headers: { Authorization: token } });
  const responses = await Promise.all([put('Bearer a', '1'), put('Bearer b', '2'), put('stolen', '3')]);
  expect(responses.map(({ status }) => status)).toEqual([201, 201, 401]);
  expect(committed).toHaveLength(2);

  const config = consumerConfig;
  const around = inTenant;
  const consume = createConsumer({ config, table, queue, clock, telemetry, handlers: [payOrder], around });
  for (const detail of committed) queue.send({ source: 'orders', 'detail-type': detail.type, detail });
  await runThrough(clock, queue.deliver(consume, 10, lambdaContext({ clock })));
  const payments = table
    .items()
    .map(({ PK }) => PK)
    .filter((key) => key.startsWith('PAYMENT#'));
  expect(payments.toSorted()).toEqual(['PAYMENT#alpha#1', 'PAYMENT#beta#2']);
});
