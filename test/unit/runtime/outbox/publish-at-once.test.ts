import { describe, expect, test, vi } from 'vitest';
import { isMailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { createAtOncePublisher } from '../../../../lambdas/runtime/store/dynamo/publish-at-once.ts';
import { systemRandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import type { MemoryBusOptions } from '../../../../testing/index.ts';
import { consumerConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

const TURN_MS = 1_000;

/** A producer that publishes at once. */
function producer(
  options: {
    readonly bus?: MemoryBusOptions;
    readonly table?: (table: Table) => Partial<Table>;
    readonly bornLeaseMs?: number;
  } = {},
) {
  const parts = rig({ bus: options.bus });
  const { clock, telemetry } = parts;
  const table = { ...parts.memory, ...options.table?.(parts.memory) };
  const config = { busName: 'bus', timeoutMs: TURN_MS, publishedRetentionDays: 7 };
  const publishAtOnce = createAtOncePublisher({ config, bus: parts.bus });
  const { bornLeaseMs = 30_000 } = options;
  const outbox = createOutbox({
    config: { ...consumerConfig, bornLeaseMs },
    table,
    clock,
    telemetry,
    publishAtOnce,
  });
  return { ...parts, table, outbox, publishAtOnce };
}

describe('a commit that publishes at once', () => {
  test('has published and marked its events when it returns', async () => {
    const { clock, outbox, happened, publishedIds, rows, telemetry, bus } = producer();
    const now = clock.now();
    const [event] = await outbox.commit({ events: [happened(1)] });
    expect(publishedIds()).toEqual([event?.eventId]);
    expect(JSON.parse(bus.published()[0]?.detail ?? '')).toEqual(event);
    expect(rows()).toMatchObject([
      {
        status: 'PUBLISHED',
        publishedBy: 'producer',
        publishedAt: now,
        producerUntil: now + TURN_MS,
        expiresAt: Math.ceil(now / 1_000) + 7 * 86_400,
        attempts: 0,
      },
    ]);
    expect(telemetry.counted('EventsPublished')).toBe(1);
    expect(telemetry.counted('BusFailures')).toBe(0);
    expect(telemetry.lines()).toEqual([]);
  });

  test('waits for its marks, which are written at the same time', async () => {
    const { clock, outbox, happened, rows } = producer({
      table: (table) => ({
        updateEach: async (updates) => {
          await clock.sleep(300);
          return table.updateEach(updates);
        },
      }),
    });
    const startedAt = clock.now();
    await runThrough(clock, outbox.commit({ events: Array.from({ length: 25 }, (_, n) => happened(n)) }));
    expect(rows().filter(({ status }) => status === 'PUBLISHED')).toHaveLength(25);
    expect(clock.now() - startedAt).toBeLessThan(600);
  });

  test('starts no timer without events', async () => {
    const { clock, outbox, bus } = producer();
    const sleep = vi.spyOn(clock, 'sleep');
    await outbox.commit({ writes: [{ Put: { Item: { PK: 'ORDER#1', SK: 'ORDER' } } }] });
    expect(sleep).not.toHaveBeenCalled();
    expect(bus.calls()).toEqual([]);
  });

  test('publishes many events in calls of ten', async () => {
    const { outbox, happened, publishedIds, rows, bus } = producer();
    await outbox.commit({ events: Array.from({ length: 25 }, (_, n) => happened(n)) });
    expect(bus.calls().map(({ entries }) => entries.length)).toEqual([10, 10, 5]);
    expect(new Set(publishedIds()).size).toBe(25);
    expect(rows().every(({ status }) => status === 'PUBLISHED')).toBe(true);
  });

  test.each([
    ['ECONNRESET', 2, 'PUBLISHED'],
    ['EPIPE', 2, 'PUBLISHED'],
    ['ETIMEDOUT', 1, 'PENDING'],
  ])('tries once more on a connection that was closed while idle: %s', async (code, calls, status) => {
    let made = 0;
    const failCall = () => {
      made += 1;
      return made === 1 ? { error: Object.assign(new Error(code), { code, name: code }) } : undefined;
    };
    const { outbox, happened, rows } = producer({ bus: { failCall } });
    await outbox.commit({ events: [happened(1)] });
    expect(made).toBe(calls);
    expect(rows()).toMatchObject([{ status, attempts: 0 }]);
  });

  test('does not try again at the end of its turn', async () => {
    const { clock, outbox, happened, bus, rows } = producer();
    const put = vi.fn(async () => {
      await clock.sleep(TURN_MS);
      throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    });
    bus.put = put;
    await runThrough(clock, outbox.commit({ events: [happened(1)] }));
    await clock.advance(TURN_MS);
    expect(put).toHaveBeenCalledTimes(1);
    expect(rows()).toMatchObject([{ status: 'PENDING' }]);
  });

  test('publishes nothing if its transaction is cancelled', async () => {
    const { outbox, happened, bus } = producer();
    const Item = { PK: 'ORDER#1', SK: 'ORDER' };
    const writes = [{ Put: { Item, ConditionExpression: 'attribute_not_exists(PK)' } }];
    await outbox.commit({ writes });
    await expect(outbox.commit({ writes, events: [happened(1)] })).rejects.toSatisfy((error) =>
      isMailroomError(error, 'TRANSACTION_CANCELLED'),
    );
    expect(bus.calls()).toEqual([]);
  });

  test('marks only the entries that the bus accepted, and counts no attempt for the others', async () => {
    const bus: MemoryBusOptions = {
      failEntry: ({ detail }) =>
        detail.includes('"n":2') ? { code: 'MalformedDetail', message: 'no' } : undefined,
    };
    const { outbox, happened, rows, telemetry } = producer({ bus });
    await expect(outbox.commit({ events: [happened(1), happened(2)] })).resolves.toHaveLength(2);
    expect(rows().map(({ status, attempts }) => [status, attempts])).toEqual(
      expect.arrayContaining([
        ['PENDING', 0],
        ['PUBLISHED', 0],
      ]),
    );
    expect(telemetry.counted('BusFailures')).toBe(1);
    const pending = rows().filter(({ status }) => status === 'PENDING');
    const eventIds = pending.map(({ SK }) => SK.slice('EVENT#'.length));
    expect(telemetry.lines()).toMatchObject([
      { level: 'warn', extra: { eventIds, error: { code: 'MalformedDetail' } } },
    ]);
  });

  test('does not mark an entry without a result, and reports it', async () => {
    const { outbox, happened, rows, telemetry, bus } = producer();
    bus.put = async () => [];
    await outbox.commit({ events: [happened(1)] });
    expect(rows()).toMatchObject([{ status: 'PENDING' }]);
    const [{ SK = '' } = {}] = rows();
    const message = expect.stringContaining(`no result for event ${SK.slice('EVENT#'.length)}`);
    expect(telemetry.lines()).toMatchObject([
      { level: 'warn', extra: { error: { code: 'NO_ANSWER', message } } },
    ]);
  });

  test('returns although the bus fails, and leaves its rows as they were born', async () => {
    const bus: MemoryBusOptions = { failCall: () => ({ error: new Error('the bus is down') }) };
    const { clock, outbox, happened, rows, telemetry, bus: down } = producer({ bus });
    const now = clock.now();
    await expect(outbox.commit({ events: [happened(1)] })).resolves.toHaveLength(1);
    expect(down.calls()).toHaveLength(1);
    expect(rows()).toMatchObject([{ status: 'PENDING', attempts: 0, leaseUntil: now + 30_000 }]);
    expect(telemetry.counted('BusFailures')).toBe(1);
  });

  test('returns although the table refuses every mark', async () => {
    const { clock, outbox, happened, rows, publishedIds } = producer({
      table: () => ({ updateEach: () => Promise.reject(new Error('throttled')) }),
    });
    await expect(runThrough(clock, outbox.commit({ events: [happened(1)] }))).resolves.toHaveLength(1);
    expect(publishedIds()).toHaveLength(1);
    expect(rows()).toMatchObject([{ status: 'PENDING', attempts: 0 }]);
  });

  test('returns at the end of its turn if the bus does not answer', async () => {
    const { clock, outbox, happened, bus, rows } = producer();
    const timeouts: number[] = [];
    bus.put = (_entries, timeoutMs) => {
      timeouts.push(timeoutMs);
      return new Promise(() => {});
    };
    const startedAt = clock.now();
    await runThrough(clock, outbox.commit({ events: [happened(1)] }));
    expect(timeouts).toEqual([TURN_MS]);
    expect(clock.now() - startedAt).toBe(TURN_MS);
    expect(rows()).toMatchObject([{ status: 'PENDING' }]);
  });

  test('does not publish after a transaction that took its whole turn', async () => {
    const { clock, outbox, happened, bus, rows } = producer({
      table: (table) => ({
        transact: async (...args) => {
          await clock.sleep(TURN_MS);
          await table.transact(...args);
        },
      }),
    });
    await runThrough(clock, outbox.commit({ events: [happened(1)] }));
    expect(bus.calls()).toEqual([]);
    expect(rows()).toMatchObject([{ status: 'PENDING' }]);
  });

  test('gives the call to the bus the rest of its turn', async () => {
    const { clock, outbox, happened, bus } = producer({
      table: (table) => ({
        transact: async (...args) => {
          await clock.sleep(400);
          await table.transact(...args);
        },
      }),
    });
    await runThrough(clock, outbox.commit({ events: [happened(1)] }));
    expect(bus.calls().map(({ timeoutMs }) => timeoutMs)).toEqual([TURN_MS - 400]);
  });

  test('has a turn that ends with that of the event that it made first', async () => {
    const { clock, outbox, rows, bus } = producer();
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value: unknown) => {
          const data = value as { n: number };
          await clock.sleep(300 * data.n);
          return { value: data };
        },
      },
    } as const;
    const SlowlyValidated = defineEvent({ ...ThingHappened, schema });
    const event = (n: number) => SlowlyValidated.create({ aggregateId: 'thing-1', data: { n } });
    await runThrough(clock, outbox.commit({ events: [event(1), event(2)] }));
    const ends = rows().map(({ producerUntil = 0 }) => producerUntil);
    const [first = 0, second = 0] = ends.sort((a, b) => a - b); // the rows are sorted by their random shard
    expect(second - first).toBe(300);
    const [published] = bus.published();
    expect(bus.calls().map(({ timeoutMs }) => timeoutMs)).toEqual([first - (published?.publishedAt ?? 0)]);
  });

  test('has a turn that ends a clock margin before its lease, however short that is', async () => {
    const { clock, outbox, happened, rows } = producer({ bornLeaseMs: 2_500 });
    const now = clock.now();
    await outbox.commit({ events: [happened(1)] });
    expect(rows()).toMatchObject([{ producerUntil: now + 500, leaseUntil: now + 2_500 }]);
  });

  test('leaves a row that was DEAD meanwhile to its operator', async () => {
    const parts = producer({
      table: (table) => ({
        updateEach: async (updates) => {
          const [row] = parts.rows();
          if (row?.status === 'PENDING')
            await table.updateEach(updates.map((one) => ({ ...one, set: { status: 'DEAD' } })));
          return table.updateEach(updates);
        },
      }),
    });
    await parts.outbox.commit({ events: [parts.happened(1)] });
    expect(parts.rows()).toMatchObject([{ status: 'DEAD' }]);
  });
});

