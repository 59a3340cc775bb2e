import { describe, expect, test, vi } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, consumer, inboxRow, send } from './consumer-rig.ts';

describe('a leased handler', () => {
  test('is given the event and its message is processed, once', async () => {
    const parts = rig();
    const handle = vi.fn(async () => ({ fine: true }));
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts);
    parts.queue.send(body(event)); // the same event again, as a message of its own
    await deliver();
    await consumer(parts, [leased(ThingHappened, handle)]).drain();
    expect(handle).toHaveBeenCalledExactlyOnceWith(
      { ...event, source: 'things' },
      expect.objectContaining({ attempt: 1 }),
    );
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'PROCESSED',
      attempts: 1,
      result: '{"fine":true}',
      schema: 1,
      expiresAt: expect.any(Number),
    });
    expect(parts.queue.messages()).toEqual([]);
    expect(parts.queue.deadLetters()).toEqual([]);
  });

  test('is not begun when the function has too little time left', async () => {
    const parts = rig();
    const handle = vi.fn();
    const event = send(parts);
    await consumer(parts, [leased(ThingHappened, handle)]).deliver(1_500);
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toBeUndefined();
  });
});

test('a value that is not a handler is refused by its position', () => {
  const handlers = [leased(ThingHappened, vi.fn()), vi.fn()] as never;
  expect(() => consumer(rig(), handlers)).toThrow(/^handlers\[1\] is of type function, .* leased/);
});

test('two handlers of one event type are refused', () => {
  const parts = rig();
  const twice = [leased(ThingHappened, vi.fn()), transactional(ThingHappened, vi.fn())];
  expect(() => consumer(parts, twice)).toThrow('Two handlers take ThingHappened from things');
});
