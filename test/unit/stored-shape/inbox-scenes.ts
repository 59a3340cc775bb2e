import { resentEventId } from '../../../cli/changes/resend/resend-plan.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { latest } from '../../../lambdas/runtime/base/order.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { type Handler, leased, transactional } from '../../../lambdas/runtime/consume/handler.ts';
import { holderOf } from '../../../lambdas/runtime/inbox/limit-places.ts';
import type { Settlement } from '../../../lambdas/runtime/inbox/settle-message.ts';
import {
  allowTooOld,
  discardMessage,
  resolveMessage,
} from '../../../lambdas/runtime/operations/message-operations.ts';
import { orderSeed } from '../../../lambdas/runtime/store/dynamo/order-seed.ts';
import { inboxKey, limitKey } from '../../../lambdas/runtime/store/keys.ts';
import { runThrough, startedLongAgo } from '../../support/runtime-rig.ts';
import { consumer, EVENT_ID, OrderChanged, OrderPlaced, shapeRig } from './stored-shape-rig.ts';

type Rig = ReturnType<typeof shapeRig>;

const payment = { PK: 'PAYMENT#42', SK: 'PAYMENT' };
const decision: Settlement = {
  consumer: consumer.consumer,
  eventId: EVENT_ID,
  by: 'arn:aws:sts::111122223333:assumed-role/on-call/ada',
  reason: 'charged by phone',
};

const captures = (): Handler => leased(OrderPlaced, async () => ({ captured: true }));
const fails = (): Handler => leased(OrderPlaced, () => Promise.reject(new Error('the bank is closed')));
const refuses = (): Handler =>
  leased(OrderPlaced, () => Promise.reject(new PoisonMessage('order 42 has no customer')));

async function sent(): Promise<Rig> {
  const rig = shapeRig();
  await rig.commit();
  await rig.publish();
  return rig;
}

async function delivered(handler: Handler): Promise<Rig> {
  const rig = await sent();
  await rig.deliver(handler);
  return rig;
}

const inboxRow = (rig: Rig) => rig.item('INBOX#', 'MESSAGE');

/** What an item is while the handler runs. */
async function meanwhile(inEffect: boolean): Promise<unknown> {
  const rig = await sent();
  let seen: unknown;
  const see = async () => {
    seen = inboxRow(rig);
  };
  await rig.deliver(leased(OrderPlaced, (_, ctx) => (inEffect ? ctx.once('charge', see) : see())));
  return seen;
}

/** A message whose limit has no token, and no line yet. */
async function limited(): Promise<Rig> {
  const rig = await sent();
  const limit = { name: 'bank', key: () => 'merchant-7', perSecond: 10, burst: 20 };
  const bucket = { ...limitKey(limit, 'merchant-7'), schema: 1, everyMs: 100, burstMs: 1_900, expiresAt: 0 };
  await rig.table.write({ Put: { Item: { ...bucket, nextAt: rig.clock.now() + 10_000 } } });
  await rig.deliver(leased(OrderPlaced, async () => {}, { limit }));
  return rig;
}

/** A message that found no place in its slot, and waits as the head of the line. */
async function headOfLine(): Promise<Rig> {
  const rig = await sent();
  const limit = { name: 'bank', key: () => 'merchant-7', concurrency: 1 };
  const handler = leased(OrderPlaced, async () => {}, { limit });
  const holders = new Set([holderOf(rig.clock.now() + HOUR_MS, 'elsewhere')]);
  const bucket = { ...limitKey(limit, 'merchant-7'), schema: 1, concurrency: 1, runMs: 60_000, holders };
  await rig.table.write({ Put: { Item: bucket } });
  await runThrough(rig.clock, rig.deliver(handler));
  await rig.clock.advance(2 * MINUTE_MS);
  await runThrough(rig.clock, rig.deliver(handler));
  return rig;
}

/** A message that has waited for longer than its handler takes. */
async function stale(): Promise<Rig> {
  const rig = await sent();
  await rig.clock.advance(HOUR_MS);
  await rig.deliver(leased(OrderPlaced, async () => {}, { expiresInMs: MINUTE_MS }));
  return rig;
}

async function tooOldAndAllowed(): Promise<Rig> {
  const rig = await sent();
  await startedLongAgo(rig.table, consumer.consumer);
  await rig.clock.advance((consumer.inboxRetentionDays + 1) * DAY_MS);
  await rig.deliver(captures());
  await allowTooOld(rig, { ...decision, reason: 'never charged, says the bank' });
  return rig;
}

