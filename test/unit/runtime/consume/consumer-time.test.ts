import { describe, expect, test, vi } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage, TransactionCancelled } from '../../../../lambdas/runtime/errors.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, send } from './consumer-rig.ts';

describe('a batch', () => {
  test.each([
    ['leased', leased],
    ['transactional', transactional],
  ])('is answered before its function is stopped, however long a %s handler takes', async (_kind, kind) => {
    const parts = rig();
    const handler = kind(ThingHappened, async () => {
      await parts.clock.sleep(1_000_000);
      return {};
    });
    send(parts);
    const startedAt = parts.clock.now();
    const { failed } = await consumer(parts, [handler]).deliver(20_000);
    expect(failed).toHaveLength(1);
    expect(parts.clock.now() - startedAt).toBeLessThan(20_000);
  });
});

describe('a message', () => {
  test('is hidden by a renewal no longer than until its function is stopped', async () => {
    const parts = rig();
    const endsBy = parts.clock.now() + 20_000;
    const visibleAt: (number | undefined)[] = [];
    const handler = leased(ThingHappened, async () => {
      await parts.clock.sleep(15_000);
      visibleAt.push(parts.queue.messages()[0]?.visibleAt);
    });
    send(parts);
    await consumer(parts, [handler]).deliver(20_000);
    expect(visibleAt[0]).toBeGreaterThanOrEqual(endsBy);
    expect(visibleAt[0]).toBeLessThan(endsBy + 3_000);
  });

  test('that was rejected becomes visible again at once until it is a dead letter', async () => {
    const parts = rig();
    const handler = leased(ThingHappened, async () => {
      throw new PoisonMessage('not like this');
    });
    send(parts);
    const { deliver } = consumer(parts, [handler]);
    for (let receive = 1; parts.queue.deadLetters().length === 0; receive += 1) {
      expect(receive).toBeLessThan(100);
      await deliver();
      await parts.clock.advance(1_000);
    }
  });

  test('whose transaction was throttled is not rerun at once', async () => {
    const parts = rig();
    const handle = vi.fn(async () => ({ events: [1, 2].map(parts.happened) }));
    const transact = async () => {
      throw new TransactionCancelled([
        { code: 'None' },
        { code: 'ConditionalCheckFailed' },
        { code: 'ThrottlingError' },
      ]);
    };
    send(parts);
    await consumer(parts, [transactional(ThingHappened, handle)], { ...parts.memory, transact }).deliver();
    expect(handle).toHaveBeenCalledTimes(1);
  });
});
