import { expect, it } from 'vitest';
import { asDelivered } from '../../../demo/shop.ts';
import { reservationKey } from '../../../lambdas/example/inventory/reservation.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { die } from '../support/dead-letters.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import { get, message, partition, put } from '../support/order-system.ts';
import { printedCommand, runPrinted } from '../support/printed-command.ts';
import { deadLetters, send } from '../support/queues.ts';
import { type UnpublishedOrder, unpublishedOrder } from '../support/unpublished-order.ts';

const CONSUMER = 'inventory';
const SOURCE = `consumer:${CONSUMER}`;

/** An order that inventory rejected when its attempts were spent: the row that it writes then, and the dead letter. */
async function exhausted(lastError: string): Promise<UnpublishedOrder> {
  const paper = await unpublishedOrder();
  const { eventId, type } = paper.envelope;
  await put({
    ...inboxKey(CONSUMER, eventId),
    schema: SCHEMA,
    status: 'REJECTED',
    fence: 'of-the-last-attempt',
    attempts: 5,
    type,
    rejectedAt: Date.now(),
    reason: 'ATTEMPTS_EXHAUSTED',
    lastError,
    fingerprint: `${CONSUMER} ${lastError}`,
  });
  await die(SOURCE, asDelivered('orders', paper.envelope));
  return paper;
}

it('forty dead letters of three causes: the status and a list show causes and remedies, whose commands repair all', async () => {
  const times = (count: number, cause: string) =>
    Promise.all(Array.from({ length: count }, () => exhausted(cause)));
  const run = [...(await times(15, 'BankError: no answer')), ...(await times(10, 'Timeout: the table'))];
  const { envelope } = await unpublishedOrder();
  const refused = Array.from({ length: 15 }, () => mintEventId(Date.now(), 8));
  const bodies = refused.map((eventId) =>
    asDelivered('orders', { ...envelope, eventId, data: { items: 'none' } }),
  );
  for (const some of [bodies.slice(0, 10), bodies.slice(10)]) await send(CONSUMER, some);
  await eventually(async () => expect(await deadLetters(CONSUMER)).toHaveLength(40));

  // From the incident to causes and remedies.
  const status = await mailroom('status');
  expect(status.code).toBe(1);
  // Acknowledged, the source does not count; removed, it counts again.
  const drill = ['--apply', '--reason', 'drill'];
  expect((await mailroom('ack', SOURCE, '--until', '1h', ...drill)).code).toBe(0);
  const findingOf = async () => {
    const { findings } = (await mailroom('status', '--json')).json();
    return findings.find(({ part }: { readonly part: string }) => part === SOURCE);
  };
  await eventually(async () =>
    expect(await findingOf()).toMatchObject({ acknowledged: { reason: 'drill' } }),
  );
  expect((await mailroom('ack', 'list')).out).toContain(SOURCE);
  expect((await mailroom('ack', 'remove', SOURCE, ...drill)).code).toBe(0);
  await eventually(async () => expect(await findingOf()).not.toHaveProperty('acknowledged'));
  // Whoever else reads the queue, as the sweep does every minute, hides dead letters from a command for a moment.
  const list = await eventually(async () => {
    const listed = await runPrinted(printedCommand(status, SOURCE));
    const said = unwrapped(listed.out);
    expect(said).toMatch(/15 would run in 1[34] d [\w -]+ inventory BankError: no answer/);
    expect(said).toMatch(/15 would fail in 1[34] d [\w -]+ inventory INVALID_PAYLOAD: /);
    expect(said).toMatch(/10 would run in 1[34] d [\w -]+ inventory Timeout: the table/);
    return listed;
  });
  expect(list.out.split('\n').length).toBeLessThanOrEqual(24);

  const plan = await eventually(async () => {
    const planned = await runPrinted(printedCommand(list, 'dlq redrive'));
    expect(planned.out).toContain('25 would run again');
    return planned;
  });
  const redriven = await eventually(async () => {
    const again = await runPrinted(
      printedCommand(plan, 'dlq redrive', '--apply'),
      'the bank is back',
      ...['--wait', '15m'],
    );
    expect(again.code, again.out + again.err).toBe(1); // fifteen are left
    expect(unwrapped(again.out)).toMatch(/^Stack \S+, account \d+, region \S+ /);
    for (const { envelope, order } of run) {
      expect(await message(CONSUMER, envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
      expect(await get(reservationKey(order.orderId))).toMatchObject({ status: 'reserved' });
    }
    printedCommand(again, 'dlq discard');
    return again;
  });

  const discardPlan = await eventually(async () => {
    const planned = await runPrinted(printedCommand(redriven, 'dlq discard'));
    expect(unwrapped(planned.out)).toMatch(/15 discard in 1[34] d .* Nothing was changed/);
    return planned;
  });
  expect(await message(CONSUMER, refused[0] ?? '')).toMatchObject({ status: 'REJECTED' });
  await eventually(async () => {
    await runPrinted(printedCommand(discardPlan, 'dlq discard', '--apply'), 'a load test sent them');
    for (const eventId of refused)
      expect(await message(CONSUMER, eventId)).toMatchObject({
        status: 'DISCARDED',
        discardedReason: 'a load test sent them',
      });
  });

  expect(await deadLetters(CONSUMER)).toEqual([]);
  expect((await mailroom('status')).out).not.toContain(`dead letters in ${SOURCE}`);
  const operations = await partition(`OPERATIONS#${new Date().toISOString().slice(0, 7)}`);
  const reasons = operations
    .filter(({ subject }) => String(subject).includes(SOURCE))
    .map(({ reason }) => reason);
  expect(new Set(reasons)).toEqual(new Set(['drill', 'the bank is back', 'a load test sent them']));
});

it('a dead letter that the deployed code refuses: why suggests what helps, as a command that works', async () => {
  const { envelope } = await unpublishedOrder();
  const eventId = mintEventId(Date.now(), 8);
  await send(CONSUMER, [asDelivered('orders', { ...envelope, eventId, data: {} })]);
  const why = await eventually(async () => {
    const found = await mailroom('why', eventId);
    expect(unwrapped(found.out)).toContain('a redrive would leave it');
    return found;
  });
  await eventually(async () => {
    const plan = await runPrinted(printedCommand(why, 'dlq discard'));
    const discarded = await runPrinted(printedCommand(plan, '--apply'), 'a load test sent it');
    expect(discarded.code, discarded.err).toBe(0);
  });
  expect((await mailroom('why', eventId)).code).toBe(0);
});