describe('a publisher', () => {
  test('does not publish a row without a turn', async () => {
    const { clock, table, outbox, publishAtOnce, happened, bus } = producer();
    const entries = await outbox.entries([happened(1)]);
    await publishAtOnce.publish(entries, { table, clock, random: systemRandomBytes });
    expect(bus.calls()).toEqual([]);
  });

  test('does not throw although its telemetry does', async () => {
    const { clock, memory, publishAtOnce, telemetry, happened, outbox } = producer({
      bus: { failCall: () => ({ error: new Error('the bus is down') }) },
    });
    const published = vi.spyOn(publishAtOnce, 'publish').mockResolvedValue();
    await outbox.commit({ events: [happened(1)] });
    const [[entries] = [[]]] = published.mock.calls;
    published.mockRestore();
    vi.spyOn(telemetry, 'count').mockImplementation(() => {
      throw new Error('no metrics');
    });
    const parts = { table: memory, clock, random: systemRandomBytes, telemetry };
    await expect(publishAtOnce.publish(entries, parts)).resolves.toBeUndefined();
    expect(telemetry.count).toHaveBeenCalledWith('BusFailures');
  });
});

test('the entries of a transaction of your own are left to the relay', async () => {
  const { outbox, happened, bus } = producer();
  const [entry] = await outbox.entries([happened(1)]);
  expect(entry?.Put.Item).not.toHaveProperty('producerUntil');
  expect(bus.calls()).toEqual([]);
});

test('the row of a producer that does not publish at once has no turn', async () => {
  const { outbox, happened, rows } = rig();
  await outbox.commit({ events: [happened(1)] });
  expect(rows()[0]).not.toHaveProperty('producerUntil');
});
