import { describe, expect, test, vi } from 'vitest';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { HEARTBEAT } from '../../lambdas/runtime/events/heartbeat-event.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { lambdaContext } from '../../testing/index.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../support/runtime-rig.ts';

const config = { ...relayConfig, sources: ['things'] };

/** A rig whose relay publishes `things` only, and what its sweep and its stream function do there. */
function guarded() {
  const parts = rig();
  const { clock } = parts;
  const sweep = createSweepPass({ ...parts, config });
  const stream = createRelayStream({ ...parts, config });
  return {
    ...parts,
    sweep: () => runThrough(clock, sweep(clock.now() + 60_000)),
    stream: () => runThrough(clock, stream(parts.streamEvent() as Parameters<typeof stream>[0])),
    rowsOf: (source: string) => parts.rows().filter((row) => row.source === source),
  };
}

describe('rows that claim an undeclared source', () => {
  const forge = (parts: ReturnType<typeof rig>, count: number) =>
    parts.outbox.commit({ events: Array.from({ length: count }, (_, n) => parts.happenedOf('bank', n)) });

  test('the stream relay publishes their neighbors, and neither publishes, changes nor retries them', async () => {
    const parts = guarded();
    await forge(parts, 30);
    await parts.outbox.commit({ events: Array.from({ length: 30 }, (_, n) => parts.happened(n)) });
    const before = parts.rowsOf('bank');
    expect(await parts.stream()).toEqual({ batchItemFailures: [] });
    expect(new Set(parts.bus.published().map(({ source }) => source))).toEqual(new Set(['things']));
    expect(parts.bus.published()).toHaveLength(30);
    expect(parts.rowsOf('bank')).toEqual(before);
    expect(parts.telemetry.lines()).toContainEqual(
      expect.objectContaining({
        level: 'error',
        extra: expect.objectContaining({ events: 30, sources: ['bank'] }),
      }),
    );
  });

  test('wait through every sweep, counted and with their age left out, while their neighbors are published at once', async () => {
    const parts = guarded();
    await forge(parts, 40); // in front of the others
    await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
    const before = parts.rowsOf('bank');
    await parts.clock.advance(2 * MINUTE_MS);
    expect(await parts.sweep()).toMatchObject({
      published: 3,
      pending: 40,
      undeclared: 40,
      oldestPendingMs: 0,
    });
    for (let pass = 0; pass < 3; pass += 1) {
      await parts.clock.advance(MINUTE_MS);
      expect(await parts.sweep()).toMatchObject({
        published: 0,
        pending: 40,
        undeclared: 40,
        complete: true,
      });
    }
    expect(parts.rowsOf('bank')).toEqual(before);
    const tried = parts.bus.calls().flatMap(({ entries }) => entries.map(({ source }) => source));
    expect(tried).toEqual(['things', 'things', 'things']);
  });

  test('the next sweep publishes them once their source is declared, regardless of their age', async () => {
    const parts = guarded();
    await forge(parts, 5);
    for (let pass = 0; pass < 4; pass += 1) {
      await parts.clock.advance(15 * MINUTE_MS);
      await parts.sweep();
    }
    const declared = createSweepPass({ ...parts, config: { ...config, sources: ['bank', 'things'] } });
    expect(await runThrough(parts.clock, declared(parts.clock.now() + 60_000))).toMatchObject({
      published: 5,
      pending: 0,
      undeclared: 0,
    });
  });
});

