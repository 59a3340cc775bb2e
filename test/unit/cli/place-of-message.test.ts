import { describe, expect, test } from 'vitest';
import { resentEventId } from '../../../cli/changes/resend/resend-plan.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, lastKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { APPLY, orderedMailroom } from './support/ordered-mailroom.ts';
import { runInMemory } from './support/run-in-memory.ts';

const source = 'consumer:worker';

/** The remains of a rejected message of number 4, which always include its dead letter. */
const ROWS = { inbox: true, outbox: true };

/** Number 4 of an aggregate is rejected, and 5 waits for it. */
async function blocked(rows: Partial<typeof ROWS> = {}) {
  const left = { ...ROWS, ...rows };
  const rig = await orderedMailroom(3);
  const { 4: first = '', 5: second = '' } = await rig.commit([4, -1], [5, 1]);
  await rig.publish();
  await rig.deliver();
  await rig.drain();
  const remove = (Key: object) => rig.memory.write({ Delete: { Key: { ...Key } as never } });
  if (!left.inbox) {
    await remove(inboxKey('worker', first));
    await remove(rejectedKey('worker', first));
  }
  if (!left.outbox) await remove(outboxKeyOf(first));
  return { ...rig, first, second };
}

/** Makes the dead letters of a Mailroom ones that nothing can read. */
function garbled(rig: Awaited<ReturnType<typeof blocked>>, eventId: string): void {
  const { receive } = rig.queues;
  Object.assign(rig.queues, {
    receive: async (...of: Parameters<typeof receive>) =>
      (await receive(...of)).map((letter) =>
        letter.body.includes(eventId) ? { ...letter, body: 'not JSON' } : letter,
      ),
  });
}

const LEFT = [
  ['its inbox row and outbox row', {}],
  ['its inbox row', { outbox: false }],
  ['its outbox row', { inbox: false }],
  ['its dead letter alone', { inbox: false, outbox: false }],
] as const;

describe('the number of a rejected message, known from', () => {
  test.each(LEFT)('%s, is passed over by a discard', async (_from, rows) => {
    const { json, first, last, letters } = await blocked(rows);
    expect(await json('dlq', 'discard', source, first, ...APPLY)).toMatchObject({
      deadLetters: [{ outcome: 'discarded' }],
    });
    expect(last()).toBe(4);
    expect(await letters()).not.toContain(first);
  });

  test.each(LEFT)('%s, is passed over by messages resolve', async (_from, rows) => {
    const { run, first, last } = await blocked(rows);
    const { code, out } = await run('messages', 'resolve', 'worker', first, ...APPLY);
    expect(code).toBe(0);
    expect(out).not.toContain('order skip');
    expect(last()).toBe(4);
  });

  test.each(LEFT)('%s, is passed over by messages resolve --force', async (_from, rows) => {
    const { run, first, last } = await blocked(rows);
    const resolve = ['messages', 'resolve', 'worker', first, '--force', '--effects-checked', ...APPLY];
    expect((await run(...resolve)).code).toBe(0);
    expect(last()).toBe(4);
  });

  test.each(LEFT)('%s, is why its successor waits', async (_from, rows) => {
    const { json, first, second } = await blocked(rows);
    const both = await json('dlq', 'redrive', source, first, second);
    expect(both.verdicts).toMatchObject({ runs: 2, 'out-of-order': 0 });
  });

  test.each(LEFT)('%s, is superseded once a later one was applied', async (_from, rows) => {
    const { json, memory, first } = await blocked(rows);
    const key = lastKey({
      consumer: 'worker',
      source: 'things',
      group: 'strict',
      aggregateType: 'Thing',
      aggregateId: '1',
    });
    await memory.write({ Put: { Item: { ...key, last: 5, at: 0, schema: 1 } } });
    expect((await json('dlq', 'redrive', source, first)).verdicts).toMatchObject({ superseded: 1 });
    const { verdict } = await json('why', first); // without rows, it finds nothing
    expect(verdict?.next ?? '').not.toContain('redrive');
  });
});

test('the number of a message that is known from its outbox row alone is passed over by messages resolve', async () => {
  const rig = await blocked({ inbox: false });
  for (const { messageId } of await rig.queues.receive('dead-letters', { limit: 9 })) rig.remove(messageId);
  expect((await rig.run('messages', 'resolve', 'worker', rig.first, ...APPLY)).code).toBe(0);
  expect(rig.last()).toBe(4);
});

test('the number of an event that was sent in place of another, and never received, is passed over with it', async () => {
  const rig = await blocked({ outbox: false });
  const { send } = rig.queues;
  Object.assign(rig.queues, { send: () => Promise.reject(new Error('The command died')) });
  const data = { n: 7 };
  await rig.until(
    runInMemory(rig, ['dlq', 'resend', source, rig.first, '--data', '-', ...APPLY], {
      input: JSON.stringify(data),
    }),
  );
  Object.assign(rig.queues, { send });
  const discarded = await rig.json('dlq', 'discard', source, rig.first, ...APPLY);
  expect(discarded.deadLetters).toMatchObject([{ outcome: 'discarded' }]);
  expect(rig.memory.item(inboxKey('worker', resentEventId('worker', rig.first, data)))).toMatchObject({
    status: 'DISCARDED',
  });
  expect(rig.last()).toBe(4);
});

