import { expect, it } from 'vitest';
import { exploredQueue } from '../../../testing/explorer/explored-queue.ts';
import { manualClock, memoryQueue } from '../../../testing/index.ts';

function received(twice: boolean) {
  const clock = manualClock();
  const queue = exploredQueue(memoryQueue({ clock, visibilityTimeoutMs: 30_000 }), twice);
  queue.send('a message');
  const [first] = queue.receive(1);
  if (first === undefined) throw new Error('The message was not received');
  return { clock, queue, first };
}

it('delivers one message to two workers at once, and either receipt deletes it', () => {
  for (const which of [0, 1]) {
    const { queue, first } = received(true);
    const [second] = queue.receive(1);
    expect(second).toMatchObject({ messageId: first.messageId, body: first.body });
    expect(second?.receiptHandle).not.toBe(first.receiptHandle);
    expect(queue.receive(1)).toEqual([]); // not to a third
    queue.delete([first, second][which]?.receiptHandle ?? '');
    expect(queue.messages()).toEqual([]);
  }
});

it('delivers a hidden message once by default', () => {
  const { queue } = received(false);
  expect(queue.receive(1)).toEqual([]);
});

it('applies a visibility change with an old receipt to the message that was received again', async () => {
  const { clock, queue, first } = received(false);
  await clock.advance(30_000);
  const [again] = queue.receive(1);
  expect(again?.messageId).toBe(first.messageId);
  expect(queue.receive(1)).toEqual([]);
  await queue.changeVisibility(first.receiptHandle, 0);
  expect(queue.receive(1)).toHaveLength(1);
});
