import { UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import {
  documents,
  emails,
  get,
  message,
  placeOrder,
  put,
  rejection,
  settled,
  tableName,
} from '../support/order-system.ts';
import { printedCommand, runPrinted } from '../support/printed-command.ts';
import { unpublishedOrder } from '../support/unpublished-order.ts';

const YEARS_AHEAD = Date.UTC(2035, 0);

interface Changed {
  readonly kind: string;
  readonly eventId: string;
}

/** The first event of an order that notifications has processed. */
async function notified() {
  const { orderId } = await placeOrder();
  const { events } = await settled(orderId);
  for (const { envelope } of events) {
    const row = await message('notifications', envelope.eventId);
    if (row?.status === 'PROCESSED') return { orderId, eventId: envelope.eventId, row };
  }
  throw new Error('notifications has no event of the order');
}

test('rows that were changed by hand are found, and the pasted repair puts each right', async () => {
  const [held, unlisted, failed, { row: template, envelope }] = await Promise.all([
    notified(),
    notified(),
    notified(),
    unpublishedOrder(),
  ]);
  // Published, and PENDING again by hand under a lease of years.
  await documents.send(
    new UpdateCommand({
      TableName: tableName,
      Key: outboxKeyOf(held.eventId),
      UpdateExpression:
        'SET #status = :pending, leaseUntil = :until REMOVE publishedAt, publishedBy, expiresAt',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':pending': 'PENDING', ':until': YEARS_AHEAD },
    }),
  );
  // Dated 40 minutes ahead, in two steps, so that the stream does not publish it.
  const ahead = mintEventId(Date.now() + 40 * MINUTE_MS, 1);
  const { encoding: _, ...plain } = { encoding: undefined, ...template };
  const dated = {
    ...plain,
    ...outboxKeyOf(ahead),
    envelope: JSON.stringify({ ...envelope, eventId: ahead }),
    leaseUntil: Date.now() + 40.5 * MINUTE_MS,
  };
  await put({ ...dated, status: 'CANCELLED' });
  await put({ ...dated, status: 'PENDING' });
  // Rejected by hand, without a pointer.
  const rejectedAt = Date.now();
  await put({
    ...unlisted.row,
    ...inboxKey('notifications', unlisted.eventId),
    status: 'REJECTED',
    rejectedAt,
  });
  // Failed by hand: no message will come.
  const sent = (await emails(failed.orderId)).length;
  const { processedAt: _processed, ...row } = { processedAt: undefined, ...failed.row };
  await put({ ...row, status: 'FAILED', claimedAt: Date.now() - 20 * MINUTE_MS });

  const audited = await eventually(async () => {
    const found = (await mailroom('audit', '--grace', '1s', '--json')).json();
    expect(found.changedRows.map(({ kind, eventId }: Changed) => [kind, eventId])).toEqual(
      expect.arrayContaining([
        ['held', held.eventId],
        ['ahead', ahead],
        ['unlisted', unlisted.eventId],
      ]),
    );
    expect(found.missing).toContainEqual(
      expect.objectContaining({ eventId: failed.eventId, consumer: 'notifications', row: 'FAILED' }),
    );
    return found;
  });
  expect(audited.verdict).toContain('changed by hand');
  const why = await mailroom('why', held.eventId);
  expect(printedCommand(why, 'audit', '--repair')).toBeDefined();

  const plan = await runPrinted(printedCommand(await mailroom('audit', '--grace', '1s'), '--repair'));
  expect(await get(rejectedKey('notifications', unlisted.eventId))).toBeUndefined();
  await runPrinted(printedCommand(plan, '--apply'), 'a script wrote to the table');

  expect(await rejection('notifications', unlisted.eventId)).toMatchObject({ rejectedAt, reason: 'UNKNOWN' });
  const { messages } = (await mailroom('messages', 'list', '--rejected', '--json')).json();
  expect(messages).toContainEqual(expect.objectContaining({ eventId: unlisted.eventId }));
  await eventually(async () => {
    for (const eventId of [held.eventId, ahead])
      expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED' });
    expect(await message('notifications', failed.eventId)).toMatchObject({ status: 'PROCESSED' });
  }, 3 * MINUTE_MS);
  expect(await emails(failed.orderId)).toHaveLength(sent);
  const left = (await mailroom('audit', '--json')).json().changedRows.map(({ eventId }: Changed) => eventId);
  for (const eventId of [held.eventId, ahead, unlisted.eventId]) expect(left).not.toContain(eventId);
}, 900_000);