describe('a function that publishes what it does not declare', () => {
  const outboxOf = (publishes: readonly string[], service = 'things') => {
    const parts = rig();
    return {
      ...parts,
      outbox: createOutbox({ ...parts, config: { ...consumerConfig, service, publishes } }),
    };
  };

  test.each([
    ['no events', [], 'things', 'Add ThingHappened to `publishes`'],
    ['other events', ['ThingLost'], 'things', 'this function of things publishes ThingLost'],
    ['the events of another service', ['ThingHappened'], 'bank', 'Only things may publish it'],
  ])(
    'a function that declares %s is refused before anything is written',
    async (_what, publishes, service, message) => {
      const { outbox, happened, memory } = outboxOf(publishes, service);
      const writes = [{ Put: { Item: { PK: 'THING#1', SK: 'THING' } } }];
      const refused = { code: 'NOT_DECLARED', message: expect.stringContaining(message) };
      await expect(outbox.commit({ writes, events: [happened(1)] })).rejects.toMatchObject(refused);
      await expect(outbox.entries([happened(1)])).rejects.toMatchObject(refused);
      expect(memory.items()).toEqual([]);
    },
  );

  test('a leased and a transactional handler are refused an undeclared event; one that declares it may publish it', async () => {
    for (const publishes of [[], ['ThingHappened']]) {
      for (const kind of ['leased', 'transactional'] as const) {
        const parts = rig();
        const events = [parts.happened(2)];
        const handler =
          kind === 'leased'
            ? leased(ThingHappened, async (_event, ctx) => ctx.commit({ events }))
            : transactional(ThingHappened, async () => ({ events }));
        const consume = createConsumer({
          ...parts,
          config: { ...consumerConfig, publishes },
          handlers: [handler],
        });
        parts.bus.routeTo(parts.queue);
        await parts.outbox.commit({ events: [parts.happened(1)] });
        const stream = createRelayStream({ ...parts, config });
        await stream(parts.streamEvent() as Parameters<typeof stream>[0]);
        await runThrough(parts.clock, parts.queue.deliver(consume, 10, lambdaContext(parts)));
        expect(parts.rows()).toHaveLength(publishes.length + 1);
        const processed = parts.memory.items().filter(({ status }) => status === 'PROCESSED');
        expect(processed).toHaveLength(publishes.length);
      }
    }
  });
});

test('an event of another service never runs a handler, even if type and payload are right', async () => {
  const parts = rig();
  const handle = vi.fn();
  const consume = createConsumer({
    ...parts,
    config: consumerConfig,
    handlers: [leased(ThingHappened, handle)],
  });
  parts.bus.routeTo(parts.queue);
  await parts.outbox.commit({ events: [parts.happenedOf('inventory', 1)] });
  const stream = createRelayStream({ ...parts, config: relayConfig });
  await stream(parts.streamEvent() as Parameters<typeof stream>[0]);
  expect(parts.bus.published()).toMatchObject([{ source: 'inventory', detailType: 'ThingHappened' }]);
  await runThrough(parts.clock, parts.queue.deliver(consume, 10, lambdaContext(parts)));
  expect(handle).not.toHaveBeenCalled();
  const rejected = parts.memory.items().find(({ status }) => status === 'REJECTED');
  expect(rejected).toMatchObject({
    reason: 'WRONG_SOURCE',
    lastError: expect.stringContaining('"inventory"'),
  });
});

/** Delivers a forged message to a consumer, and returns the inbox row that it leaves. */
async function forged(
  { source, type }: { readonly source: string; readonly type: string },
  envelope: object,
  config: Partial<typeof consumerConfig> = {},
) {
  const parts = rig();
  const handle = vi.fn();
  const consume = createConsumer({
    ...parts,
    config: { ...consumerConfig, ...config },
    handlers: [leased(ThingHappened, handle)],
  });
  const detail = {
    eventId: mintEventId(parts.clock.now(), 1),
    type,
    version: 2,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    occurredAt: parts.clock.now(),
    correlationId: 'chain',
    data: { n: 1 },
    ...envelope,
  };
  parts.queue.send({ source, 'detail-type': type, detail });
  await runThrough(parts.clock, parts.queue.deliver(consume, 10, lambdaContext(parts)));
  return { row: parts.memory.items().find(({ status }) => status !== undefined), handle };
}

test('a heartbeat that a sender of an existing queue forges is rejected', async () => {
  const { row } = await forged(HEARTBEAT, { version: 1 }, { existingQueue: true });
  expect(row).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_TYPE' });
  expect((await forged(HEARTBEAT, { version: 1 })).row).toMatchObject({ status: 'PROCESSED' });
});

test.each([[-5], [0], [1.5], ['3'], [null], [Number.MAX_SAFE_INTEGER + 1]])(
  'an event whose hops are %j does not restart the count of its chain: its message is rejected',
  async (hops) => {
    const { row, handle } = await forged(ThingHappened, { hops });
    expect(row).toMatchObject({
      status: 'REJECTED',
      reason: 'UNREADABLE_MESSAGE',
      lastError: expect.stringContaining('hops'),
    });
    expect(handle).not.toHaveBeenCalled();
    const valid = await forged(ThingHappened, { hops: 3 });
    expect(valid.handle).toHaveBeenCalledOnce();
  },
);
