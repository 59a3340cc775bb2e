import { describe, expect, test } from 'vitest';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { dynamoInbox } from '../../../../lambdas/runtime/consume/dynamo-inbox.ts';
import { claimMessage } from '../../../../lambdas/runtime/store/dynamo/inbox-claim.ts';
import { commitMessage, completeMessage } from '../../../../lambdas/runtime/store/dynamo/inbox-completion.ts';
import { createInbox } from '../../../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { openInbox } from '../../../../lambdas/runtime/store/dynamo/inbox-history.ts';
import { rejectMessage } from '../../../../lambdas/runtime/store/dynamo/inbox-rejection.ts';
import { systemRandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { CONSUMER, envelope, inboxRow } from '../consume/consumer-rig.ts';

/** A claim of a message that runs alone, after so many that ended without a result: 3 attempts were counted before. */
async function claimed(unfinished: number) {
  const parts = rig();
  const { memory, clock } = parts;
  const event = envelope(parts);
  const row = { schema: 1, status: 'FAILED', fence: 'theirs', attempts: 3, lastError: 'the one before' };
  await memory.write({ Put: { Item: { ...inboxKey(CONSUMER, event.eventId), ...row, unfinished } } });
  const inbox = createInbox({
    table: memory,
    clock,
    random: systemRandomBytes,
    consumer: CONSUMER,
    leaseMs: 10_000,
    inboxRetentionDays: 35,
  });
  await openInbox(inbox);
  const verdict = await claimMessage(
    inbox,
    { eventId: event.eventId, messageId: 'now' },
    { alone: true, endsBy: clock.now() + 30_000, firstReceive: false },
  );
  if (verdict.status !== 'claimed') throw new Error(`The claim was refused: ${verdict.status}`);
  const store = dynamoInbox(inbox, { entries: async () => [] });
  return { inbox, store, claim: verdict.claim, row: () => inboxRow(parts, event), now: clock.now() };
}

const FREE = ['leaseUntil', 'endsBy', 'outOfTime'];

describe('a claim that ends', () => {
  test('with a failure is counted, and forgets the claims before it that had no result', async () => {
    const { store, claim, row } = await claimed(2);
    await store.markOutOfTime(claim, new Error('the time is up'), false);
    await store.fail(claim, new Error('not now'), 7, {});
    expect(row()).toMatchObject({ status: 'FAILED', attempts: 4, retryAt: 7, lastError: 'not now' });
    for (const name of [...FREE, 'unfinished']) expect(row()).not.toHaveProperty(name);
  });

  test.each([
    ['without a cause keeps the last error', undefined, 'the one before'],
    ['in an outage says so', new Error('the table is away'), 'the table is away'],
  ])(
    'in a release %s, takes its attempt back, and keeps the claims that had no result',
    async (_how, error, lastError) => {
      const { store, claim, row } = await claimed(2);
      await store.release(claim, 7, {}, error);
      expect(row()).toMatchObject({ status: 'FAILED', attempts: 3, retryAt: 7, unfinished: 2, lastError });
      for (const name of FREE) expect(row()).not.toHaveProperty(name);
    },
  );

  test('in a release is a past attempt if it ran effects, which matter to the next attempt', async () => {
    const { store, claim, row, now } = await claimed(0);
    await store.release(claim, 7, { charge: 'unknown' }, new Error('the table is away'));
    const ended = { ended: 'released', error: 'the table is away', effects: { charge: 'unknown' } };
    expect(row()?.pastAttempts).toEqual([{ at: now, attempt: 4, ...ended }]);
  });

  test('in a release without effects is not a past attempt', async () => {
    const { store, claim, row } = await claimed(0);
    await store.release(claim, 7, {}, new Error('the table is away'));
    expect(row()).not.toHaveProperty('pastAttempts');
  });

  test('in a cut-off is a past attempt with its effects, also if it is not counted', async () => {
    const { store, claim, row, now } = await claimed(0);
    await store.cutOff(claim, new Error('the time is up'), 7, { charge: 'failed' });
    const ended = { ended: 'failed', error: 'the time is up', effects: { charge: 'failed' } };
    expect(row()?.pastAttempts).toEqual([{ at: now, attempt: 4, ...ended }]);
  });

  test.each([
    [0, 3],
    [1, 3],
    [2, 4],
    [5, 4],
  ])(
    'a claim that ran out of time after %i without a result is one more, and counts only if it had to run alone',
    async (unfinished, attempts) => {
      const { store, claim, row } = await claimed(unfinished);
      await store.cutOff(claim, new Error('the time is up'), 7, {});
      expect(row()).toMatchObject({
        status: 'FAILED',
        attempts,
        unfinished: unfinished + 1,
        retryAt: 7,
        lastError: 'the time is up',
      });
      for (const name of FREE) expect(row()).not.toHaveProperty(name);
    },
  );

  test('with a rejection whose answer was lost is rejected', async () => {
    const { inbox, claim, row } = await claimed(0);
    const reject = () => rejectMessage(inbox, claim, new PoisonMessage('not like this'), {});
    expect(await reject()).toBeUndefined();
    expect(await reject()).toBeUndefined();
    expect(row()).toMatchObject({ status: 'REJECTED' });
  });

  test.each([
    ['of 4,096 characters is stored', 4_094, JSON.stringify('x'.repeat(4_094))],
    ['of more than 4,096 characters is not stored', 4_095, undefined],
  ])('with a result %s', async (_what, length, result) => {
    const { inbox, claim, row } = await claimed(0);
    expect(await completeMessage(inbox, claim, 'x'.repeat(length))).toBeUndefined();
    expect(row()?.status).toBe('PROCESSED');
    expect(row()?.result).toBe(result);
  });

  test('with a result leaves nothing of the claims that had none', async () => {
    for (const end of ['complete', 'commit', 'reject'] as const) {
      const { inbox, store, claim, row } = await claimed(2);
      await store.markOutOfTime(claim, new Error('the time is up'), false);
      if (end === 'complete') await completeMessage(inbox, claim, undefined);
      if (end === 'commit') await commitMessage(inbox, claim, []);
      if (end === 'reject') await rejectMessage(inbox, claim, new PoisonMessage('not like this'), {});
      expect(row()).toMatchObject({ status: end === 'reject' ? 'REJECTED' : 'PROCESSED' });
      for (const name of [...FREE, 'unfinished']) expect(row()).not.toHaveProperty(name);
    }
  });
});

describe('a handler that still runs when its time is up', () => {
  test.each([
    ['counts as a claim without a result', false, 2],
    ['whose time the table took does not count', true, undefined],
  ])('%s, and is marked on its row, which it keeps', async (_what, lostTimeToTable, unfinished) => {
    const { store, claim, row } = await claimed(2);
    await store.markOutOfTime(claim, new Error('the time is up'), lostTimeToTable);
    expect(row()).toMatchObject({
      status: 'PROCESSING',
      fence: claim.fence,
      attempts: 4,
      outOfTime: true,
      lastError: 'the time is up',
      fingerprint: 'worker Error: the time is up',
    });
    expect(row()?.unfinished).toBe(unfinished);
  });
});
