import { describe, expect, test } from 'vitest';
import { type EventOrder, latest, strict } from '../../../../lambdas/runtime/base/order.ts';
import { transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { seedSequence, skipSequence } from '../../../../lambdas/runtime/operations/order-operations.ts';
import { lastKey } from '../../../../lambdas/runtime/store/keys.ts';
import { Counted, rig } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, envelope, inboxRow } from './consumer-rig.ts';

const note = { by: 'ada', reason: 'the order was changed' };

/** The numbers that were applied, in their order. */
const STATE = { PK: 'THING#1', SK: 'THING' };

/** Two versions of a consumer on one queue: with an order, and without. */
function versions(order: EventOrder) {
  const parts = rig();
  const applied = () => (parts.memory.item(STATE)?.applied as number[] | undefined) ?? [];
  const handler = transactional(Counted, async ({ sequence }) => ({
    writes: [{ Put: { Item: { ...STATE, applied: [...applied(), sequence] } } }],
  }));
  const group = order.mode === 'strict' ? 'strict' : 'Counted';
  const { PK: key } = lastKey({
    source: 'things',
    consumer: CONSUMER,
    group,
    aggregateType: 'Thing',
    aggregateId: '1',
  });
  return {
    ...parts,
    applied,
    without: consumer(parts, [handler]),
    ordered: consumer(parts, [handler], parts.table, { order, maxReceives: 6 }),
    send: (sequence: number) => {
      const event = envelope(parts, { type: 'Counted', version: 1, sequence });
      parts.queue.send(body(event));
      return event;
    },
    again: (event: ReturnType<typeof envelope>) => parts.queue.send(body(event)),
    missing: (event: ReturnType<typeof envelope>) => inboxRow(parts, event)?.lastError,
    seed: (sequence: number) => seedSequence(parts, { key, sequence }, note),
    skip: (sequence: number) => skipSequence(parts, { key, sequence }, note),
  };
}

describe('a strict order', () => {
  test('that is added begins after the number that an operator seeds', async () => {
    const { without, ordered, queue, ...one } = versions(strict());
    for (const n of [1, 2]) {
      one.send(n);
      await without.drain();
    }
    const third = one.send(3);
    await ordered.drain();
    expect(one.missing(third)).toContain('sequence 1 of its aggregate was not applied');
    expect(await one.seed(2)).toMatchObject({ status: 'changed' });
    queue.redrive();
    await ordered.drain();
    expect(one.applied()).toEqual([1, 2, 3]);
  });

  test('does not know what a worker of the version before has applied beside it, and applies nothing twice', async () => {
    const { without, ordered, queue, ...one } = versions(strict());
    const first = one.send(1);
    await without.deliver();
    one.send(2);
    one.again(first);
    await ordered.drain();
    expect(one.applied()).toEqual([1]);
    expect(await one.seed(1)).toMatchObject({ status: 'changed' });
    queue.redrive();
    one.again(first);
    await ordered.drain();
    expect(one.applied()).toEqual([1, 2]);
    expect(queue.deadLetters()).toEqual([]);
  });

  test('that was removed for a while goes on after its old number, and those since are passed over by a seed', async () => {
    const { without, ordered, queue, ...one } = versions(strict());
    one.send(1);
    await ordered.drain();
    const second = one.send(2);
    await without.drain();
    one.send(3);
    await without.drain();
    const fourth = one.send(4);
    await ordered.drain();
    expect(one.missing(fourth)).toContain('sequence 2 of its aggregate was not applied');
    expect(await one.skip(3)).toEqual({ status: 'refused', last: 1 });
    expect(await one.seed(3)).toEqual({ status: 'changed', last: 3 });
    queue.redrive();
    one.again(second);
    await ordered.drain();
    expect(one.applied()).toEqual([1, 2, 3, 4]);
  });
});

test('a worker of the version before the order applies an event that latest would absorb', async () => {
  const { without, ordered, ...one } = versions(latest());
  one.send(2);
  await ordered.drain();
  one.send(1);
  await without.drain();
  for (const n of [1, 3]) one.send(n);
  await ordered.drain();
  expect(one.applied()).toEqual([2, 1, 3]);
});
