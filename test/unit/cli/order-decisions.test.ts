import { describe, expect, test } from 'vitest';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, lastKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { readable, readOutboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

const LAST = lastKey({
  source: 'things',
  consumer: 'worker',
  group: 'strict',
  aggregateType: 'Thing',
  aggregateId: '1',
});

/** A rejected message of a strict consumer: number 3, of an aggregate with this last number. */
async function numbered(
  last: number,
  ofConsumer: string | undefined = 'strict:block',
  more: object = {},
  isNumbered = true,
) {
  const rig = await rejected({ order: ofConsumer, isNumbered });
  const key = inboxKey('worker', rig.eventId);
  const order = { key: LAST.PK, mode: 'strict', sequence: 3 };
  await rig.memory.write({ Put: { Item: { ...rig.memory.item(key), ...key, order, ...more } } });
  await rig.memory.write({ Put: { Item: { ...LAST, last, at: 0, schema: 1 } } });
  const run = (...argv: string[]) => rig.until(runInMemory(rig, argv));
  return { ...rig, run, last: () => rig.memory.item({ ...LAST })?.last };
}

const NAMES_2 = expect.stringContaining('sequence 2 of its aggregate');

test('a message whose predecessor was not applied is neither discarded nor resolved, and names it', async () => {
  const { command, run, letterId, letters, eventId, last } = await numbered(1);
  const discarded = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
  expect(discarded.exitCode).toBe(1);
  expect(discarded.document).toMatchObject({ deadLetters: [{ outcome: 'not-rejectable' }] });
  expect(JSON.stringify(discarded.document)).toContain('sequence 2 of its aggregate was not applied');
  expect(await letters()).toEqual([letterId]);
  const resolved = await run('messages', 'resolve', 'worker', eventId, ...APPLY, '--json');
  expect(resolved.code).toBe(2);
  expect(JSON.parse(resolved.err).error).toMatchObject({ code: 'OUT_OF_ORDER', message: NAMES_2 });
  expect(last()).toBe(1);
});

test.each(['resolve', 'discard'])(
  '%s of a message whose consumer is no longer strict ignores its number',
  async (how) => {
    const { command, run, letterId, eventId, last } = await numbered(1, '');
    if (how === 'resolve')
      expect((await run('messages', 'resolve', 'worker', eventId, ...APPLY)).code).toBe(0);
    else
      expect((await command('', 'dlq', 'discard', source, letterId, ...APPLY)).document).toMatchObject({
        deadLetters: [{ outcome: 'discarded' }],
      });
    expect(last()).toBe(1);
  },
);

test.each([
  [2, 0],
  [3, 2],
  [7, 2],
])('after %i, messages allow of a message that is too old exits with %i', async (before, code) => {
  const { run, eventId, memory } = await numbered(before, 'strict:skip', { reason: 'EVENT_TOO_OLD' });
  const allowed = await run('messages', 'allow', 'worker', eventId, ...APPLY, '--json');
  expect(allowed.code).toBe(code);
  const item = memory.item(inboxKey('worker', eventId));
  expect(item?.runAnyway).toBe(code === 0 ? true : undefined);
  if (code === 2) expect(JSON.parse(allowed.err).error).toMatchObject({ code: 'OUT_OF_ORDER' });
});

test('a message that is too old is allowed to run at a consumer that is no longer strict', async () => {
  const { run, eventId, memory } = await numbered(7, '', { reason: 'EVENT_TOO_OLD' });
  expect((await run('messages', 'allow', 'worker', eventId, ...APPLY)).code).toBe(0);
  expect(memory.item(inboxKey('worker', eventId))?.runAnyway).toBe(true);
});

test('a message whose row is unreadable is not resolved by force before its predecessor, which is named', async () => {
  const { run, eventId, last } = await numbered(1, 'strict:block', { fence: 5 });
  const resolve = ['messages', 'resolve', 'worker', eventId, '--force', '--effects-checked', ...APPLY];
  const resolved = await run(...resolve, '--json');
  expect(resolved.code).toBe(2);
  expect(JSON.parse(resolved.err).error).toMatchObject({ code: 'OUT_OF_ORDER', message: NAMES_2 });
  expect(last()).toBe(1);
});

test('a discarded message whose number is next is passed over', async () => {
  const { command, letterId, letters, last } = await numbered(2);
  const discarded = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
  expect(discarded.document).toMatchObject({ deadLetters: [{ outcome: 'discarded' }] });
  expect(await letters()).toEqual([]);
  expect(last()).toBe(3);
});

describe('a message that its strict consumer has not received', () => {
  /** Number 3 of an aggregate with this last number: its event is published, and no row of it exists. */
  async function unreceived(last: number, isNumbered = true) {
    const rig = await numbered(last, 'strict:block', {}, isNumbered);
    const { eventId, memory } = rig;
    await memory.write({ Delete: { Key: { ...inboxKey('worker', eventId) } } });
    await memory.write({ Delete: { Key: { ...rejectedKey('worker', eventId) } } });
    const Key = outboxKeyOf(eventId);
    const stored = readable(readOutboxRow(memory.item(Key)));
    const numberedEnvelope = JSON.stringify({
      ...JSON.parse(stored?.envelope ?? '{}'),
      aggregateId: '1',
      sequence: 3,
    });
    await memory.write({ Put: { Item: { ...memory.item(Key), ...Key, envelope: numberedEnvelope } } });
    const { receive } = rig.queues;
    Object.assign(rig.queues, {
      receive: async (...of: Parameters<typeof receive>) =>
        (await receive(...of)).map((letter) => ({
          ...letter,
          body: JSON.stringify({ ...JSON.parse(letter.body), detail: JSON.parse(numberedEnvelope) }),
        })),
    });
    return rig;
  }

  test.each([
    [1, 2, 1],
    [2, 0, 3],
    [7, 0, 7],
  ])('after %i, resolve exits with %i and leaves %i', async (before, code, after) => {
    const { run, eventId, last } = await unreceived(before);
    const resolved = await run('messages', 'resolve', 'worker', eventId, ...APPLY, '--json');
    expect(resolved.code).toBe(code);
    if (code === 2) expect(JSON.parse(resolved.err).error).toMatchObject({ code: 'OUT_OF_ORDER' });
    expect(last()).toBe(after);
  });

  test.each(['resolve', 'discard'])(
    '%s leaves the number that an event carries without a declared sequence',
    async (how) => {
      const { run, command, letterId, eventId, last } = await unreceived(2, false);
      if (how === 'resolve')
        expect((await run('messages', 'resolve', 'worker', eventId, ...APPLY)).code).toBe(0);
      else await command('', 'dlq', 'discard', source, letterId, ...APPLY);
      expect(last()).toBe(2);
    },
  );

  test.each([
    [1, 'not-rejectable', 1],
    [2, 'discarded', 3],
  ])('after %i, its dead letter is %s, which leaves %i', async (before, outcome, after) => {
    const { command, letterId, last } = await unreceived(before);
    const discarded = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
    expect(discarded.document).toMatchObject({ deadLetters: [{ outcome }] });
    expect(last()).toBe(after);
  });
});

test('a message that is resent with other data keeps its number for the event in its place', async () => {
  const { resend, memory, eventId, last } = await numbered(2);
  await resend({ n: 1 }, ...APPLY);
  expect(memory.item(inboxKey('worker', eventId))).toMatchObject({ status: 'DISCARDED' });
  expect(last()).toBe(2);
});

test.each([
  [3, 'strict:skip', 'CANNOT_RESEND'],
  [7, 'strict:block', 'CANNOT_RESEND'],
  [2, 'strict:skip', undefined],
  [3, '', undefined],
])(
  'after %i, at a consumer with the order "%s", the plan of a resend is refused as %s',
  async (last, order, code) => {
    const { resend } = await numbered(last, order);
    const { document } = await resend({ n: 1 });
    expect(document.error?.code).toBe(code);
    if (code !== undefined)
      expect(document.error.message).toContain(
        `It has number 3 of Thing 1, and number ${last} was applied or passed over.`,
      );
  },
);

test('a message that is passed over while its replacement is sent has not been processed', async () => {
  const { resend, queues, memory } = await numbered(2);
  const { send } = queues;
  Object.assign(queues, {
    send: async (url: string, body: string) => {
      const { eventId } = JSON.parse(body).detail;
      const row = { status: 'PROCESSED', fence: 'f', attempts: 1, schema: 1, supersededBy: 3 };
      await memory.write({ Put: { Item: { ...inboxKey('worker', eventId), ...row } } });
      return send(url, body);
    },
  });
  const { document } = await resend({ n: 1 }, ...APPLY);
  expect(document).toMatchObject({ outcome: 'superseded' });
});
