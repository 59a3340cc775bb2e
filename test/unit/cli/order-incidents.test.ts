import { expect, test } from 'vitest';
import { lastKey } from '../../../lambdas/runtime/store/keys.ts';
import { Counted } from '../../support/runtime-rig.ts';
import { APPLY, orderedMailroom } from './support/ordered-mailroom.ts';

type Rig = Awaited<ReturnType<typeof orderedMailroom>>;

const LAST = lastKey({
  ...{ source: 'things', consumer: 'worker', group: 'strict' },
  ...{ aggregateType: 'Thing', aggregateId: '1' },
});

/** Commits events, and lets every receive of their messages pass. */
async function received(rig: Rig, ...numbered: readonly (readonly [sequence: number, n: number])[]) {
  const ids = await rig.commit(...numbered);
  await rig.publish();
  await rig.drain();
  return ids;
}

test('the numbers of an aggregate that began again: why requires action, and names the number that was applied', async () => {
  const rig = await orderedMailroom();
  await received(rig, [1, 1], [2, 1], [3, 1]);
  const { 2: lost = '' } = await received(rig, [1, 1], [2, 1]);
  expect(rig.applied).toEqual([1, 2, 3]);
  const { code, out } = await rig.run('why', lost);
  expect(code).toBe(1);
  const [next = ''] = /order show worker Thing 1/.exec(out) ?? [];
  const { verdict } = await rig.json('why', lost);
  expect(verdict).toMatchObject({
    state: 'superseded',
    text: expect.stringContaining('its counter was deleted'),
  });
  expect(await rig.text(...next.split(' '))).toMatch(/number 3 .*4 is next/);
  // Under the next number, it is applied.
  await received(rig, [4, 1]);
  expect(rig.applied).toEqual([1, 2, 3, 4]);
});

test('an order that was seeded too far ahead: why names who did it, and the events that were passed over', async () => {
  const rig = await orderedMailroom(3);
  await rig.json('order', 'seed', 'worker', 'Thing', '1', '40', ...APPLY);
  const { 4: over = '' } = await received(rig, [4, 1]);
  expect(await rig.text('why', over)).toMatch(
    /worker did not run .* number 40 .*ada passed over it with `order seed` at .*decided with the team.*under the next number/,
  );
});

test('a last number that was deleted: why of an event that waits names the seed, after which its redrive applies all', async () => {
  const rig = await orderedMailroom(3);
  await rig.memory.write({ Delete: { Key: { ...LAST } } });
  const { 5: waits = '' } = await received(rig, [4, 1], [5, 1]);
  const why = await rig.text('why', waits);
  const [seed = ''] = /order seed worker Thing 1 3/.exec(why) ?? [];
  const seeded = await rig.text(...seed.split(' '), ...APPLY);
  const [redrive = ''] = /dlq redrive consumer:worker/.exec(seeded) ?? [];
  expect(await rig.text(...redrive.split(' '), ...APPLY)).toContain('2 of 2 processed');
  expect(rig.applied).toEqual([4, 5]);
});

test('a number that was never published: why of an event that waits names the skip, after which its redrive applies all', async () => {
  const rig = await orderedMailroom(3);
  const { 6: waits = '' } = await received(rig, [5, 1], [6, 1]);
  const why = await rig.text('why', waits);
  expect(why).toMatch(/^rejected .*No rejected message and no DEAD event has number 4/);
  const [skip = ''] = /order skip worker Thing 1 4/.exec(why) ?? [];
  const skipped = await rig.text(...skip.split(' '), ...APPLY);
  const [redrive = ''] = /dlq redrive consumer:worker/.exec(skipped) ?? [];
  expect(await rig.text(...redrive.split(' '), ...APPLY)).toContain('2 of 2 processed');
  expect(rig.applied).toEqual([5, 6]);
});

test('a number that two events have: the second is rejected, and why names the first', async () => {
  const rig = await orderedMailroom(3);
  const { 4: first = '' } = await received(rig, [4, 1]);
  const again = Counted.create({ aggregateId: '1', sequence: 4, data: { n: 2 } });
  const [second] = await rig.outbox.commit({ events: [again] });
  await rig.publish();
  await rig.drain();
  expect(await rig.text('why', second?.eventId ?? '')).toMatch(
    new RegExp(`^rejected .*SEQUENCE_REPEATED.*${first} was applied.*dlq discard consumer:worker`),
  );
  expect(rig.applied).toEqual([4]);
});
