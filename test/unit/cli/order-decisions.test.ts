import { expect, test } from 'vitest';
import { inboxKey, lastKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

const LAST = lastKey({ consumer: 'worker', group: 'strict', aggregateType: 'Thing', aggregateId: '1' });

/** A rejected message of a strict consumer: number 3, of an aggregate with this last number. */
async function numbered(last: number) {
  const rig = await rejected();
  const key = inboxKey('worker', rig.eventId);
  const order = { key: LAST.PK, mode: 'strict', sequence: 3 };
  await rig.memory.write({ Put: { Item: { ...rig.memory.item(key), ...key, order } } });
  await rig.memory.write({ Put: { Item: { ...LAST, last, at: 0, schema: 1 } } });
  const run = (...argv: string[]) => rig.until(runInMemory(rig, argv));
  return { ...rig, run, last: () => rig.memory.item({ ...LAST })?.last };
}

test('a message whose predecessor was not applied is neither discarded nor resolved, and names it', async () => {
  const { command, run, letterId, letters, eventId, last } = await numbered(1);
  const discarded = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
  expect(discarded.exitCode).toBe(1);
  expect(discarded.document).toMatchObject({ deadLetters: [{ outcome: 'not-rejectable' }] });
  expect(JSON.stringify(discarded.document)).toContain('sequence 2 of its aggregate was not applied');
  expect(await letters()).toEqual([letterId]);
  const resolved = await run('messages', 'resolve', 'worker', eventId, ...APPLY);
  expect(resolved.code).toBe(2);
  expect(unwrapped(resolved.err)).toMatch(/OUT_OF_ORDER.* before sequence 2 of its aggregate/);
  expect(last()).toBe(1);
});

test('a discarded message whose number is next is passed over', async () => {
  const { command, letterId, letters, last } = await numbered(2);
  const discarded = await command('', 'dlq', 'discard', source, letterId, ...APPLY);
  expect(discarded.document).toMatchObject({ deadLetters: [{ outcome: 'discarded' }] });
  expect(await letters()).toEqual([]);
  expect(last()).toBe(3);
});

test('a message that is resent with other data keeps its number for the event in its place', async () => {
  const { resend, memory, eventId, last } = await numbered(2);
  await resend({ n: 1 }, ...APPLY);
  expect(memory.item(inboxKey('worker', eventId))).toMatchObject({ status: 'DISCARDED' });
  expect(last()).toBe(2);
});