/** A message whose handler was still running at the end of two functions in a row. */
async function outOfTimeTwice(): Promise<Rig> {
  const rig = await sent();
  const hangs = leased(OrderPlaced, async () => {
    await rig.clock.advance(30_000);
    await new Promise(() => {});
  });
  await rig.deliver(hangs);
  // All tokens are alike here: the first claim gets another, or the second would be taken for it.
  await rig.table.write({
    Update: {
      Key: { ...inboxKey(consumer.consumer, EVENT_ID) },
      UpdateExpression: 'SET fence = :another',
      ExpressionAttributeValues: { ':another': 'another' },
    },
  });
  await rig.clock.advance(consumer.visibilityTimeoutMs);
  await rig.deliver(hangs);
  return rig;
}

/** An ordered message of number 3, at a consumer that has applied one already. */
async function ordered(last?: number): Promise<Rig> {
  const rig = shapeRig();
  const { source, type: group } = OrderChanged;
  const of = { consumer: consumer.consumer, source, group, aggregateType: 'Order' };
  if (last !== undefined) await rig.table.write(orderSeed({ ...of, aggregateId: '42', last }));
  await rig.commitNumbered(3);
  await rig.publish();
  await rig.deliver(transactional(OrderChanged, async () => ({}), { order: latest() }));
  return rig;
}

/** Each item of the consume stage that docs/stored-items.md shows, by its heading there. */
export const inboxScenes: Readonly<Record<string, () => Promise<unknown>>> = {
  'Inbox row: PROCESSING': () => meanwhile(false),
  'Inbox row: PROCESSING, out of time': async () => inboxRow(await outOfTimeTwice()),
  'Inbox row: FAILED': async () => inboxRow(await delivered(fails())),
  'FAILED hint': async () => (await delivered(fails())).item('FAILED#'),
  'Inbox row: PROCESSED, by a return': async () => inboxRow(await delivered(captures())),
  'Inbox row: PROCESSED, by ctx.commit': async () =>
    inboxRow(
      await delivered(
        leased(OrderPlaced, (_, ctx) => ctx.commit({ writes: [{ Put: { Item: { ...payment } } }] })),
      ),
    ),
  'Inbox row: PROCESSED, transactional': async () =>
    inboxRow(
      await delivered(
        transactional(OrderPlaced, async () => ({ writes: [{ Put: { Item: { ...payment } } }] })),
      ),
    ),
  'Inbox row: PROCESSED, ordered': async () => inboxRow(await ordered()),
  'Inbox row: PROCESSED, superseded': async () => inboxRow(await ordered(5)),
  'Last sequence': async () => (await ordered()).item('LAST#'),
  'Inbox row: FAILED, waits for a limit': async () => inboxRow(await limited()),
  'Bucket of a limit': async () => (await limited()).item('LIMIT#'),
  'Bucket of a limit with a concurrency': async () => (await headOfLine()).item('LIMIT#'),
  'Inbox row: REJECTED': async () => inboxRow(await delivered(refuses())),
  'REJECTED pointer': async () => (await delivered(refuses())).item('REJECTED#'),
  'Inbox row: REJECTED as too old, allowed': async () => inboxRow(await tooOldAndAllowed()),
  'Inbox history': async () => (await delivered(captures())).item('INBOX#payments#HISTORY'),
  'Inbox row: PROCESSED, resolved': async () => {
    const rig = await delivered(fails());
    await resolveMessage(rig, decision);
    return inboxRow(rig);
  },
  'Inbox row: DISCARDED': async () => {
    const rig = await delivered(refuses());
    await discardMessage(rig, { ...decision, reason: 'a test order' });
    return inboxRow(rig);
  },
  'Inbox row: DISCARDED, stale': async () => inboxRow(await stale()),
  'Inbox row: DISCARDED, another event was sent in its place': async () => {
    const rig = await delivered(refuses());
    const replacedBy = resentEventId(decision.consumer, EVENT_ID, { orderId: '42', totalCents: 4300 });
    await discardMessage(rig, { ...decision, reason: 'the price was wrong', replacedBy });
    return inboxRow(rig);
  },
  'Inbox row: PROCESSING, an effect IN_PROGRESS': () => meanwhile(true),
  'Inbox row: FAILED, an effect COMPLETED and one RELEASED': async () =>
    inboxRow(
      await delivered(
        leased(OrderPlaced, async (_, ctx) => {
          await ctx.once('charge', async () => ({ chargeId: 'ch_1' }));
          await ctx.once('ship', () => Promise.reject(new Error('no answer')));
        }),
      ),
    ),
};
