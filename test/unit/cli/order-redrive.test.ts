import { expect, test } from 'vitest';
import { z } from 'zod/mini';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { strict } from '../../../lambdas/runtime/base/order.ts';
import { transactional } from '../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../lambdas/runtime/events/event.ts';
import { lastKey } from '../../../lambdas/runtime/store/keys.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { APPLY, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

const Counted = defineEvent({
  source: 'things',
  type: 'Counted',
  version: 1,
  aggregateType: 'Thing',
  schema: z.object({}),
  sequence: true,
});

test('a redrive of all sends the numbers of a strict consumer in order, and each is processed', async () => {
  let isFixed = false;
  const handler = transactional(Counted, async ({ sequence }) => {
    if (sequence === 1 && !isFixed) throw new PoisonMessage('no');
    return {};
  });
  const rig = operatingMailroom([handler], { config: { order: strict(), maxReceives: 3 } });
  for (const sequence of [3, 2, 1]) {
    await rig.outbox.commit({ events: [Counted.create({ aggregateId: '1', data: {}, sequence })] });
    await rig.publish();
    await rig.drain();
  }
  expect(rig.queue.deadLetters()).toHaveLength(3);
  isFixed = true;
  const consumers = rig.directory.consumers.map((entry) => ({ ...entry, order: 'strict:block' }));
  Object.assign(rig, { directory: { ...rig.directory, consumers } });
  const { code } = await rig.until(runInMemory(rig, ['dlq', 'redrive', source, ...APPLY]));
  expect(code).toBe(0);
  const last = lastKey({
    source: 'things',
    consumer: 'worker',
    group: 'strict',
    aggregateType: 'Thing',
    aggregateId: '1',
  });
  expect(rig.memory.item(last)).toMatchObject({ last: 3 });
});
