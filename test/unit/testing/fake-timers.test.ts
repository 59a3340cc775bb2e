import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { createConsumer } from '../../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../../lambdas/runtime/store/dynamo/outbox.ts';
import {
  consumerConfig,
  explore,
  lambdaContext,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryRelay,
  memoryTable,
  memoryTelemetry,
  producerConfig,
} from '../../../testing/index.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';

const NOW = 1_800_000_000_000;
const happened = ThingHappened.create({ aggregateId: '1', data: { n: 1 } });

describe('while the timers of a test are faked,', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: NOW });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([
    ['a manual clock', () => manualClock(NOW)],
    ['the system clock', () => undefined],
  ])('an event passes the whole path with %s', async (_what, clockOf) => {
    const clock = clockOf();
    const table = memoryTable({ clock });
    const bus = memoryBus({ clock });
    const queue = memoryQueue({ clock });
    bus.routeTo(queue);
    const parts = { table, bus, queue, clock, telemetry: memoryTelemetry() };
    const charged: number[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.once('charge', async () => charged.push(Date.now()));
    });
    const service = ThingHappened.source;
    const consume = createConsumer({ ...parts, config: consumerConfig({ service }), handlers: [handler] });
    await createOutbox({ ...parts, config: producerConfig({ service }) }).commit({ events: [happened] });
    await memoryRelay(parts)();
    const context = lambdaContext({ clock });
    expect(await queue.deliver(consume, 10, context)).toEqual({ received: 1, failed: [] });
    expect(charged).toEqual([NOW]);
  });

  test('explore ends', async () => {
    const charge = vi.fn(async () => ({ id: 1 }));
    const handler = leased(ThingHappened, async (_event, ctx) => ctx.once('charge', charge));
    const report = await explore(handler, { event: happened, deviations: 1, check: () => {} });
    expect(report.schedules).toBeGreaterThan(10);
  });
});
