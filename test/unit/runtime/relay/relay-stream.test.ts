import { expect, test } from 'vitest';
import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { stream } from './relay-stream-rig.ts';

test('a fresh record is published and marked, without a claim', async () => {
  const parts = rig();
  const updates: string[][] = [];
  const { outbox, happened, rows, publishedIds } = parts;
  const table = {
    ...parts.memory,
    updateEach: async (all: Parameters<typeof parts.memory.updateEach>[0]) => {
      updates.push(all.map((update) => Object.keys(update.set).join()));
      return parts.memory.updateEach(all);
    },
  };
  const now = parts.clock.now();
  const [event] = await outbox.commit({ events: [happened(1)] });
  await expect(stream({ ...parts, table })()).resolves.toEqual({ batchItemFailures: [] });
  expect(publishedIds()).toEqual([event?.eventId]);
  expect(rows()).toMatchObject([{ status: 'PUBLISHED', publishedBy: 'stream', publishedAt: now, schema: 1 }]);
  expect(rows()[0]?.expiresAt).toBe(Math.ceil(now / 1_000) + 7 * 86_400);
  expect(updates).toEqual([['status,publishedAt,publishedBy,expiresAt']]);
});

test('many records go in calls of ten, are marked 25 to a call, and each is published once', async () => {
  const parts = rig();
  for (let n = 0; n < 3; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 40 }, (_, i) => parts.happened(n * 100 + i)) });
  }
  await stream(parts)();
  expect(parts.bus.calls().map((call) => call.entries.length)).toEqual(Array(12).fill(10));
  expect(new Set(parts.publishedIds()).size).toBe(120);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test('records are read as their turn comes: a large batch is never in memory as rows', async () => {
  const parts = rig();
  for (let n = 0; n < 20; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(n * 50 + i)) });
  }
  const event = parts.streamEvent();
  let read = 0;
  const Records = event.Records.map((record) => ({
    ...record,
    dynamodb: {
      ...record.dynamodb,
      get NewImage() {
        read += 1;
        return record.dynamodb?.NewImage;
      },
    },
  }));
  const readAtCall: number[] = [];
  const bus = {
    ...parts.bus,
    put: async (...args: Parameters<typeof parts.bus.put>) => {
      readAtCall.push(read);
      await parts.clock.sleep(5);
      return parts.bus.put(...args);
    },
  };
  await stream({ ...parts, bus })({ Records });
  expect(readAtCall).toHaveLength(100);
  expect(readAtCall.filter((atCall, call) => atCall > 300 + 10 * call)).toEqual([]);
  expect(new Set(parts.publishedIds()).size).toBe(1_000);
});

test.each([{ schema: { N: '2' } }, { encoding: { S: 'zstd' } }])(
  'a record with %j, which this version does not support, is left to the sweep, and its neighbors are published',
  async (newer) => {
    const parts = rig();
    await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
    const [unknown, known] = parts.rows();
    const { Records } = parts.streamEvent();
    for (const { dynamodb } of Records) {
      const image = dynamodb?.NewImage;
      if (image?.SK?.S === unknown?.SK) Object.assign(image ?? {}, newer);
    }
    await expect(stream(parts)({ Records })).resolves.toEqual({ batchItemFailures: [] });
    expect(parts.publishedIds()).toEqual([known?.SK.slice('EVENT#'.length)]);
    expect(parts.rows()).toContainEqual(unknown);
    expect(parts.telemetry.lines()).toMatchObject([{ level: 'warn' }]);
  },
);

test('a row that comes twice in a batch is published once, and marked', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
  const { Records } = parts.streamEvent();
  await stream(parts)({ Records: [...Records, ...Records] });
  expect(parts.publishedIds()).toHaveLength(2);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test("no more calls are in flight than the handler's limit", async () => {
  const parts = rig();
  for (let n = 0; n < 6; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(n * 50 + i)) });
  }
  const most = { put: 0, updateEach: 0 };
  const watched = <A extends unknown[], R>(name: keyof typeof most, call: (...args: A) => Promise<R>) => {
    let underWay = 0;
    return async (...args: A) => {
      underWay += 1;
      most[name] = Math.max(most[name], underWay);
      await parts.clock.sleep(5);
      return call(...args).finally(() => {
        underWay -= 1;
      });
    };
  };
  const { clock, telemetry, memory } = parts;
  const table = { ...memory, updateEach: watched('updateEach', memory.updateEach) };
  const bus = { ...parts.bus, put: watched('put', parts.bus.put) };
  const deps = { config: relayConfig, table, bus, clock, telemetry, concurrency: 3 };
  await runThrough(clock, createRelayStream(deps)(parts.streamEvent()));
  expect(most.put).toBe(3);
  expect(most.updateEach).toBeLessThanOrEqual(3);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test('a record delivered again is claimed first: what is published already stays as it is', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const event = parts.streamEvent();
  const handle = stream(parts);
  await handle(event);
  await parts.clock.advance(6_000);
  await expect(handle(event)).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(1);
});

test('a late record is claimed, published and marked', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(20_000);
  await stream(parts)();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.rows()).toMatchObject([{ status: 'PUBLISHED' }]);
});

test('a record whose row another worker has claimed is left to that worker', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(40_000);
  const [row] = parts.rows();
  const key = { PK: row?.PK ?? '', SK: row?.SK ?? '' };
  await parts.memory.updateEach([
    { key, set: { leaseUntil: parts.clock.now() + 30_000 }, when: { status: 'PENDING' } },
  ]);
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toEqual([]);
});

test('a record of an age that is fresh is not fresh when its lease is nearly over', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const event = parts.streamEvent();
  const image = event.Records[0]?.dynamodb?.NewImage as Record<string, { N: string }>;
  // Born with a lease that the publish could outlive.
  image.leaseUntil = { N: String(parts.clock.now() + 6_000) };
  const claims = await stream(parts)(event);
  expect(claims).toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toEqual([]); // the claim compares with the image, and the row says otherwise
});

test('a producer whose clock is off is noticed', async () => {
  let claims = 0;
  const parts = rig({
    wrap: (memory) => ({
      ...memory,
      updateEach: async (updates) => {
        if (updates.some(({ set }) => 'leaseUntil' in set)) claims += 1;
        return memory.updateEach(updates);
      },
    }),
  });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const event = parts.streamEvent();
  Object.assign(event.Records[0]?.dynamodb ?? {}, {
    ApproximateCreationDateTime: parts.clock.now() / 1_000 + 120,
  });
  await stream(parts)(event);
  expect(parts.telemetry.durations('ClockDifference')).toEqual([120_000]);
  expect(parts.rows()).toMatchObject([{ status: 'PUBLISHED' }]);
  expect(claims).toBe(1); // because its age is implausible
});

test.each([
  ['inserted as PUBLISHED, as in a restored table', { status: { S: 'PUBLISHED' } }, 'INSERT'],
  ['that was modified', {}, 'MODIFY'],
])('a row %s is not published', async (_what, change, eventName) => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const event = parts.streamEvent();
  for (const record of event.Records) {
    Object.assign(record, { eventName });
    Object.assign(record.dynamodb?.NewImage ?? {}, change);
  }
  await expect(stream(parts)(event)).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toEqual([]);
});
