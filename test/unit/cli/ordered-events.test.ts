import { describe, expect, test } from 'vitest';
import { APPLY, Noted, orderedMailroom, Renamed } from './support/ordered-mailroom.ts';

const source = 'consumer:worker';

describe('why, of an event of a strict consumer', () => {
  test('that waits for a DEAD event names its number, its event and the command', async () => {
    const rig = await orderedMailroom(3);
    const { 4: dead, 5: waits = '' } = await rig.commit([4, 0], [5, 1]);
    await rig.publish();
    await rig.deliver();
    const { verdict } = await rig.json('why', waits);
    expect(verdict).toMatchObject({
      state: 'blocked',
      next: expect.stringContaining(`dlq redrive dead ${dead}`),
    });
  });

  test('that is DEAD names the events that it blocks', async () => {
    const rig = await orderedMailroom(3);
    const ids = await rig.commit([4, 0], [5, 1], [6, 1]);
    await rig.publish();
    await rig.deliver();
    const { verdict } = await rig.json('why', ids[4] ?? '');
    expect(verdict.state).toBe('dead');
    expect(verdict.text).toContain(ids[5]);
  });

  test('that is discarded in the outbox blocks until it is passed over, and then its successor is applied', async () => {
    const rig = await orderedMailroom(3);
    const { 4: gone = '', 5: waits = '' } = await rig.commit([4, 0], [5, 1]);
    await rig.publish();
    await rig.deliver();
    await rig.json('dlq', 'discard', 'dead', gone, ...APPLY);
    for (const id of [gone, waits]) {
      const { verdict } = await rig.json('why', id);
      expect(verdict).toMatchObject({
        state: 'blocked',
        next: expect.stringContaining('order skip worker Thing 1 4'),
      });
      expect(verdict.text).toMatch(/discarded/);
    }
    await rig.json('order', 'skip', 'worker', 'Thing', '1', '4', ...APPLY);
    await rig.drain();
    expect(rig.applied).toEqual([5]);
    expect((await rig.json('why', waits)).verdict.state).toBe('processed');
  });

  test('that was rejected out of order names the rejected event to redrive first, then itself', async () => {
    const rig = await orderedMailroom(3);
    const ids = await rig.commit([4, -1], [5, 1]);
    await rig.publish();
    await rig.drain();
    const late = (await rig.json('why', ids[5] ?? '')).verdict;
    expect(late).toMatchObject({
      state: 'rejected',
      next: expect.stringContaining(`dlq redrive ${source} ${ids[4]}`),
    });
  });

  test('whose predecessor is on its way only waits', async () => {
    const rig = await orderedMailroom(2);
    const { 4: waits = '' } = await rig.commit([4, 1]);
    await rig.publish();
    const { 3: first } = await rig.commit([3, 1]);
    await rig.deliver();
    const { verdict } = await rig.json('why', waits);
    expect(verdict).toMatchObject({ state: 'waiting', next: expect.stringContaining(`why ${first}`) });
  });

  test.each([
    [3, 'order skip worker Thing 1 4', 'order seed'],
    [undefined, 'order seed worker Thing 1 4', 'nothing else'],
  ])('whose predecessor was not written (last number %s) names %s', async (last, named, unnamed) => {
    const rig = await orderedMailroom(last);
    const { 5: waits = '' } = await rig.commit([5, 1]);
    await rig.publish();
    await rig.deliver();
    const { verdict } = await rig.json('why', waits);
    expect(verdict).toMatchObject({ state: 'blocked', next: expect.stringContaining('why 1 --since 24h') });
    expect(verdict.text).toContain(`\`${named}\``);
    expect(verdict.text).not.toContain(unnamed);
  });

  test('whose definition declares no sequence waits for none, whatever number it carries', async () => {
    const rig = await orderedMailroom(3);
    const event = Noted.create({ aggregateId: '1', sequence: 9, data: { n: 1 } });
    const [noted] = await rig.outbox.commit({ events: [event] });
    await rig.commit([5, 1]);
    const other = Renamed.create({ aggregateId: 'of 1', sequence: 6, data: { n: 1 } });
    await rig.outbox.commit({ events: [other] });
    await rig.publish();
    const { verdict } = await rig.undelivered('why', noted?.eventId ?? '');
    expect(verdict.state).toBe('waiting');
    expect(verdict.text).not.toContain('number');
    const { aggregates } = await rig.json('order', 'show', 'worker', 'Thing', '1');
    expect(aggregates).toMatchObject([{ waiting: [{ sequence: 5 }] }]);
  });

  test('that was superseded says so, and by which number', async () => {
    const rig = await orderedMailroom(3);
    const { 4: skipped = '', 5: applied = '' } = await rig.commit([4, -1], [5, 1]);
    await rig.publish();
    await rig.drain();
    await rig.json('order', 'skip', 'worker', 'Thing', '1', '4', ...APPLY);
    expect((await rig.json('dlq', 'redrive', source)).deadLetters).toMatchObject([
      { eventId: skipped, verdict: 'superseded' },
      { eventId: applied, verdict: 'runs' },
    ]);
    await rig.json('dlq', 'redrive', source, applied, ...APPLY);
    rig.queue.redrive(); // as the AWS console does, which knows of no order
    await rig.drain();
    expect(rig.applied).toEqual([5]);
    expect((await rig.json('why', applied)).verdict.text).not.toContain('superseded');
    expect((await rig.json('why', skipped)).verdict).toMatchObject({
      state: 'processed',
      text: expect.stringContaining('superseded'),
    });
  });
});

