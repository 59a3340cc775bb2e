import { expect, test } from 'vitest';
import { createOutbox } from '../../../lambdas/runtime/outbox.ts';
import { createRelayStream } from '../../../lambdas/runtime/relay-stream.ts';
import { bench, consumerConfig, relayConfig, runThrough } from '../../support/runtime-bench.ts';

type Bench = ReturnType<typeof bench>;

function stream(parts: Bench) {
  const { table, bus, clock, telemetry } = parts;
  const handler = createRelayStream({ config: relayConfig, table, bus, clock, telemetry });
  return (event = parts.streamEvent()) => runThrough(clock, handler(event));
}

test('a fresh record is published and marked, without a claim', async () => {
  const parts = bench();
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
  const parts = bench();
  for (let n = 0; n < 3; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 40 }, (_, i) => parts.happened(n * 100 + i)) });
  }
  await stream(parts)();
  expect(parts.bus.calls().map((call) => call.entries.length)).toEqual(Array(12).fill(10));
  expect(new Set(parts.publishedIds()).size).toBe(120);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test('records are read as their turn comes: a large batch is never in memory as rows', async () => {
  const parts = bench();
  for (let n = 0; n < 20; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(n * 50 + i)) });
  }
  const event = parts.streamEvent();
  let read = 0;
  const Records = event.Records.map((record) => ({
    ...record,
    get dynamodb() {
      read += 1;
      return record.dynamodb;
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

test('a row that comes twice in a batch is published once, and marked', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
  const { Records } = parts.streamEvent();
  await stream(parts)({ Records: [...Records, ...Records] });
  expect(parts.publishedIds()).toHaveLength(2);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test('no more calls are under way at once than the handler is told', async () => {
  const parts = bench();
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
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const event = parts.streamEvent();
  const handle = stream(parts);
  await handle(event);
  await parts.clock.advance(6_000);
  await expect(handle(event)).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(1);
});

test('a late record is claimed, published and marked', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(20_000);
  await stream(parts)();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.rows()).toMatchObject([{ status: 'PUBLISHED' }]);
});

test('a record whose row somebody else has claimed is left to them', async () => {
  const parts = bench();
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
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const event = parts.streamEvent();
  const image = event.Records[0]?.dynamodb?.NewImage as Record<string, { N: string }>;
  // Born with a lease that the publish could outlive.
  image.leaseUntil = { N: String(parts.clock.now() + 6_000) };
  const claims = await stream(parts)(event);
  expect(claims).toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toEqual([]); // the claim compares with the image, and the row says otherwise
});

test('a refused entry is DEAD with its error and a pointer; its neighbours are published', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":3')
          ? { code: 'MalformedDetail', message: 'Detail 3 is malformed' }
          : undefined,
    },
  });
  await parts.outbox.commit({ events: [1, 2, 3, 4].map(parts.happened) });
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(3);
  const dead = parts.rows().filter((row) => row.status === 'DEAD');
  expect(dead).toMatchObject([
    {
      attempts: 1,
      lastError: 'Detail 3 is malformed',
      fingerprint: 'relay MalformedDetail: Detail # is malformed',
    },
  ]);
  expect(dead[0]).not.toHaveProperty('expiresAt');
  const eventId = dead[0]?.SK.slice(6);
  expect(parts.memory.items().filter((item) => String(item.PK).startsWith('DEAD#'))).toMatchObject([
    { SK: eventId, type: 'ThingHappened', fingerprint: dead[0]?.fingerprint },
  ]);
});

test('a failing entry of unknown cause counts an attempt and waits its backoff', async () => {
  const parts = bench({ bus: { failEntry: () => ({ code: 'SomethingNew', message: 'what?' }) } });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.rows()).toMatchObject([{ status: 'PENDING', attempts: 1, lastError: 'what?' }]);
  const wait = (parts.rows()[0]?.leaseUntil ?? 0) - parts.clock.now();
  expect(wait).toBeGreaterThan(2_000);
  expect(wait).toBeLessThanOrEqual(5_000);
});

test('a whole call refused as invalid is made once per entry, and what fails alone is DEAD', async () => {
  const invalid = Object.assign(new Error('1 validation error detected'), { name: 'ValidationException' });
  const parts = bench({
    bus: {
      failCall: (call) =>
        call.entries.some((entry) => entry.detail.includes('"n":2')) ? { error: invalid } : undefined,
    },
  });
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  await stream(parts)();
  expect(parts.publishedIds()).toHaveLength(2);
  expect(
    parts
      .rows()
      .map((row) => row.status)
      .sort(),
  ).toEqual(['DEAD', 'PUBLISHED', 'PUBLISHED']);
});

test.each([
  ['throttled', { code: 'ThrottlingException', message: 'slow down' }, 3],
  ['not allowed', { code: 'AccessDeniedException', message: 'no' }, 1],
])(
  'while the bus is %s nothing is counted; the batch goes back when it is no longer fresh',
  async (_what, failure, calls) => {
    const parts = bench({ bus: { failEntry: () => failure } });
    await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
    const event = parts.streamEvent();
    const writtenAt = parts.clock.now();
    const sequenceNumbers = event.Records.map((record) => ({
      itemIdentifier: record.dynamodb?.SequenceNumber,
    }));
    await expect(stream(parts)(event)).resolves.toEqual({ batchItemFailures: sequenceNumbers });
    expect(parts.bus.calls()).toHaveLength(calls);
    expect(parts.clock.now() - writtenAt).toBeGreaterThanOrEqual(5_000);
    expect(parts.rows()).toMatchObject([
      { status: 'PENDING', attempts: 0 },
      { status: 'PENDING', attempts: 0 },
    ]);
  },
);