describe('an event that was recorded in place of another, and never sent,', () => {
  async function unsent() {
    const rig = await blocked({ outbox: false });
    const { send } = rig.queues;
    Object.assign(rig.queues, { send: () => Promise.reject(new Error('The command died')) });
    const data = { n: 7 };
    const resend = ['dlq', 'resend', source, rig.first, '--data', '-', ...APPLY];
    await rig.until(runInMemory(rig, resend, { input: JSON.stringify(data) }));
    Object.assign(rig.queues, { send });
    const fix = { events: [{ type: 'Corrected', aggregateType: 'Note', aggregateId: '1', data: {} }] };
    const resolve = (...options: string[]) => {
      const argv = ['messages', 'resolve', 'worker', resentEventId('worker', rig.first, data), ...options];
      return rig.until(runInMemory(rig, [...argv, ...APPLY], { input: JSON.stringify(fix) }));
    };
    return { ...rig, resolve };
  }

  test('is resolved at the place of that one', async () => {
    const { resolve, last } = await unsent();
    expect((await resolve()).code).toBe(0);
    expect(last()).toBe(4);
  });

  test('is resolved at the place of that one with what an operator commits', async () => {
    const { resolve, last } = await unsent();
    const { code, out } = await resolve('--commit', '-');
    expect(code).toBe(0);
    expect(out).not.toContain('order skip');
    expect(last()).toBe(4);
  });

  test('is not passed over by a commit if only the row of that one is left, and the command says so', async () => {
    const { resolve, last, remove, queues } = await unsent();
    for (const { messageId } of await queues.receive('dead-letters', { limit: 9 })) remove(messageId);
    const { code } = await resolve('--commit', '-', '--force');
    expect(code).toBe(0);
    expect(last()).toBe(3);
  });
});

describe('a message whose envelope claims another type than EventBridge', () => {
  /** Number 4 in both, of which one type is numbered. */
  async function forged(types: { readonly bus: string; readonly envelope: string }) {
    const rig = await orderedMailroom(3);
    await rig.commit([4, 1]);
    await rig.publish();
    const [real] = rig.queue.receive(1);
    const body = JSON.parse(real?.body ?? '');
    rig.queue.delete(real?.receiptHandle ?? '');
    rig.queue.send(
      JSON.stringify({ ...body, 'detail-type': types.bus, detail: { ...body.detail, type: types.envelope } }),
    );
    await rig.drain();
    const [eventId = ''] = await rig.letters();
    await rig.memory.write({ Delete: { Key: { ...outboxKeyOf(eventId) } } });
    return { ...rig, eventId };
  }

  test.each([
    { bus: 'Counted', envelope: 'Noted' },
    { bus: 'Noted', envelope: 'Counted' },
  ])('passes over no number when it is discarded or resolved: $bus, $envelope', async (types) => {
    const discarded = await forged(types);
    expect(await discarded.json('dlq', 'discard', source, '--all', ...APPLY)).toMatchObject({
      deadLetters: [{ outcome: 'discarded' }],
    });
    expect(discarded.last()).toBe(3);
    const fix = { events: [{ type: 'Corrected', aggregateType: 'Note', aggregateId: '1', data: {} }] };
    for (const options of [[], ['--commit', '-']]) {
      const { until, eventId, last, ...rig } = await forged(types);
      const argv = ['messages', 'resolve', 'worker', eventId, ...options, ...APPLY];
      expect((await until(runInMemory(rig, argv, { input: JSON.stringify(fix) }))).code).toBe(0);
      expect(last()).toBe(3);
    }
  });
});

describe('a message whose number nothing shows', () => {
  test('is discarded, and the command says how to pass over its number', async () => {
    const rig = await blocked({ inbox: false, outbox: false });
    garbled(rig, rig.first);
    const [letter] = (await rig.queues.receive('dead-letters', { limit: 9 })).filter(
      ({ body }) => body === 'not JSON',
    );
    const id = letter?.messageId ?? '';
    for (const options of [[], APPLY]) {
      const { out } = await rig.run('dlq', 'discard', source, id, ...options);
      expect(unwrapped(out)).toContain('pass over it with `order skip worker <type> <id> <number>`');
    }
    expect(rig.last()).toBe(3);
  });

  test('is resolved by force, and the command says how to pass over its number', async () => {
    const rig = await blocked({ inbox: false, outbox: false });
    garbled(rig, rig.first);
    const resolve = ['messages', 'resolve', 'worker', rig.first, '--force'];
    for (const options of [[], APPLY]) {
      const { code, out } = await rig.run(...resolve, ...options);
      expect(code).toBe(0);
      expect(unwrapped(out)).toContain('pass over it with `order skip worker <type> <id> <number>`');
    }
  });
});
