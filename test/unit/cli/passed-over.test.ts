import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { type LatestOrder, latest } from '../../../lambdas/runtime/base/order.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../lambdas/runtime/events/event.ts';
import { inboxKey, lastKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { APPLY, orderedMailroom } from './support/ordered-mailroom.ts';
import { runInMemory } from './support/run-in-memory.ts';

const source = 'consumer:worker';

/** Number 1 was rejected and passed over, 2 is applied, and then the handler is fixed. */
async function passedOver() {
  const rig = await orderedMailroom(undefined, undefined, 'skip');
  const { 1: first = '' } = await rig.commit([1, -1], [2, 1]);
  await rig.publish();
  await rig.drain();
  expect(rig.applied).toEqual([2]);
  rig.code.isFixed = true;
  return { ...rig, first, rowOf: () => rig.memory.item(inboxKey('worker', first)) };
}

/** The last number when the redrive is planned, and then that of another operator who comes first. */
async function inRace() {
  const rig = await orderedMailroom(undefined, undefined, 'block');
  const { 1: first = '' } = await rig.commit([1, -1]);
  await rig.publish();
  await rig.drain();
  rig.code.isFixed = true;
  const { send } = rig.queues;
  let isPassedOver = false;
  Object.assign(rig.queues, {
    send: async (url: string, body: string) => {
      if (!isPassedOver) {
        isPassedOver = true;
        await rig.undelivered('order', 'skip', 'worker', 'Thing', '1', '1', ...APPLY);
      }
      return send(url, body);
    },
  });
  return { ...rig, first };
}

describe('the redrive of a message whose number was passed over', () => {
  test('would not run, says why, and leaves its dead letter', async () => {
    const { json, text, letters, rowOf, first } = await passedOver();
    const plan = await json('dlq', 'redrive', source);
    expect(plan.verdicts).toMatchObject({ runs: 0, handled: 0, superseded: 1 });
    expect(plan.deadLetters).toMatchObject([
      {
        verdict: 'superseded',
        message: 'It has number 1 of Thing 1, and number 2 was applied or passed over.',
      },
    ]);
    const shown = await text('dlq', 'redrive', source);
    expect(shown).toContain('1 superseded');
    expect(shown).toContain(`dlq discard ${source} `);
    expect(shown).toContain('There is nothing to redrive.');
    const done = await json('dlq', 'redrive', source, ...APPLY);
    expect(done).toMatchObject({ processed: 0, superseded: 0, deadLetters: [{ outcome: 'kept' }] });
    expect(await letters()).toEqual([first]);
    expect(rowOf()).toMatchObject({ status: 'REJECTED' });
  });

  test('exits with 1, as one that leaves a dead letter', async () => {
    const { run } = await passedOver();
    const { code, out } = await run('dlq', 'redrive', source, ...APPLY);
    expect(code).toBe(1);
    expect(out).toContain('Nothing in consumer:worker would run again.');
  });

  test('would not run even if the deployed code refuses it, or if it is too old', async () => {
    const { json, code, rowOf, memory } = await passedOver();
    code.isFixed = false;
    await memory.write({ Put: { Item: { ...rowOf(), reason: 'EVENT_TOO_OLD' } as never } });
    expect((await json('dlq', 'redrive', source)).verdicts).toMatchObject({ superseded: 1, 'too-old': 0 });
  });

  test('whose dead letter is discarded ends without a run', async () => {
    const { json, letters, rowOf } = await passedOver();
    expect(await json('dlq', 'discard', source, '--all', ...APPLY)).toMatchObject({
      deadLetters: [{ outcome: 'discarded' }],
    });
    expect(await letters()).toEqual([]);
    expect(rowOf()).toMatchObject({ status: 'DISCARDED' });
  });

  test('is not suggested by why', async () => {
    const { json, first } = await passedOver();
    const { verdict } = await json('why', first);
    expect(verdict.next).toContain(`dlq discard ${source} `);
    expect(verdict.text).toContain('number 2 was applied or passed over. A redrive would leave it.');
  });
});

describe('a message that is superseded while it is redriven', () => {
  test('is not counted as processed, and its dead letter stays', async () => {
    const { json, letters, first, applied } = await inRace();
    const done = await json('dlq', 'redrive', source, ...APPLY);
    expect(done).toMatchObject({
      verdicts: { runs: 1 },
      processed: 0,
      superseded: 1,
      deadLetters: [{ outcome: 'superseded' }],
    });
    expect(applied).toEqual([]);
    expect(await letters()).toEqual([first]);
  });

  test('is reported in words, with exit code 1', async () => {
    const { run } = await inRace();
    const { code, out } = await run('dlq', 'redrive', source, ...APPLY);
    expect(code).toBe(1);
    expect(out).toContain('0 of 1 processed, 1 superseded');
  });

  test('stays superseded in the next plan, and a discard deletes its dead letter', async () => {
    const { json, letters } = await inRace();
    await json('dlq', 'redrive', source, ...APPLY);
    expect((await json('dlq', 'redrive', source)).verdicts).toMatchObject({ superseded: 1, handled: 0 });
    await json('dlq', 'discard', source, '--all', ...APPLY);
    expect(await letters()).toEqual([]);
  });
});

describe('a message that an operator ends while it is redriven', () => {
  test.each([
    ['dlq', 'discard', source],
    ['messages', 'resolve', 'worker'],
  ])('by %s %s is not counted as processed', async (...words) => {
    const rig = await orderedMailroom(3);
    const { 4: first = '' } = await rig.commit([4, -1]);
    await rig.publish();
    await rig.drain();
    rig.code.isFixed = true;
    const { send } = rig.queues;
    Object.assign(rig.queues, {
      send: async (url: string, body: string) => {
        await rig.undelivered(...words, first, ...APPLY);
        return send(url, body);
      },
    });
    expect(await rig.json('dlq', 'redrive', source, ...APPLY)).toMatchObject({
      processed: 0,
      stopped: false,
      deadLetters: [{ verdict: 'runs', outcome: 'deleted' }],
    });
    expect(rig.applied).toEqual([]);
    expect(await rig.letters()).toEqual([]);
  });
});

describe('the dead letter of an ordered message', () => {
  test('is deleted once its message was processed', async () => {
    const rig = await orderedMailroom(3);
    await rig.commit([4, -1], [5, 1]);
    await rig.publish();
    await rig.drain();
    rig.code.isFixed = true;
    expect(await rig.json('dlq', 'redrive', source, ...APPLY)).toMatchObject({ processed: 2, superseded: 0 });
    expect(rig.applied).toEqual([4, 5]);
    expect(await rig.letters()).toEqual([]);
  });

  test('stays while its message waits, and the next redrive deletes it as handled', async () => {
    const rig = await orderedMailroom(3);
    const { 4: first = '' } = await rig.commit([4, -1]);
    await rig.publish();
    await rig.drain();
    rig.code.isFixed = true;
    const { send } = rig.queues;
    const held: string[] = [];
    Object.assign(rig.queues, { send: async (_url: string, body: string) => held.push(body) });
    const { out } = await rig.run('dlq', 'redrive', source, '--wait', '1s', ...APPLY);
    expect(unwrapped(out)).toContain(
      '1 dead letter of ordered messages stays until that has happened: repeat the command then.',
    );
    expect(await rig.letters()).toEqual([first]);
    for (const body of held) await send('queue', body);
    await rig.drain();
    expect(rig.applied).toEqual([4]);
    expect((await rig.json('dlq', 'redrive', source, ...APPLY)).verdicts).toMatchObject({ handled: 1 });
    expect(await rig.letters()).toEqual([]);
  });

  /** Number 1 was rejected, 2 is applied, and then the handler is fixed. @param order - of the handler alone @param ofConsumer - in the directory */
  async function priced(order: LatestOrder | undefined, ofConsumer?: string) {
    const Priced = defineEvent({
      source: 'things',
      type: 'Priced',
      version: 1,
      aggregateType: 'Thing',
      schema: z.object({ n: z.int() }),
      sequence: true,
    });
    let isFixed = false;
    const handler = leased(
      Priced,
      async ({ data: { n } }) => {
        if (n < 0 && !isFixed) throw new PoisonMessage('n is negative');
      },
      { order },
    );
    const rig = operatingMailroom([handler]);
    const consumers = rig.directory.consumers.map((entry) => ({ ...entry, order: ofConsumer }));
    Object.assign(rig, { directory: { ...rig.directory, consumers } });
    const [first] = await rig.outbox.commit({
      events: [Priced.create({ aggregateId: '1', sequence: 1, data: { n: -1 } })],
    });
    await rig.outbox.commit({ events: [Priced.create({ aggregateId: '1', sequence: 2, data: { n: 1 } })] });
    await rig.publish();
    await rig.drain();
    isFixed = true;
    const redrive = async () =>
      JSON.parse((await rig.until(runInMemory(rig, ['dlq', 'redrive', source, '--json', ...APPLY]))).out);
    return { ...rig, first: first?.eventId ?? '', redrive };
  }

  test("stays if only its consumer's function knows its order, and a later number was applied", async () => {
    const { memory, first, redrive } = await priced(latest());
    for (const keyOf of [inboxKey, rejectedKey])
      await memory.write({ Delete: { Key: { ...keyOf('worker', first) } } });
    expect(await redrive()).toMatchObject({ verdicts: { superseded: 1, runs: 0 }, processed: 0 });
  });

  test.each([
    ['is redriven once the order was removed, whatever place its row has', undefined, 1],
    ['stays if the directory has an order that the function does not have yet', 'latest', 0],
  ])('%s', async (_title, ofConsumer, runs) => {
    const { memory, first, redrive } = await priced(undefined, ofConsumer);
    const of = { consumer: 'worker', source: 'things', group: 'Priced', aggregateType: 'Thing' };
    const last = lastKey({ ...of, aggregateId: '1' });
    const order = { key: last.PK, mode: 'latest', sequence: 1 };
    const key = inboxKey('worker', first);
    await memory.write({ Put: { Item: { ...memory.item(key), ...key, order } } });
    await memory.write({ Put: { Item: { ...last, last: 2, at: 0, schema: 1 } } });
    expect(await redrive()).toMatchObject({ verdicts: { superseded: 1 - runs, runs }, processed: runs });
  });
});
