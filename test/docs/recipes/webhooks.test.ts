import { describe, expect, test } from 'vitest';
import {
  createConsumer,
  createOutbox,
  type EventDraft,
  type Handler,
  type Outbox,
  type Table,
} from '../../../lambdas/runtime/index.ts';
import {
  consumerConfig,
  explore,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryRelay,
  memoryTable,
  memoryTelemetry,
  producerConfig,
} from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';
import { localRules, type PostRules, type PostWebhook, receiver } from './webhook-receiver.ts';

interface EndpointId {
  readonly customerId: string;
  readonly endpointId: string;
}

const page = 'docs/recipes/webhooks.md';
const { createPost } = await codeOf<{ createPost(rules?: PostRules): PostWebhook }>(
  page,
  'src/public-post.ts',
);
const { signedHeaders } = await codeOf<{
  signedHeaders(secrets: string[], id: string, body: string, now?: number): Record<string, string>;
}>(page, 'src/signature.ts');
const { enableEndpoint, endpointKey } = await codeOf<{
  enableEndpoint(table: Table, outbox: Outbox, id: EndpointId): Promise<void>;
  endpointKey(id: EndpointId): { PK: string; SK: string };
}>(page, 'src/endpoints.ts');
const { queueWebhooks } = await codeOf<{ queueWebhooks(table: Table): Handler }>(
  page,
  'src/webhook-queue.ts',
);
const { sendWebhook } = await codeOf<{
  sendWebhook(table: Table, post: PostWebhook): Handler;
}>(page, 'src/webhooks.ts');
type Definition = { create(event: { aggregateId: string; data: object }): EventDraft };
const { OrderPlaced, WebhookQueued } = await codeOf<Record<'OrderPlaced' | 'WebhookQueued', Definition>>(
  page,
  'src/events.ts',
);

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const SHOP = { customerId: 'acme', endpointId: 'shop' };

/** The page's consumers as one, with the doubles of docs/testing.md and servers that respond with the statuses of `respond`. */
async function system(respond: (url: string) => number, headers: Record<string, string> = {}) {
  const { port, requests } = await receiver((request, response) => {
    response.writeHead(respond(request.url ?? ''), headers).end('thanks');
  });
  const clock = manualClock();
  const table = memoryTable({ clock, domainKeys: ['WEBHOOKS#*', 'WAITING#*'] });
  const bus = memoryBus({ clock });
  const queue = memoryQueue({ clock, maxReceiveCount: 105 });
  bus.routeTo(queue, { source: ['orders', 'webhooks'], detailType: ['OrderPlaced', 'WebhookQueued'] });
  const parts = { table, bus, queue, clock, telemetry: memoryTelemetry() };
  const orders = createOutbox({
    ...parts,
    config: producerConfig({ service: 'orders', publishes: ['OrderPlaced'] }),
  });
  const publishes = ['WebhookQueued'];
  const webhooks = createOutbox({ ...parts, config: producerConfig({ service: 'webhooks', publishes }) });
  const relay = memoryRelay(parts);
  const handlers = [queueWebhooks(table), sendWebhook(table, createPost(localRules().rules))];
  const consume = createConsumer({
    ...parts,
    config: consumerConfig({ service: 'webhooks', publishes }),
    handlers,
  });
  return {
    requests,
    table,
    queue,
    webhooks,
    /** Works for at most `rounds`, or until no message is left. */
    async work(rounds = 40) {
      for (let round = 0; round < rounds; round += 1) {
        await relay();
        await queue.deliver(consume);
        await relay();
        const next = Math.min(...queue.messages().map(({ visibleAt }) => visibleAt));
        if (next === Number.POSITIVE_INFINITY) return;
        await clock.advance(Math.max(0, next - clock.now()));
      }
    },
    place: (orderId: string) =>
      orders.commit({
        events: [OrderPlaced.create({ aggregateId: orderId, data: { customerId: 'acme', orderId } })],
      }),
    add: (change: object = {}) => {
      const url = `http://hooks.example:${port}/${Reflect.get(change, 'endpointId') ?? 'shop'}`;
      const known = { ...SHOP, url, secrets: [SECRET], state: 'enabled', whenDisabled: 'wait', failures: 0 };
      const Item = { ...known, ...change };
      return table.write({ Put: { Item: { ...endpointKey(Item), ...Item } } });
    },
    endpoint: () => table.item(endpointKey(SHOP)),
    waiting: () => table.items().filter(({ PK }) => PK.startsWith('WAITING#')),
  };
}

