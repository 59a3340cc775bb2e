import fc from 'fast-check';
import { expect, it } from 'vitest';
import { z } from 'zod/mini';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import { lambdaContext, memoryBus, memoryQueue, memoryTable, memoryTelemetry } from '../../testing/index.ts';
import { consumerConfig, relayConfig } from '../support/runtime-rig.ts';
import { eagerClock, settled } from './support/eager-clock.ts';
import { flakyTable, type TableMoods, tableMoods } from './support/flaky-table.ts';
import { runs, seededBytes } from './support/runs.ts';

const Ordered = defineEvent({
  source: consumerConfig.service,
  type: 'Ordered',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ order: z.int() }),
});

/** How the bus answers the next calls: well, not at all, or not although it published. */
const busMoods = fc.array(fc.constantFrom('well', 'down', 'lost'), { maxLength: 8, size: 'max' });

it('an event whose transaction happened has its work done exactly once, and no other has, however calls fail on the way', async () => {
  const settings = fc.record({
    kind: fc.constantFrom('leased' as const, 'transactional' as const),
    producer: tableMoods,
    relay: tableMoods,
    consumer: tableMoods,
    bus: busMoods,
    seed: fc.nat(),
  });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 5 }), settings, async (count, setting) => {
      const { place, relay, consume, item, rows, left } = system(setting);
      await place(count);
      await relay();
      await consume();
      for (let order = 0; order < count; order += 1) {
        const happened = item(orderKey(order)) !== undefined;
        expect(item(workKey(order))?.n ?? 0).toBe(happened ? 1 : 0);
      }
      expect(rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
      expect(left()).toBe(0);
    }),
    runs(20),
  );
});

function orderKey(order: number) {
  return { PK: `ORDER#${order}`, SK: 'ORDER' };
}

function workKey(order: number) {
  return { PK: `WORK#${order}`, SK: 'WORK' };
}

/** Does the work of an order once more. */
function work(order: number) {
  const Update = {
    Key: workKey(order),
    UpdateExpression: 'ADD n :one',
    ExpressionAttributeValues: { ':one': 1 },
  };
  return { writes: [{ Update }] };
}

function handlerOf(kind: 'leased' | 'transactional') {
  return kind === 'leased'
    ? leased(Ordered, (event, ctx) => ctx.commit(work(event.data.order)))
    : transactional(Ordered, async (event) => work(event.data.order));
}

interface Setting {
  readonly kind: 'leased' | 'transactional';
  /** How the calls of the table go for each of them. */
  readonly producer: TableMoods;
  readonly relay: TableMoods;
  readonly consumer: TableMoods;
  readonly bus: readonly string[];
  readonly seed: number;
}

/** A producer, its relay and a consumer, with a table and a bus that fail now and then. */
function system({ kind, producer, relay, consumer, bus: moods, seed }: Setting) {
  const clock = eagerClock();
  const memory = memoryTable({ clock });
  const queue = memoryQueue({ clock, visibilityTimeoutMs: 60_000 });
  const bus = memoryBus({
    clock,
    failCall: ({ number }) => {
      const mood = moods[number - 1] ?? 'well';
      const error = new Error('connect ETIMEDOUT');
      return mood === 'well' ? undefined : { error, published: mood === 'lost' };
    },
  });
  bus.routeTo(queue);
  const deps = { clock, random: seededBytes(seed), telemetry: memoryTelemetry() };
  const config = { ...consumerConfig, maxAttempts: 1_000 };
  const outbox = createOutbox({ ...deps, config, table: flakyTable(memory, clock, producer) });
  const relayDeps = { ...deps, config: relayConfig, table: flakyTable(memory, clock, relay), bus };
  const stream = createRelayStream(relayDeps);
  const sweep = createSweepPass(relayDeps);
  const table = flakyTable(memory, clock, consumer);
  const handle = createConsumer({ ...deps, config, table, queue, handlers: [handlerOf(kind)] });

  return {
    item: memory.item,
    rows: () => memory.items().filter(({ PK }) => String(PK).startsWith('OUTBOX#')) as unknown as OutboxRow[],
    left: () => queue.messages().length,
    /** Places orders; the result of a commit is not read. */
    place: async (count: number) => {
      for (let order = 0; order < count; order += 1) {
        const events = [Ordered.create({ aggregateId: String(order), data: { order } })];
        const writes = [{ Put: { Item: orderKey(order) } }];
        await settled(outbox.commit({ writes, events })).catch(() => {});
      }
    },
    /** The stream once, whatever it hands back; then the sweep, minute by minute. */
    relay: async () => {
      const Records = memory.stream().filter(({ dynamodb }) => dynamodb?.Keys?.PK?.S?.startsWith('OUTBOX#'));
      await settled(stream({ Records })).catch(() => {});
      for (let minute = 0; minute < 40; minute += 1) {
        clock.moveTo(clock.now() + MINUTE_MS);
        await settled(sweep(clock.now() + MINUTE_MS)).catch(() => {});
      }
    },
    consume: async () => {
      for (let round = 0; round < 200 && queue.messages().length > 0; round += 1) {
        await settled(queue.deliver(handle, 10, lambdaContext({ clock })));
        const next = Math.min(...queue.messages().map(({ visibleAt }) => visibleAt));
        if (Number.isFinite(next)) clock.moveTo(Math.max(clock.now(), next));
      }
    },
  };
}
