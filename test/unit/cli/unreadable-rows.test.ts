import { describe, expect, test } from 'vitest';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';

/** A dead letter whose message was also rejected under the id of its body, when its event could not be read. */
async function readAgain({ isHandled = false, n = -1 } = {}) {
  const rig = await rejected();
  const { memory, letterId, eventId, clock } = rig;
  const [letter] = rig.queue.deadLetters();
  const id = unreadableId(letter?.body ?? '');
  const cause = {
    rejectedAt: clock.now(),
    reason: 'BAD_EXTERNAL_ID',
    fingerprint: 'worker BAD_EXTERNAL_ID: it',
    lastError: 'it',
  };
  const row = { schema: 1, status: 'REJECTED', attempts: 0, fence: 'f', ...cause };
  const rejectedIds = new Set([letterId]);
  await memory.write({ Put: { Item: { ...inboxKey('worker', id), ...row, rejectedIds } } });
  await memory.write({ Put: { Item: { ...rejectedKey('worker', id), schema: 1, ...cause } } });
  if (isHandled) {
    const processed = { schema: 1, status: 'PROCESSED', attempts: 1, fence: 'p', processedAt: clock.now() };
    await memory.write({ Put: { Item: { ...inboxKey('worker', eventId), ...processed } } });
    await memory.write({ Delete: { Key: { ...rejectedKey('worker', eventId) } } });
  } else if (n >= 0) {
    // The deployed code accepts the event now.
    await rig.queues.receive('dead-letters', { limit: 1 });
    const body = (letter?.body ?? '').replace('"n":-1', `"n":${n}`);
    Object.assign(rig.queues, { send: async () => rig.queue.send(body) });
  }
  const redrive = () => rig.command('', 'dlq', 'redrive', source, ...APPLY);
  const list = async () => (await rig.command('', 'messages', 'list', '--rejected')).document.messages;
  return { ...rig, id, redrive, list, pointer: () => memory.item(rejectedKey('worker', id)) };
}

describe('the row of a message that could not be read', () => {
  test.each([
    ['redriven and processed', { n: 5 }, 'processed'],
    ['deleted as already handled', { isHandled: true }, 'deleted'],
  ])('is discarded with its pointer when its dead letter is %s', async (_, options, outcome) => {
    const { redrive, list, id, eventId, rowOf, pointer, command } = await readAgain(options);
    expect(await list()).toEqual(expect.arrayContaining([expect.objectContaining({ eventId: id })]));
    const { exitCode, document } = await redrive();
    expect(exitCode).toBe(0);
    expect(document.deadLetters).toMatchObject([{ eventId, outcome }]);
    expect(await rowOf(id)).toMatchObject({
      status: 'DISCARDED',
      discardedReason: `Read as ${eventId}: the price was wrong`,
      expiresAt: expect.any(Number),
    });
    expect(pointer()).toBeUndefined();
    expect(await list()).toEqual([]);
    expect((await command('', 'status')).document.consumers.worker.rejected).toBe(0);
  });

  test('stays while its event is not done', async () => {
    const { redrive, id, rowOf, pointer } = await readAgain();
    expect((await redrive()).document.deadLetters).toMatchObject([{ outcome: 'failed-again' }]);
    expect(await rowOf(id)).toMatchObject({ status: 'REJECTED' });
    expect(pointer()).toBeDefined();
  });

  test('is not created by a redrive', async () => {
    const { redrive, id, rowOf, memory } = await readAgain({ n: 5 });
    for (const key of [inboxKey('worker', id), rejectedKey('worker', id)])
      await memory.write({ Delete: { Key: { ...key } } });
    await redrive();
    expect(await rowOf(id)).toBeUndefined();
  });
});

describe('of a rejected message whose row or pointer TTL has deleted', () => {
  test('the pointer alone is not listed, and not counted once its time is over', async () => {
    const { list, command, id, memory, clock, pointer } = await readAgain({ isHandled: true });
    await memory.write({ Delete: { Key: { ...inboxKey('worker', id) } } });
    const over = { ...pointer(), ...rejectedKey('worker', id), expiresAt: Math.floor(clock.now() / 1_000) };
    await memory.write({ Put: { Item: over } });
    expect((await command('', 'status')).document.consumers.worker.rejected).toBe(0);
    await memory.write({ Put: { Item: { ...over, expiresAt: over.expiresAt + 1 } } });
    expect((await command('', 'status')).document.consumers.worker.rejected).toBe(1);
    expect(await list()).toEqual([]);
  });

  test('the row alone is not listed, and why still shows it with the command that resolves it', async () => {
    const { list, command, id, memory, clock } = await readAgain({ isHandled: true });
    await memory.write({ Delete: { Key: { ...rejectedKey('worker', id) } } });
    expect(await list()).toEqual([]);
    expect((await command('', 'status')).document.consumers.worker.rejected).toBe(0);
    const { exitCode, document } = await command('', 'why', id);
    expect(exitCode).toBe(1);
    expect(document.verdict).toMatchObject({ state: 'rejected', eventId: id });
    const { messages } = (await command('', 'messages', 'list')).document;
    expect(messages).toEqual([]);
    await clock.advance(1);
    const resolved = await command('', 'messages', 'resolve', 'worker', id, ...APPLY);
    expect(resolved.document).toMatchObject({ status: 'resolved' });
  });

  test('is discarded with its pointer when its dead letter is discarded', async () => {
    const { command, id, rowOf, pointer, letters } = await readAgain();
    const { exitCode } = await command('', 'dlq', 'discard', source, '--all', ...APPLY);
    expect(exitCode).toBe(0);
    expect(await letters()).toEqual([]);
    expect(await rowOf(id)).toMatchObject({ status: 'DISCARDED' });
    expect(pointer()).toBeUndefined();
  });
});