describe('dlq redrive of a strict consumer', () => {
  test('refuses messages whose predecessor is DEAD, and names its redrive', async () => {
    const rig = await orderedMailroom(3);
    const ids = await rig.commit([4, 0], [5, 1], [6, 1]);
    await rig.publish();
    await rig.drain();
    const plan = await rig.json('dlq', 'redrive', source);
    expect(plan.verdicts).toMatchObject({ runs: 0, 'out-of-order': 2 });
    expect(plan.deadLetters[0]).toMatchObject({
      code: 'OUT_OF_ORDER',
      message: expect.stringContaining(ids[4] ?? ''),
    });
    expect(await rig.text('dlq', 'redrive', source)).toContain(`dlq redrive dead ${ids[4]}`);
  });

  test('refuses a message whose predecessor is a dead letter of another choice', async () => {
    const rig = await orderedMailroom(3);
    const ids = await rig.commit([4, -1], [5, 1]);
    await rig.publish();
    await rig.drain();
    rig.code.isFixed = true;
    const alone = await rig.json('dlq', 'redrive', source, ids[5] ?? '', ...APPLY);
    expect(alone).toMatchObject({ verdicts: { runs: 0, 'out-of-order': 1 }, processed: 0 });
    expect(rig.applied).toEqual([]);
  });

  test('redrives those of one aggregate together, the lowest number first', async () => {
    const rig = await orderedMailroom(3);
    await rig.commit([6, 1], [5, 1], [4, -1]);
    await rig.publish();
    await rig.drain();
    rig.code.isFixed = true;
    const done = await rig.json('dlq', 'redrive', source, ...APPLY);
    expect(done).toMatchObject({ verdicts: { runs: 3, 'out-of-order': 0 }, processed: 3, stopped: false });
    expect(rig.applied).toEqual([4, 5, 6]);
  });

  test('redrives a message that waits for an event on its way', async () => {
    const rig = await orderedMailroom(2);
    await rig.commit([4, 1]);
    await rig.publish();
    await rig.drain();
    await rig.commit([3, 1]);
    const plan = await rig.json('dlq', 'redrive', source);
    expect(plan.verdicts).toMatchObject({ runs: 1, 'out-of-order': 0 });
  });
});

describe.each(['block', 'skip'] as const)('with onReject %s, an event without a handler', (onReject) => {
  test('holds up its aggregate, although its number can be read, until an operator passes over it', async () => {
    const rig = await orderedMailroom(3, undefined, onReject);
    const event = Renamed.create({ aggregateId: '1', sequence: 4, data: { n: 1 } });
    const [renamed] = await rig.outbox.commit({ events: [event] });
    const { 5: waits = '' } = await rig.commit([5, 1]);
    await rig.publish();
    await rig.drain();
    expect(rig.last()).toBe(3);
    const shown = await rig.json('order', 'show', 'worker');
    expect(shown.aggregates).toMatchObject([
      {
        missing: 4,
        holder: { eventId: renamed?.eventId, state: 'rejected', reason: 'UNKNOWN_EVENT_TYPE' },
        waiting: [{ sequence: 5, state: 'rejected', reason: 'OUT_OF_ORDER' }],
      },
    ]);
    await rig.json('order', 'skip', 'worker', 'Thing', '1', '4', ...APPLY);
    await rig.json('dlq', 'redrive', source, waits, ...APPLY);
    expect(rig.applied).toEqual([5]);
    expect(rig.last()).toBe(5);
  });
});

describe('dlq discard of a strict consumer', () => {
  test('passes over the numbers of one aggregate from the lowest, whatever their order in the queue', async () => {
    const rig = await orderedMailroom(3);
    await rig.commit([7, 1], [6, 1], [5, 1], [4, -1]);
    await rig.publish();
    await rig.drain();
    const { receive } = rig.queues;
    Object.assign(rig.queues, {
      receive: async (...of: Parameters<typeof receive>) => (await receive(...of)).toReversed(),
    });
    const { deadLetters } = await rig.json('dlq', 'discard', source, '--all', ...APPLY);
    expect(deadLetters.map(({ outcome }: { outcome: string }) => outcome)).toEqual(
      Array(4).fill('discarded'),
    );
    expect(rig.last()).toBe(7);
  });

  test('keeps those whose predecessor stays', async () => {
    const rig = await orderedMailroom(3);
    await rig.commit([7, 1], [6, 1], [4, -1]);
    await rig.publish();
    await rig.drain();
    const { deadLetters } = await rig.json('dlq', 'discard', source, '--all', ...APPLY);
    expect(deadLetters).toMatchObject([
      { outcome: 'discarded' },
      { outcome: 'not-rejectable', message: expect.stringMatching(/^OUT_OF_ORDER: .* 5 /) },
      { outcome: 'not-rejectable' },
    ]);
    expect(rig.last()).toBe(4);
  });
});

describe('order show', () => {
  test('names the last number and its time, a DEAD event that is next, and what waits for it', async () => {
    const rig = await orderedMailroom(3);
    const ids = await rig.commit([4, 0], [5, 1], [6, 1]);
    await rig.publish();
    await rig.deliver();
    const shown = await rig.json('order', 'show', 'worker', 'Thing', '1');
    expect(shown.aggregates).toMatchObject([
      {
        last: 3,
        at: expect.any(Number),
        missing: 4,
        holder: { sequence: 4, eventId: ids[4], type: 'Counted', state: 'dead', reason: null },
        waiting: [
          { sequence: 5, eventId: ids[5], state: 'published' },
          { sequence: 6, eventId: ids[6], state: 'published' },
        ],
        next: expect.stringContaining(`dlq redrive dead ${ids[4]}`),
      },
    ]);
  });
});
