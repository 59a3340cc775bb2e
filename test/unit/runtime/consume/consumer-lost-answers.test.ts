import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { staleReads } from '../../../support/stale-reads.ts';
import { consumer, domainRow, inboxRow, leaveEffect, send } from './consumer-rig.ts';

/** A table that gets the first write of an attribute twice, as when its answer was lost and the SDK has retried. */
function sentTwice(table: Table, attribute: string): Table {
  let sent = 0;
  return {
    ...table,
    write: async (write) => {
      if (write.Update?.UpdateExpression?.includes(`${attribute} = `)) sent += 1;
      if (sent === 1) await table.write(write);
      return table.write(write);
    },
  };
}

describe('when the answer of the table was lost', () => {
  test.each([
    ['a claim', 'claimedAt'],
    ['the start of an effect', 'effects.#effect'],
    ['the result of an effect', 'completedAt'],
    ['a completion', 'processedAt'],
  ])('%s is recognised', async (_what, attribute) => {
    const parts = rig();
    const event = send(parts);
    const charge = vi.fn(async () => 'charged');
    const handler = leased(ThingHappened, (_event, ctx) => ctx.once('charge', charge));
    const { deliver } = consumer(parts, [handler], sentTwice(parts.memory, attribute));
    await expect(deliver()).resolves.toMatchObject({ failed: [] });
    expect(charge).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.telemetry.counted('MessagesProcessed')).toBe(1);
  });

  test('a failure is recognised', async () => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, () => Promise.reject(new Error('not now')));
    await consumer(parts, [handler], sentTwice(parts.memory, 'lastError')).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1, lastError: 'not now' });
    expect(parts.telemetry.counted('MessagesFailed')).toBe(1);
    expect(parts.telemetry.counted('FenceRefused')).toBe(0);
  });

  test('a release is recognised', async () => {
    const parts = rig();
    const event = send(parts);
    await leaveEffect(parts, event, { endsBy: parts.clock.now() + 20_000 });
    const handler = leased(ThingHappened, (_event, ctx) => ctx.once('charge', async () => 1));
    await consumer(parts, [handler], sentTwice(parts.memory, 'retryAt')).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(parts.telemetry.counted('FenceRefused')).toBe(0);
  });

  test('a commit is recognised by a strongly consistent read of the row', async () => {
    const parts = rig();
    const event = send(parts);
    const stale = staleReads(parts.memory);
    const transact: Table['transact'] = async (...call) => {
      await parts.memory.transact(...call);
      throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
    };
    const committed = vi.fn();
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [domainRow] });
      committed();
    });
    await expect(consumer(parts, [handler], { ...stale, transact }).deliver()).resolves.toMatchObject({
      failed: [],
    });
    expect(committed).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });
});
