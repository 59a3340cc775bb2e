import { expect, test } from 'vitest';
import { createTail, tailLine } from '../../../cli/commands/tail.ts';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { readTrace } from '../../../cli/reports/why/trace-reader.ts';
import { COLUMNS, columnsOf } from '../../../cli/terminal/prose.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { withStored } from '../../support/with-stored.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { commit, fine, type Mailroom } from './support/why-rig.ts';

function tailOf(mailroom: Mailroom) {
  const { table, directory, clock } = mailroom;
  const step = createTail({ directory, stored: dynamoRows(table), shards: [0, 1] }, clock.now());
  return async () => {
    const { events, ...rest } = await step(clock.now());
    return { ...rest, told: events.map(({ eventId, status, consumers }) => [eventId, status, consumers]) };
  };
}

test('tail shows an event when it is committed, published and processed, and then no more', async () => {
  const mailroom = mailroomInMemory([fine]);
  await commit(mailroom);
  await mailroom.clock.advance(10_000);
  const step = tailOf(mailroom);
  expect((await step()).told).toEqual([]);
  await mailroom.clock.advance(2_000);
  const eventId = await commit(mailroom);
  expect((await step()).told).toEqual([[eventId, 'PENDING', { worker: 'waiting' }]]);
  expect((await step()).told).toEqual([]);
  await mailroom.publish();
  expect((await step()).told).toEqual([[eventId, 'PUBLISHED', { worker: 'waiting' }]]);
  await mailroom.drain();
  expect((await step()).told).toEqual([[eventId, 'PUBLISHED', { worker: 'processed' }]]);
  await mailroom.clock.advance(2_000);
  expect((await step()).told).toEqual([]);
});

test('tail shows an event whose commit became visible after a younger one', async () => {
  const mailroom = mailroomInMemory([fine]);
  const step = tailOf(mailroom);
  const late = await commit(mailroom);
  const [row] = mailroom.rows();
  if (row === undefined) throw new Error('No row');
  await mailroom.table.write({ Delete: { Key: { PK: row.PK, SK: row.SK } } });
  await mailroom.clock.advance(2_000);
  const young = await commit(mailroom);
  expect((await step()).told.map(([id]) => id)).toEqual([young]);
  await mailroom.table.write({ Put: { Item: { ...row } } });
  await mailroom.clock.advance(2_000);
  expect((await step()).told.map(([id]) => id)).toEqual([late]);
});

test('tail shows a scheduled event when it is due', async () => {
  const mailroom = mailroomInMemory([fine]);
  const step = tailOf(mailroom);
  const deliverAt = mailroom.clock.now() + 20_000;
  const due = { ...mailroom.happened(1), deliverAt };
  const [event] = await mailroom.outbox.commit({ events: [due] });
  expect((await step()).told).toEqual([]);
  await mailroom.clock.advance(20_000);
  expect((await step()).told).toEqual([[event?.eventId, 'PENDING', { worker: 'waiting' }]]);
});

test('tail follows the newest 50 of too many events, and counts the others', async () => {
  const mailroom = mailroomInMemory([fine]);
  const step = tailOf(mailroom);
  for (let nth = 0; nth < 70; nth += 1) await commit(mailroom);
  const { told, skipped, more } = await step();
  expect(told).toHaveLength(50);
  expect({ skipped, more }).toEqual({ skipped: 20, more: false });
});

test('a step reads one page of each shard, and in one batch the rows of the messages that it follows', async () => {
  const mailroom = mailroomInMemory([fine]);
  const calls = { query: 0, get: 0, getEach: 0 };
  const { table, directory, clock } = mailroom;
  const counted = {
    ...table,
    query: (query: Parameters<typeof table.query>[0]) => {
      calls.query += 1;
      return table.query(query);
    },
    get: (...args: Parameters<typeof table.get>) => {
      calls.get += 1;
      return table.get(...args);
    },
    getEach: (...args: Parameters<typeof table.getEach>) => {
      calls.getEach += 1;
      return table.getEach(...args);
    },
  };
  await clock.advance(30_000 - (clock.now() % 60_000) + 60_000);
  const step = createTail({ directory, stored: dynamoRows(counted), shards: [0, 1] }, clock.now());
  for (let nth = 0; nth < 50; nth += 1) await commit(mailroom);
  await step(clock.now());
  expect(calls).toEqual({ query: 2, get: 0, getEach: 1 });
  await step(clock.now());
  // The outbox rows of the events that are not published yet are read again.
  expect(calls).toEqual({ query: 4, get: 0, getEach: 3 });
});

test('a step that fails loses no event', async () => {
  const mailroom = mailroomInMemory([fine]);
  const { table, directory, clock } = mailroom;
  let denied = true;
  const flaky = {
    ...table,
    getEach: async (...args: Parameters<typeof table.getEach>) => {
      if (denied) throw new Error('Rate exceeded');
      return table.getEach(...args);
    },
  };
  const step = createTail({ directory, stored: dynamoRows(flaky), shards: [0, 1] }, clock.now());
  const eventId = await commit(mailroom);
  await expect(step(clock.now())).rejects.toThrow('Rate exceeded');
  denied = false;
  expect((await step(clock.now())).events.map((event) => event.eventId)).toEqual([eventId]);
});

test('a line of tail fits 80 columns, and its id is one that why completes', () => {
  const eventId = '01a1fe32-7358-7e75-8b69-4ee374467501';
  const consumers = { payments: 'failed', inventory: 'processed', notifications: 'waiting' } as const;
  const event = {
    eventId,
    at: 1_795_266_081_624,
    type: 'OrderPlaced',
    source: 'orders',
    status: 'PUBLISHED',
    consumers,
  };
  const line = tailLine(event);
  expect(line.split('\n').every((part) => columnsOf(part) <= COLUMNS)).toBe(true);
  expect(unwrapped(line)).toMatch(
    /^\d\d:\d\d:\d\d 01a1fe32-7358-7e75 OrderPlaced payments failed, inventory processed, notifications waiting$/,
  );
});

test('tail and why show a filtered event only at the consumers whose filter matches', async () => {
  const mailroom = mailroomInMemory([fine]);
  const [worker] = mailroom.directory.consumers;
  if (worker === undefined) throw new Error('No consumer');
  const filtered = (n: number) => ({
    ...mailroom.directory,
    consumers: [{ ...worker, events: worker.events.map((event) => ({ ...event, filter: { n: [n] } })) }],
  });
  const eventId = await commit(mailroom);
  for (const [n, expected] of [
    [1, ['worker']],
    [2, []],
  ] as const) {
    const directory = filtered(n);
    const parts = { directory, table: mailroom.table };
    const { events } = await createTail(
      withStored({ ...parts, shards: [0, 1] }),
      mailroom.clock.now() - 1_000,
    )(mailroom.clock.now());
    expect(events.map(({ consumers }) => Object.keys(consumers))).toEqual([expected]);
    const trace = await readTrace(withStored({ ...parts, queues: mailroom.queues }), [eventId]);
    expect(trace.events.map(({ messages }) => messages.map(({ consumer }) => consumer.name))).toEqual([
      expected,
    ]);
  }
});