test('what went back comes again, and is published once the bus is well', async () => {
  let down = true;
  const parts = bench({
    bus: { failCall: () => (down ? { error: new Error('connect ETIMEDOUT') } : undefined) },
  });
  await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
  const event = parts.streamEvent();
  const handle = stream(parts);
  expect((await handle(event)).batchItemFailures).toHaveLength(2);
  const handedBackAt = parts.clock.now();
  expect((await handle(event)).batchItemFailures).toHaveLength(2); // claimed, and let go of again
  expect(parts.clock.now() - handedBackAt).toBeGreaterThanOrEqual(5_000); // the mapping counts how often it comes
  down = false;
  await expect(handle(event)).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(2);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test('a batch goes back only when its youngest record is no longer fresh, whichever failed', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":1}') ? { code: 'InternalFailure', message: 'oops' } : undefined,
    },
  });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(4_000);
  await parts.outbox.commit({ events: [parts.happened(2)] });
  const event = parts.streamEvent();
  const handle = stream(parts);
  expect((await handle(event)).batchItemFailures).toHaveLength(1);
  await handle(event); // a mapping hands back the success too
  expect(parts.publishedIds()).toHaveLength(1);
});

test('a batch whose youngest record was written under a clock that is ahead goes back later still', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":1}') ? { code: 'InternalFailure', message: 'oops' } : undefined,
    },
  });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(4_500);
  await parts.outbox.commit({ events: [parts.happened(2)] });
  const event = parts.streamEvent();
  const ahead = parts.clock.now() / 1_000 + 2;
  for (const record of event.Records.filter(({ dynamodb }) => JSON.stringify(dynamodb).includes('thing-2')))
    Object.assign(record.dynamodb ?? {}, { ApproximateCreationDateTime: ahead });
  const handle = stream(parts);
  expect((await handle(event)).batchItemFailures).toHaveLength(1);
  await handle(event);
  expect(parts.publishedIds()).toHaveLength(1);
});

test('what one service may not publish is handed back; the others of the batch are published', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.source === 'banned' ? { code: 'NotAuthorizedForSourceException', message: 'no' } : undefined,
    },
  });
  const banned = createOutbox({
    config: { ...consumerConfig, service: 'banned' },
    table: parts.memory,
    clock: parts.clock,
  });
  await banned.commit({ events: Array.from({ length: 60 }, (_, n) => parts.happened(n)) });
  await parts.outbox.commit({ events: Array.from({ length: 20 }, (_, n) => parts.happened(n)) });
  expect((await stream(parts)()).batchItemFailures).toHaveLength(60);
  expect(parts.publishedIds()).toHaveLength(20);
});

test('when the born lease is over, the batch is not handed back: the sweep has it', async () => {
  const parts = bench({ bus: { failCall: () => ({ error: new Error('connect ETIMEDOUT') }) } });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(31_000);
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.rows()).toMatchObject([{ status: 'PENDING', attempts: 0 }]);
});

test('a mark that fails is tried again, and never handed back', async () => {
  const parts = bench();
  let calls = 0;
  const table = {
    ...parts.memory,
    updateEach: async (...args: Parameters<typeof parts.memory.updateEach>) => {
      calls += 1;
      if (calls < 3) throw Object.assign(new Error('slow down'), { name: 'ThrottlingException' });
      return parts.memory.updateEach(...args);
    },
  };
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await expect(stream({ ...parts, table })()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.rows()).toMatchObject([{ status: 'PUBLISHED' }]);
});

test('an event that went DEAD while it was published after all is PUBLISHED, and its pointer goes', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const [row] = parts.rows();
  const pointer = { PK: `DEAD#0${row?.PK.at(-1)}`, SK: row?.SK.slice(6) ?? '' };
  const bus = {
    ...parts.bus,
    put: async (...args: Parameters<typeof parts.bus.put>) => {
      const results = await parts.bus.put(...args);
      await parts.memory.transact([
        { Put: { Item: { ...row, status: 'DEAD' } } },
        { Put: { Item: { ...pointer, schema: 1 } } },
      ]);
      return results;
    },
  };
  await stream({ ...parts, bus })();
  expect(parts.rows()).toMatchObject([{ status: 'PUBLISHED' }]);
  expect(parts.memory.item(pointer)).toBeUndefined();
});

test.each([
  ['nothing', undefined],
  ['no records', {}],
  ['a null record', { Records: [null] }],
  [
    'an image of something else',
    { Records: [{ eventName: 'INSERT', dynamodb: { SequenceNumber: '1', NewImage: { PK: { S: 'X' } } } }] },
  ],
  [
    'an image that is none',
    { Records: [{ eventName: 'INSERT', dynamodb: { SequenceNumber: '1', NewImage: { PK: 7 } } }] },
  ],
])('an event that holds %s fails nobody', async (_what, event) => {
  const parts = bench();
  await expect(stream(parts)(event as never)).resolves.toEqual({ batchItemFailures: [] });
});

test('a producer whose clock is off is noticed', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const event = parts.streamEvent();
  Object.assign(event.Records[0]?.dynamodb ?? {}, {
    ApproximateCreationDateTime: parts.clock.now() / 1_000 + 120,
  });
  await stream(parts)(event);
  expect(parts.telemetry.durations('ClockDifference')).toEqual([120_000]);
  expect(parts.rows()).toMatchObject([{ status: 'PUBLISHED' }]); // claimed first, since its age cannot be believed
});
