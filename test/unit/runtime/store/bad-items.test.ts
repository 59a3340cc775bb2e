import { describe, expect, test } from 'vitest';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import type { Table, TransactAction } from '../../../../lambdas/runtime/store/table.ts';
import type { MemoryTable } from '../../../../testing/index.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, send } from '../consume/consumer-rig.ts';

const KEY = { PK: 'THING#2', SK: 'THING' };
/** What code hands over that the compiler could not see into. */
const late: TransactAction = { Put: { Item: { ...KEY, order: { placedAt: new Date() } as object } } };
const circle: { self?: object } = {};
circle.self = circle;

/** A rig that counts the transactions that are sent to the table. */
function countingRig() {
  let sent = 0;
  const wrap = (memory: MemoryTable): Table => ({
    ...memory,
    transact: (actions, token) => {
      sent += 1;
      return memory.transact(actions, token);
    },
  });
  const parts = rig({ wrap });
  return { ...parts, sent: () => sent };
}

describe('a value that cannot be stored', () => {
  test('is refused at once by outbox.commit, which names the action, the way to it and what it is', async () => {
    const { table, clock, sent, happened, memory } = countingRig();
    const outbox = createOutbox({ config: consumerConfig, table, clock });
    const committed = outbox.commit({ writes: [domainRow, late], events: [happened(1)] });
    // The clock stands still: a commit that slept before another try would never end.
    await expect(committed).rejects.toMatchObject({
      code: 'BAD_ITEM',
      message:
        'Action 2 of 3 (Put): order.placedAt is a Date, which cannot be stored. Store its toISOString() or its getTime().',
    });
    expect(sent()).toBe(0);
    expect(memory.items()).toEqual([]);
  });

  test.each([
    ['contains itself', { ...KEY, circle }, 'circle.self.self'],
    ['has a getter that throws', { ...KEY, order: throwing() }, 'throws when it is read'],
  ])('is an item that %s', async (_what, Item, text) => {
    const { outbox } = rig();
    await expect(outbox.commit({ writes: [{ Put: { Item } }] })).rejects.toMatchObject({
      code: 'BAD_ITEM',
      message: expect.stringContaining(text),
    });
  });

  test('fails the handler whose ctx.commit has it, which may commit something else', async () => {
    const parts = countingRig();
    const errors: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [late] }).catch((error: unknown) => errors.push(error));
      await ctx.commit({ writes: [domainRow] });
    });
    const row = await delivered(parts, handler);
    expect(errors).toMatchObject([
      { code: 'BAD_ITEM', message: expect.stringContaining('Action 1 of 1 (Put): order.placedAt is a Date') },
    ]);
    expect(row).toMatchObject({ status: 'PROCESSED' });
    expect(parts.sent()).toBe(1);
  });

  test('fails the message whose transactional handler returns it, before anything is sent', async () => {
    const parts = countingRig();
    await delivered(
      parts,
      transactional(ThingHappened, async () => ({ writes: [domainRow, late] })),
    );
    expect(parts.sent()).toBe(0);
    const errors = parts.telemetry.lines().map(({ extra }) => (extra as { error?: Error })?.error?.message);
    expect(errors).toContainEqual(expect.stringContaining('Action 2 of 2 (Put): order.placedAt is a Date'));
  });
});

async function delivered(parts: ReturnType<typeof countingRig>, handler: Handler) {
  const { deliver } = consumer(parts, [handler]);
  const event = send(parts);
  await deliver();
  return inboxRow(parts, event);
}

function throwing(): object {
  const get = () => {
    throw new Error('secret');
  };
  return Object.defineProperty({}, 'total', { get, enumerable: true });
}
