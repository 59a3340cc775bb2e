import { expect, test } from 'vitest';
import type { PutCall } from '../../../../testing/index.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { stream } from './relay-stream-rig.ts';

const denied = Object.assign(new Error('no'), { name: 'AccessDeniedException' });
const invalid = Object.assign(new Error('1 validation error detected'), { name: 'ValidationException' });

test('a refused entry is DEAD with its error and a pointer; its neighbors are published', async () => {
  const parts = rig({
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
  const parts = rig({ bus: { failEntry: () => ({ code: 'SomethingNew', message: 'what?' }) } });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.rows()).toMatchObject([{ status: 'PENDING', attempts: 1, lastError: 'what?' }]);
  const wait = (parts.rows()[0]?.leaseUntil ?? 0) - parts.clock.now();
  expect(wait).toBeGreaterThan(2_000);
  expect(wait).toBeLessThanOrEqual(5_000);
});

test.each(['ValidationException', 'InvalidInputException'])(
  'a whole call refused as %s is made once per entry, and what fails alone is DEAD',
  async (name) => {
    const refused = Object.assign(new Error('the entry is not valid'), { name });
    const parts = rig({
      bus: {
        failCall: (call) =>
          call.entries.some((entry) => entry.detail.includes('"n":2')) ? { error: refused } : undefined,
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
  },
);

test.each([
  ['throttled', { code: 'ThrottlingException', message: 'slow down' }, 3],
  ['not allowed', { code: 'AccessDeniedException', message: 'no' }, 1],
])(
  'while the bus is %s nothing is counted; the batch goes back when it is no longer fresh',
  async (_what, failure, calls) => {
    const parts = rig({ bus: { failEntry: () => failure } });
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

test.each([
  ['as a whole', 1, () => denied],
  ['split into single entries', 3, (entries: number) => (entries > 1 ? invalid : denied)],
])('a call without permission, %s, is not retried', async (_what, calls, errorOf) => {
  const parts = rig({ bus: { failCall: ({ entries }) => ({ error: errorOf(entries.length) }) } });
  await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
  expect((await stream(parts)()).batchItemFailures).toHaveLength(2);
  expect(parts.bus.calls()).toHaveLength(calls);
});

test('entries without a result are not published', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
  const bus = { ...parts.bus, put: async () => [] };
  expect((await stream({ ...parts, bus })()).batchItemFailures).toHaveLength(2);
  expect(parts.rows()).toMatchObject([{ status: 'PENDING' }, { status: 'PENDING' }]);
});

test('returned records are delivered again, and published once the bus recovers', async () => {
  let down = true;
  const parts = rig({
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
  const parts = rig({
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
  const parts = rig({
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

test('events that one service may not publish are returned; the others of the batch are published', async () => {
  const parts = rig({
    bus: {
      failEntry: (entry) =>
        entry.source === 'banned' ? { code: 'NotAuthorizedForSourceException', message: 'no' } : undefined,
    },
  });
  await parts.outbox.commit({ events: Array.from({ length: 60 }, (_, n) => parts.happenedOf('banned', n)) });
  await parts.outbox.commit({ events: Array.from({ length: 20 }, (_, n) => parts.happened(n)) });
  expect((await stream(parts)()).batchItemFailures).toHaveLength(60);
  expect(parts.publishedIds()).toHaveLength(20);
});

/** A bus whose policy denies a source. EventBridge then denies every call that holds an event of it, as a whole. */
const denying = (denied: string) => ({
  failCall: ({ entries }: PutCall) =>
    entries.some(({ source }) => source === denied)
      ? {
          error: Object.assign(new Error('not authorized to perform events:PutEvents'), {
            name: 'AccessDeniedException',
          }),
        }
      : undefined,
});

test('a call that is denied because of one source publishes the others: it is made again for each source', async () => {
  const parts = rig({ bus: denying('banned') });
  for (let n = 0; n < 40; n += 1) {
    const events = n % 8 === 0 ? [parts.happenedOf('banned', n), parts.happened(n)] : [parts.happened(n)];
    await parts.outbox.commit({ events });
  }
  expect((await stream(parts)()).batchItemFailures).toHaveLength(5);
  expect(new Set(parts.publishedIds()).size).toBe(40);
  expect(parts.bus.published()).toHaveLength(40);
  expect(parts.rows().filter(({ status }) => status === 'PENDING')).toMatchObject(
    Array.from({ length: 5 }, () => ({ source: 'banned', attempts: 0 })),
  );
});

test('events of several services that may all be published share their calls', async () => {
  const parts = rig();
  const events = Array.from({ length: 10 }, (_, n) => parts.happenedOf(`service-${n}`, n));
  await parts.outbox.commit({ events });
  expect(await stream(parts)()).toEqual({ batchItemFailures: [] });
  expect(parts.bus.calls()).toHaveLength(1);
});

test('when the stream lease has expired, the batch is not returned: the sweep publishes it', async () => {
  const parts = rig({ bus: { failCall: () => ({ error: new Error('connect ETIMEDOUT') }) } });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(31_000);
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.rows()).toMatchObject([{ status: 'PENDING', attempts: 0 }]);
});

test('a mark that fails is retried, and its record never returned', async () => {
  const parts = rig();
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
  const parts = rig();
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
    'a malformed image',
    { Records: [{ eventName: 'INSERT', dynamodb: { SequenceNumber: '1', NewImage: { PK: 7 } } }] },
  ],
])('an event that holds %s fails no other event', async (_what, event) => {
  const parts = rig();
  await expect(stream(parts)(event as never)).resolves.toEqual({ batchItemFailures: [] });
});