test('an order is sent to each endpoint of its customer, signed', async () => {
  const { add, place, work, requests, queue } = await system(() => 200);
  await add();
  await add({ endpointId: 'books' });
  await add({ customerId: 'other', endpointId: 'foreign' });
  const [{ eventId } = { eventId: '' }] = await place('42');
  await work();
  expect(requests.map(({ url }) => url).toSorted()).toEqual(['/books', '/shop']);
  for (const { headers, body } of requests) {
    expect(JSON.parse(body)).toMatchObject({ type: 'order.placed', data: { orderId: '42' } });
    const sentAt = Number(headers['webhook-timestamp']) * 1_000;
    expect(headers).toMatchObject(signedHeaders([SECRET], `msg_${eventId}`, body, sentAt));
  }
  expect(queue.messages()).toEqual([]);
});

test('a failed webhook is sent again with its id, and a success resets the failures', async () => {
  let calls = 0;
  const { add, place, work, requests, endpoint } = await system(() => {
    calls += 1;
    return calls < 3 ? 500 : 204;
  });
  await add({ failures: 5 });
  await place('42');
  await work();
  expect(requests).toHaveLength(3);
  expect(new Set(requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(endpoint()).toMatchObject({ state: 'enabled', failures: 0 });
});

test.each([
  ['410 Gone', 410, 0],
  ['the 20th failure', 503, 19],
  ['the 20th failure, a redirect,', 302, 19],
])(
  '%s disables the endpoint: its webhooks wait, and are sent once when it is enabled',
  async (_what, status, failures) => {
    let current = status;
    const { add, place, work, requests, endpoint, waiting, table, webhooks, queue } = await system(
      () => current,
    );
    await add({ failures });
    for (const orderId of ['1', '2', '3']) {
      await place(orderId);
      await work();
    }
    expect(requests).toHaveLength(1);
    expect(endpoint()).toMatchObject({ state: 'disabled' });
    expect(waiting()).toHaveLength(3);
    expect(queue.messages()).toEqual([]);

    current = 200;
    await enableEndpoint(table, webhooks, SHOP);
    await work();
    const sent = requests
      .slice(1)
      .map(({ body }) => (JSON.parse(body) as { data: { orderId: string } }).data.orderId);
    expect(sent.toSorted()).toEqual(['1', '2', '3']);
    const again = requests.slice(1).find(({ body }) => body === requests[0]?.body);
    expect(again?.headers['webhook-id']).toBe(requests[0]?.headers['webhook-id']);
    expect([waiting(), endpoint()?.state]).toEqual([[], 'enabled']);
  },
);

describe('no webhook is sent', () => {
  test.each([
    ['to a disabled endpoint that discards', { state: 'disabled', whenDisabled: 'discard' }],
    ['to a deleted endpoint', undefined],
  ])('%s', async (_what, change) => {
    const { add, place, work, requests, waiting, queue, table } = await system(() => 200);
    await add();
    await place('42');
    await work(1);
    if (change === undefined) await table.write({ Delete: { Key: endpointKey(SHOP) } });
    else await add(change);
    await work();
    expect([requests, waiting(), queue.messages(), queue.deadLetters()]).toEqual([[], [], [], []]);
  });
});

test('a webhook does not wait at an endpoint that was enabled meanwhile', async () => {
  const { add, place, work, requests, waiting, table } = await system(() => 200);
  await add({ state: 'disabled' });
  await place('42');
  const get = table.get.bind(table);
  let reads = 0;
  table.get = async (...read) => {
    const item = await get(...read);
    if (item?.PK === 'WEBHOOKS#acme' && ++reads === 1) await add();
    return item;
  };
  await work();
  expect(requests).toHaveLength(1);
  expect(waiting()).toEqual([]);
});

test('the Retry-After of a 429 is kept, and does not count as a failure', async () => {
  let calls = 0;
  const { add, place, work, requests, endpoint } = await system(
    () => {
      calls += 1;
      return calls < 25 ? 429 : 200;
    },
    { 'retry-after': '60' },
  );
  await add();
  await place('42');
  await work();
  expect(requests).toHaveLength(25);
  expect(endpoint()).toMatchObject({ state: 'enabled', failures: 0 });
});

test('whatever crashes, a webhook is sent, and not again once that is stored', async () => {
  const endpoint = { ...endpointKey(SHOP), ...SHOP, url: 'https://hooks.example/', secrets: [SECRET] };
  const data = { ...SHOP, webhookId: 'msg_1', body: '{}' };
  const { crashPoints } = await explore(
    ({ table }, { sent }: { sent: string[] }) =>
      sendWebhook(table, async (_url, { headers }) => {
        sent.push(headers['webhook-id'] ?? 'none');
        return { status: 200, headers: {} };
      }),
    {
      event: WebhookQueued.create({ aggregateId: 'shop', data }),
      items: [{ ...endpoint, state: 'enabled', whenDisabled: 'wait', failures: 0 }],
      deviations: 1,
      world: () => ({ sent: [] as string[] }),
      check: (_table, { sent }) => expect(new Set(sent)).toEqual(new Set(['msg_1'])),
    },
  );
  expect(crashPoints).toBeGreaterThan(5);
});
