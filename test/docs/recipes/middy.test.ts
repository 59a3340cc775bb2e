import { expect, test } from 'vitest';
import {
  type ConsumerHandler,
  createConsumer,
  leased,
  PoisonMessage,
} from '../../../lambdas/runtime/index.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../support/runtime-rig.ts';
import { codeOf } from '../page-module.ts';

interface Parts {
  readonly loadSecret: () => Promise<void>;
  readonly report: (failed: number) => void;
}

const { withMiddleware } = await codeOf<{
  withMiddleware<H extends ConsumerHandler>(consumer: H, parts: Parts): H;
}>('docs/recipes/middy.md', 'src/with-middleware.ts');

function shop(loadSecret: () => Promise<void>) {
  const parts = rig();
  const { clock, memory: table, queue, telemetry, happened, outbox } = parts;
  const reported: number[] = [];
  const fails = leased(ThingHappened, async ({ data }) => {
    if (data.n === 2) throw new PoisonMessage('2 is not payable');
  });
  const consumer = createConsumer({
    config: consumerConfig,
    table,
    queue,
    handlers: [fails],
    clock,
    telemetry,
  });
  const handler = withMiddleware(consumer, { loadSecret, report: (failed) => reported.push(failed) });
  return {
    ...parts,
    handler,
    reported,
    deliver: async () => {
      const events = await outbox.commit({ events: [1, 2, 3].map(happened) });
      for (const detail of events) queue.send({ source: 'things', 'detail-type': detail.type, detail });
      await runThrough(clock, queue.deliver(handler, 10, lambdaContext({ clock })));
    },
  };
}

test('the secret is there before the first message, and only the message that failed is shown again', async () => {
  const order: string[] = [];
  const { deliver, queue, reported, telemetry } = shop(async () => void order.push('secret'));
  await deliver();
  expect(order).toEqual(['secret']);
  expect(reported).toEqual([1]);
  expect(queue.messages()).toHaveLength(1);
  expect(telemetry.counted('MessagesProcessed')).toBe(2);
  expect(telemetry.counted('MessagesRejected')).toBe(1);
});

test('a middleware that throws leaves the whole batch in the queue, without an attempt', async () => {
  const { deliver, queue, memory, telemetry } = shop(() => Promise.reject(new Error('no secret')));
  await deliver().catch(() => {});
  expect(queue.messages()).toHaveLength(3);
  expect(telemetry.counted('MessagesReceived')).toBe(0);
  expect(memory.items().filter(({ PK }) => PK.startsWith('INBOX#'))).toEqual([]);
});

test('the check of handlers at synth sees through the wrapper', () => {
  const { source, type } = ThingHappened;
  expect(shop(async () => {}).handler.handles).toEqual([{ source, type }]);
});
