import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { type EventOrder, latest, strict } from '../../../../lambdas/runtime/base/order.ts';
import { transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import { lastKey } from '../../../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, envelope, inboxRow } from './consumer-rig.ts';

/** The same type, aggregate type and id, of two services. */
function counted(source: string, sequence = true) {
  const schema = z.object({ n: z.int() });
  return defineEvent({ source, type: 'Counted', version: 1, aggregateType: 'Thing', schema, sequence });
}

/** A consumer of both services, and the numbers that it has applied. */
function ordered(order: EventOrder, isSecondNumbered = true) {
  const parts = rig();
  const applied: string[] = [];
  const handlers = [counted('things', true), counted('shelves', isSecondNumbered)].map((definition) =>
    transactional(definition, async ({ source, sequence }) => {
      applied.push(`${source} ${sequence}`);
      return {};
    }),
  );
  const group = order.mode === 'strict' ? 'strict' : (order.group ?? 'Counted');
  return {
    ...parts,
    applied,
    ...consumer(parts, handlers, parts.table, { order, maxReceives: 6 }),
    lastOf: (source: string) =>
      parts.memory.item(
        lastKey({ consumer: CONSUMER, source, group, aggregateType: 'Thing', aggregateId: '1' }),
      )?.last,
    send(source: string, sequence: number) {
      const event = envelope(parts, { type: 'Counted', version: 1, sequence });
      parts.queue.send({ ...body(event), source });
      return event;
    },
  };
}

describe('two services that number the same type of the same aggregate', () => {
  test.each([latest(), latest({ group: 'things' })])(
    'have a last number each, so that none supersedes an event of the other, with %o',
    async (order) => {
      const one = ordered(order);
      one.send('things', 5);
      await one.drain();
      const third = one.send('shelves', 3);
      await one.drain();
      expect(one.applied).toEqual(['things 5', 'shelves 3']);
      expect(inboxRow(one, third)).not.toHaveProperty('supersededBy');
      expect([one.lastOf('things'), one.lastOf('shelves')]).toEqual([5, 3]);
    },
  );

  test('are applied in the order of each, with strict', async () => {
    const one = ordered(strict());
    one.send('things', 2);
    one.send('shelves', 1);
    one.send('shelves', 2);
    one.send('things', 1);
    await one.drain();
    expect(one.applied.filter((text) => text.startsWith('things'))).toEqual(['things 1', 'things 2']);
    expect(one.applied.filter((text) => text.startsWith('shelves'))).toEqual(['shelves 1', 'shelves 2']);
    expect(one.queue.deadLetters()).toEqual([]);
  });
});

test.each([
  ['things', 'resolved', 1],
  ['shelves', 'resolved', undefined],
  [undefined, 'resolved', undefined],
])(
  'a manual fix of an event of %s is %s, and raises the number of its own service only',
  async (source, status, last) => {
    const one = ordered(strict(), false);
    const cause = { ...envelope(one, { type: 'Counted', version: 1, sequence: 1 }), source };
    const mailroomCommit = {
      by: 'ada',
      reason: 'lost',
      eventId: cause.eventId,
      cause,
      writes: [],
      events: [],
    };
    const answer = await one.handle({ mailroomCommit } as never, lambdaContext({ clock: one.clock }));
    expect(answer).toMatchObject({ settled: { status } });
    expect([one.lastOf('things'), one.lastOf('shelves')]).toEqual([last, undefined]);
  },
);
