import { describe, expect, it, vi } from 'vitest';
import { asDelivered } from '../../../demo/shop.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import { charges, message, partition, put } from '../support/order-system.ts';
import { send } from '../support/queues.ts';
import { type UnpublishedOrder, unpublishedOrder } from '../support/unpublished-order.ts';

vi.setConfig({ maxConcurrency: 10 });

/** An order whose event counts as published, and has reached no consumer. */
async function unseenOrder(): Promise<UnpublishedOrder> {
  const paper = await unpublishedOrder();
  await put({ ...paper.row, status: 'PUBLISHED' });
  return paper;
}

describe.concurrent('messages resolve', () => {
  it('sets a message PROCESSED without running it, and says who, when and why', async () => {
    const { order, envelope } = await unseenOrder();
    const { eventId } = envelope;
    const argv = ['messages', 'resolve', 'payments', eventId, '--reason', 'charged by phone'];
    const plan = await mailroom(...argv);
    expect(plan.code, plan.err).toBe(0);
    expect(unwrapped(plan.out)).toMatch(
      /^Stack \S+, account \d+, region \S+ Would set message .* PROCESSED without running it\. .* Nothing was changed/,
    );
    expect(await message('payments', eventId)).toBeUndefined();
    const apply = [...argv, '--json', '--apply'];
    const run = await mailroom(...apply);
    expect(run.code, run.err).toBe(0);
    const place = { stack: expect.any(String), account: expect.any(String), region: 'us-east-1' };
    const said = { ...place, consumer: 'payments', eventId, applied: true };
    expect(run.json()).toEqual({ ...said, status: 'resolved' });
    expect(await message('payments', eventId)).toMatchObject({
      status: 'PROCESSED',
      processedAt: expect.any(Number),
      resolvedBy: expect.stringContaining('arn:aws'),
      resolvedReason: 'charged by phone',
    });
    const operations = await partition(`OPERATIONS#${new Date().toISOString().slice(0, 7)}`);
    expect(operations.filter(({ subject }) => subject === `payments ${eventId}`)).toMatchObject([
      { command: 'messages resolve', reason: 'charged by phone', by: expect.stringContaining('arn:aws') },
    ]);
    expect((await mailroom(...apply)).json()).toEqual({ ...said, status: 'resolved' });

    // It comes after all, with a neighbor behind it: when that one is charged, this one was absorbed.
    const neighbor = await unpublishedOrder();
    await send('payments', [asDelivered('orders', envelope), asDelivered('orders', neighbor.envelope)]);
    await eventually(async () => expect(await charges(neighbor.order.orderId)).toHaveLength(1));
    expect(await charges(order.orderId)).toEqual([]);
  });

  it('refuses an unknown event, unless it is forced to', async () => {
    const eventId = mintEventId(Date.now(), 8);
    const argv = ['messages', 'resolve', 'payments', eventId, '--reason', 'charged by phone'];
    const refused = await mailroom(...argv);
    expect(refused.code).toBe(3);
    expect(refused.err).toContain('NO_SUCH_EVENT');
    expect(await message('payments', eventId)).toBeUndefined();
    const forced = await mailroom(...argv, '--force');
    expect(forced.out).toContain(`${eventId} --force --apply --reason 'charged by phone'`);
    expect(await message('payments', eventId)).toBeUndefined();
    expect(await mailroom(...argv, '--force', '--apply')).toMatchObject({ code: 0 });
    expect(await message('payments', eventId)).toMatchObject({ status: 'PROCESSED' });
  });

  const eventId = '01a1fba6-4458-7a41-9c37-3f5d2b8e1103';
  it.each([
    [['resolve', 'cashiers', eventId, '--reason', 'by phone'], 3, 'NO_SUCH_CONSUMER'],
    [['allow', 'cashiers', eventId, '--reason', 'by phone'], 3, 'NO_SUCH_CONSUMER'],
    [['allow', 'payments', eventId, '--reason', 'by phone'], 2, 'NOT_TOO_OLD'],
    [['resolve', 'payments', eventId, '--apply'], 2, '--reason'],
    [['resolve', 'payments', eventId, '--reason', 'why'], 2, 'a reason of 3'],
    [['resolve', 'payments', eventId, '--reason', '?'], 2, 'a reason of 3'],
    [['resolve', 'payments', '42', '--reason', 'by phone'], 3, 'NO_SUCH_EVENT'],
    [['resolve', 'payments', '--reason', 'by phone'], 2, 'eventId'],
  ])('message %j is refused', async (argv, code, says) => {
    const run = await mailroom('messages', ...argv);
    expect(run.code).toBe(code);
    expect(unwrapped(run.err)).toContain(says);
  });
});
