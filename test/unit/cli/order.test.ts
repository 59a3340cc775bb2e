import { describe, expect, test } from 'vitest';
import { STRICT_GROUP } from '../../../lambdas/runtime/base/order.ts';
import { inboxKey, lastKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const APPLY = ['--apply', '--reason', 'the event was booked by hand'];
const aggregate = { source: 'things', aggregateType: 'Account', aggregateId: 'A#1' };
const key = lastKey({ consumer: worker.name, group: STRICT_GROUP, ...aggregate });
const NUMBERED = { source: 'things', type: 'ThingHappened', sequence: true };
const idOf = (n: number) => `019b76da-a800-7097-8521-3dff12fd000${n}`;

/** A strict consumer, with a last number and rejected messages of one aggregate. */
async function rig({
  last,
  rejected = [],
  events = [NUMBERED],
}: {
  last?: number;
  rejected?: readonly (readonly [number, string])[];
  events?: readonly (typeof NUMBERED)[];
} = {}) {
  const made = mailroomInMemory([]);
  const { memory, clock } = made;
  const put = (Item: object) => memory.write({ Put: { Item: { schema: SCHEMA, ...Item } as never } });
  if (last !== undefined) await put({ ...key, last, at: clock.now(), eventId: idOf(last) });
  for (const [sequence, reason] of rejected) {
    const eventId = idOf(sequence);
    const cause = { reason, lastError: 'No.', fingerprint: 'worker No.', rejectedAt: clock.now() };
    const row = { ...inboxKey(worker.name, eventId), status: 'REJECTED', fence: 'f', attempts: 1, ...cause };
    await put({ ...row, type: 'ThingHappened', order: { key: key.PK, mode: 'strict', sequence } });
    await put({ ...rejectedKey(worker.name, eventId), ...cause });
  }
  const strict = { ...worker, events, order: 'strict:block' };
  const mailroom = { ...made, directory: { ...directory, consumers: [strict, { ...worker, name: 'free' }] } };
  const run = (...argv: string[]) => runInMemory(mailroom, ['order', ...argv]);
  return {
    run,
    text: async (...argv: string[]) => {
      const { out, err } = await run(...argv);
      return unwrapped(out + err);
    },
    json: async (...argv: string[]) => JSON.parse((await run(...argv, '--json')).out),
    refused: async (...argv: string[]) => {
      const { out, err } = await run(...argv, '--json');
      return JSON.parse(out || err).error.code;
    },
    last: () => memory.item(key)?.last,
    operations: () =>
      memory.items().flatMap((item) => (String(item.PK).startsWith('OPERATIONS#') ? [item.command] : [])),
  };
}

describe('order show', () => {
  test('names the aggregate that is held up, its next number, and the event that blocks it', async () => {
    const { json } = await rig({
      last: 3,
      rejected: [
        [6, 'OUT_OF_ORDER'],
        [4, 'INVALID_PAYLOAD'],
      ],
    });
    expect(await json('show', worker.name)).toMatchObject({
      consumer: worker.name,
      more: false,
      aggregates: [
        {
          ...aggregate,
          last: 3,
          missing: 4,
          holder: { sequence: 4, state: 'rejected', reason: 'INVALID_PAYLOAD' },
          waiting: [{ sequence: 6, state: 'rejected', reason: 'OUT_OF_ORDER' }],
          next: expect.stringContaining(`dlq redrive consumer:${worker.name} ${idOf(4)}`),
        },
      ],
    });
  });

  test('points to the event of a number that no rejected message has', async () => {
    const { json } = await rig({ last: 3, rejected: [[6, 'OUT_OF_ORDER']] });
    expect(await json('show', worker.name)).toMatchObject({
      aggregates: [{ missing: 4, holder: null, next: expect.stringContaining("why 'A#1'") }],
    });
  });

  test('leaves out what was passed over since', async () => {
    const { json } = await rig({ last: 6, rejected: [[6, 'OUT_OF_ORDER']] });
    expect(await json('show', worker.name)).toMatchObject({ aggregates: [] });
  });

  test('shows an aggregate to which nothing was applied', async () => {
    const { json } = await rig();
    expect(await json('show', worker.name, 'Account', 'A#1')).toMatchObject({
      aggregates: [{ exists: false, last: 0 }],
    });
  });

  test('refuses a consumer without a strict order, and a type without an id', async () => {
    const { refused } = await rig();
    expect(await refused('show', 'free')).toBe('BAD_ARGUMENT');
    expect(await refused('show', worker.name, 'Account')).toBe('BAD_ARGUMENT');
  });
});

describe('order skip', () => {
  test('shows what it would mean, and passes over the next number', async () => {
    const { text, last, operations, json } = await rig({ last: 3 });
    const plan = await text('skip', worker.name, 'Account', 'A#1', '4');
    expect(plan).toContain("order skip worker Account 'A#1' 4 --apply");
    expect(last()).toBe(3);
    expect(operations()).toEqual([]);
    expect(await json('skip', worker.name, 'Account', 'A#1', '4', ...APPLY)).toMatchObject({
      last: 4,
      applied: true,
    });
    expect(last()).toBe(4);
    expect(operations()).toEqual(['order skip']);
  });

  test('refuses any other number, and a change without a reason', async () => {
    const { refused, run, last } = await rig({ last: 3 });
    for (const n of ['3', '5'])
      expect(await refused('skip', worker.name, 'Account', 'A#1', n, ...APPLY)).toBe('BAD_ARGUMENT');
    expect(await refused('skip', worker.name, 'Account', 'A#1', '4', '--apply')).toBe('BAD_ARGUMENT');
    expect((await run('skip', worker.name, 'Account', 'A#1', '0')).code).toBe(2);
    expect(last()).toBe(3);
  });
});

describe('order seed', () => {
  test('sets the last number of an aggregate, and only raises it', async () => {
    const { refused, last, json, operations } = await rig();
    expect(await json('seed', worker.name, 'Account', 'A#1', '7')).toMatchObject({ last: 0, applied: false });
    expect(last()).toBeUndefined();
    expect(await json('seed', worker.name, 'Account', 'A#1', '7', ...APPLY)).toMatchObject({
      last: 7,
      applied: true,
    });
    expect(last()).toBe(7);
    expect(operations()).toEqual(['order seed']);
    expect(await refused('seed', worker.name, 'Account', 'A#1', '7', ...APPLY)).toBe('BAD_ARGUMENT');
    expect(operations()).toEqual(['order seed']);
    expect(await json('seed', worker.name, 'Account', 'A#1', '9', ...APPLY)).toMatchObject({ last: 9 });
    expect(last()).toBe(9);
  });

  test('names the events that it would pass over', async () => {
    const rejected = [
      [4, 'INVALID_PAYLOAD'],
      [6, 'OUT_OF_ORDER'],
      [7, 'OUT_OF_ORDER'],
    ] as const;
    const { text } = await rig({ last: 3, rejected });
    expect(await text('seed', worker.name, 'Account', 'A#1', '6')).toContain(
      `no event from 4 to 6 is ever applied. Of these, 2 were found: number 4 (ThingHappened ${idOf(4)}, rejected INVALID_PAYLOAD), 6 (ThingHappened ${idOf(6)}, rejected OUT_OF_ORDER). Nothing was changed.`,
    );
  });

  test('is what order show prints for a number that may have been processed under an earlier name', async () => {
    const rejected = [
      [1, 'EVENT_TOO_OLD'],
      [6, 'OUT_OF_ORDER'],
    ] as const;
    const { text, json } = await rig({ rejected });
    expect(await text('show', worker.name)).toContain("begin there: `order seed worker Account 'A#1' 5`.");
    expect(await json('show', worker.name)).toMatchObject({
      aggregates: [{ missing: 1, next: expect.stringContaining(`messages allow worker ${idOf(1)}`) }],
    });
  });
});

describe('a consumer of numbered events of two services', () => {
  const events = [
    NUMBERED,
    { ...NUMBERED, source: 'shelves' },
    { ...NUMBERED, source: 'notes', sequence: false },
  ];
  const rejected = [[4, 'INVALID_PAYLOAD']] as const;

  test('needs the service of an aggregate, and refuses one that numbers nothing', async () => {
    const { refused, last } = await rig({ last: 3, events });
    for (const argv of [['show'], ['skip', '4'], ['seed', '4']]) {
      const [command = '', ...more] = argv;
      const given = [command, worker.name, 'Account', 'A#1', ...more];
      expect(await refused(...given)).toBe('BAD_ARGUMENT');
      expect(await refused(...given, '--source', 'notes')).toBe('BAD_ARGUMENT');
    }
    expect(last()).toBe(3);
  });

  test('has a last number for each, and prints commands that name the service', async () => {
    const { text, json, refused, last } = await rig({ last: 3, rejected, events });
    expect(await json('show', worker.name)).toMatchObject({ aggregates: [{ source: 'things', missing: 4 }] });
    expect(await text('show', worker.name)).toContain("order skip worker Account 'A#1' 4 --source things");
    expect(await json('show', worker.name, 'Account', 'A#1', '--source', 'shelves')).toMatchObject({
      aggregates: [{ source: 'shelves', last: 0, exists: false }],
    });
    const skip = ['skip', worker.name, 'Account', 'A#1'];
    expect(await refused(...skip, '4', '--source', 'shelves')).toBe('BAD_ARGUMENT');
    expect(await text(...skip, '1', '--source', 'shelves')).toContain('1 --source shelves --apply');
    expect(await json(...skip, '4', '--source', 'things', ...APPLY)).toMatchObject({
      source: 'things',
      last: 4,
    });
    expect(last()).toBe(4);
  });
});
