import { describe, expect, test } from 'vitest';
import { strict } from '../../../../lambdas/runtime/base/order.ts';
import { transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { allowTooOld } from '../../../../lambdas/runtime/operations/message-operations.ts';
import { seedSequence, skipSequence } from '../../../../lambdas/runtime/operations/order-operations.ts';
import { lastKey } from '../../../../lambdas/runtime/store/keys.ts';
import { Counted, rig, startedLongAgo } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, envelope, inboxRow } from './consumer-rig.ts';

const note = { by: 'ada', reason: 'looked at' };

/** Number 1 is older than the retention of the inbox and has no row; the consumer passes over what it rejects. */
async function afterTheFirst() {
  const parts = rig();
  await startedLongAgo(parts.memory);
  const applied: number[] = [];
  const handler = transactional(Counted, async ({ sequence }) => {
    applied.push(sequence);
    return {};
  });
  const { PK: key } = lastKey({
    ...{ consumer: CONSUMER, source: 'things', group: 'strict' },
    ...{ aggregateType: 'Thing', aggregateId: '1' },
  });
  const order = strict({ onReject: 'skip' });
  const { drain } = consumer(parts, [handler], parts.table, { order, maxReceives: 3 });
  const send = (sequence: number) => {
    const event = envelope(parts, { type: 'Counted', version: 1, sequence });
    parts.queue.send(body(event));
    return event;
  };
  const first = send(1);
  await parts.clock.advance(40 * 86_400_000);
  await drain();
  return {
    ...parts,
    ...{ applied, drain, send, first, key },
    row: (event = first) => inboxRow(parts, event),
    last: () => parts.memory.item({ PK: key, SK: 'LAST' })?.last,
    redrive: async () => {
      parts.queue.redrive();
      await drain();
    },
    allow: () => allowTooOld(parts, { ...note, consumer: CONSUMER, eventId: first.eventId }),
  };
}

describe('an event that may have run is rejected, and its number is not passed over, with onReject skip', () => {
  test('so that it runs once an operator allows it', async () => {
    const one = await afterTheFirst();
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
    expect(one.last()).toBeUndefined();
    await one.redrive();
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
    await one.allow();
    await one.redrive();
    expect(one.applied).toEqual([1]);
    expect(one.row()).not.toHaveProperty('supersededBy');
    one.send(2);
    await one.drain();
    expect(one.applied).toEqual([1, 2]);
  });

  test.each([
    ['skips it', skipSequence, 1],
    ['seeds a later number', seedSequence, 40],
  ])('so that an operator who %s decides, and its redrive is absorbed', async (_how, change, sequence) => {
    const one = await afterTheFirst();
    const changed = await change(one, { key: one.key, sequence }, note);
    expect(changed).toEqual({ status: 'changed', last: sequence });
    await one.redrive();
    expect(one.row()).toMatchObject({ status: 'PROCESSED', supersededBy: sequence });
    expect(one.queue.deadLetters()).toEqual([]);
    one.send(sequence + 1);
    await one.drain();
    expect(one.applied).toEqual([sequence + 1]);
  });
});
