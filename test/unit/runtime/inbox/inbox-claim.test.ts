import { describe, expect, test } from 'vitest';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { dynamoInbox } from '../../../../lambdas/runtime/consume/dynamo-inbox.ts';
import { turnOf } from '../../../../lambdas/runtime/consume/turn.ts';
import { claimMessage } from '../../../../lambdas/runtime/store/dynamo/inbox-claim.ts';
import { createInbox } from '../../../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { openInbox } from '../../../../lambdas/runtime/store/dynamo/inbox-history.ts';
import { rejectUnclaimed } from '../../../../lambdas/runtime/store/dynamo/inbox-rejection.ts';
import { systemRandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import type { ManualClock } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { staleReads } from '../../../support/stale-reads.ts';
import { CONSUMER, envelope, inboxRow } from '../consume/consumer-rig.ts';

const AGAIN = { alone: false, firstReceive: false };
const ALONE = { alone: true, firstReceive: false };
const FIRST = { alone: false, firstReceive: true };

/** A worker that is dead, or has let go of its message. */
const FAILED = { status: 'FAILED', attempts: 3, retryAt: 1 };
const DEAD = { status: 'PROCESSING', attempts: 3, leaseUntil: 1, endsBy: 1 };

/** The inbox row of one message, as it was left, and an inbox that wants to claim it. */
async function inboxWith(
  row: object,
  tableOf: (table: Table, clock: ManualClock) => Table = (table) => table,
) {
  const parts = rig();
  const { memory, clock } = parts;
  const event = envelope(parts);
  const message = { eventId: event.eventId, messageId: 'now' };
  const put = (change: object) =>
    memory.write({
      Put: { Item: { ...inboxKey(CONSUMER, event.eventId), schema: 1, fence: 'theirs', ...change } },
    });
  await put(row);
  const inbox = createInbox({
    table: tableOf(memory, clock),
    clock,
    random: systemRandomBytes,
    consumer: CONSUMER,
    leaseMs: 10_000,
    inboxRetentionDays: 35,
  });
  await openInbox(inbox);
  return {
    put,
    clock,
    row: () => inboxRow(parts, event),
    isSuspect: async () => {
      const content = { bus: ThingHappened, envelope: event };
      return (await turnOf({ inbox: dynamoInbox(inbox, parts.outbox) }, { message, receives: 2, content }))
        .alone;
    },
    reject: () => rejectUnclaimed(inbox, message, new PoisonMessage('not like this')),
    claim: (how: { readonly alone: boolean; readonly firstReceive: boolean }) =>
      claimMessage(inbox, message, { ...how, endsBy: clock.now() + 30_000 }),
  };
}

test.each([
  ['failed', FAILED],
  ['was left', DEAD],
])(
  'a claim without an order removes the place that the order of an earlier deployment gave a message that %s',
  async (_what, row) => {
    const { claim, row: stored } = await inboxWith({
      ...row,
      order: { key: 'theirs', mode: 'latest', sequence: 2 },
    });
    expect(await claim(AGAIN)).toMatchObject({ status: 'claimed' });
    expect(stored()).not.toHaveProperty('order');
  },
);

test.each([
  ['was left', DEAD],
  [
    'was rejected under another message id',
    { status: 'REJECTED', reason: 'X', rejectedIds: new Set(['then']) },
  ],
])(
  'a claim of a message that %s has a whole lease, however long its first write took',
  async (_what, row) => {
    const slow = (table: Table, clock: ManualClock): Table => ({
      ...table,
      write: async (write) => {
        await clock.advance(11_000);
        return table.write(write);
      },
    });
    const { claim, clock, row: stored } = await inboxWith(row, slow);
    const began = clock.now();
    expect(await claim(AGAIN)).toMatchObject({ status: 'claimed', claim: { leaseUntil: began + 21_000 } });
    expect(stored()).toMatchObject({ status: 'PROCESSING', leaseUntil: began + 21_000 });
  },
);

describe('a claim of a message that must run alone', () => {
  test.each([
    ['failed', { ...FAILED, unfinished: 2 }],
    ['was left', { ...DEAD, unfinished: 1 }],
  ])(
    'a message that must run alone and %s is refused beside others, and changes nothing',
    async (_what, row) => {
      const { claim, row: stored } = await inboxWith(row);
      const before = stored();
      await expect(claim(AGAIN)).resolves.toEqual({ status: 'suspect' });
      expect(stored()).toEqual(before);
    },
  );

  test.each([
    ['failed', { ...FAILED, unfinished: 2 }, { attempt: 4, unfinished: 2 }],
    ['was left', { ...DEAD, unfinished: 1 }, { attempt: 3, unfinished: 2 }],
    ['was left alone', { ...DEAD, unfinished: 2 }, { attempt: 4, unfinished: 3 }],
  ])('a message that must run alone and %s is granted when it does', async (_what, row, claimed) => {
    const { claim } = await inboxWith(row);
    await expect(claim(ALONE)).resolves.toMatchObject({ status: 'claimed', claim: claimed });
  });

  test.each([
    ['failed', { ...FAILED, unfinished: 2 }, { attempt: 1, unfinished: 0 }],
    ['was left', { ...DEAD, unfinished: 4 }, { attempt: 1, unfinished: 1 }],
  ])(
    'a message that must run alone and %s is granted at its first receive, and counted from zero',
    async (_what, row, claimed) => {
      const { claim } = await inboxWith(row);
      await expect(claim(FIRST)).resolves.toMatchObject({ status: 'claimed', claim: claimed });
    },
  );

  test.each([
    ['failed', { ...FAILED, unfinished: 1 }, { attempt: 4, unfinished: 1 }],
    ['was left', DEAD, { attempt: 3, unfinished: 1 }],
    ['was left before anything was counted', { ...DEAD, attempts: undefined }, { attempt: 1, unfinished: 1 }],
  ])(
    'yet has not ended twice without a result, and %s, is granted in company',
    async (_what, row, claimed) => {
      const { claim } = await inboxWith(row);
      await expect(claim(AGAIN)).resolves.toMatchObject({ status: 'claimed', claim: claimed });
    },
  );
});

test.each([
  ['failed', { ...FAILED, unfinished: 2 }, true],
  ['was left', { ...DEAD, unfinished: 1 }, true],
  ['was left once', DEAD, false],
  ['is held', { ...DEAD, unfinished: 2, leaseUntil: 9e15 }, false],
  ['is processed', { status: 'PROCESSED', attempts: 3, unfinished: 2 }, false],
  ['was rejected', { status: 'REJECTED', reason: 'POISON_MESSAGE', attempts: 3, unfinished: 2 }, false],
])('a message that %s is a suspect by what its row says now: %#', async (_what, row, suspect) => {
  const { put, isSuspect } = await inboxWith({ ...FAILED, unfinished: suspect ? 0 : 2 }, staleReads);
  await put(row);
  await expect(isSuspect()).resolves.toBe(suspect);
});

test.each([
  ['PARKED', 'its "status" is "PARKED"; expected PROCESSING, PROCESSED, FAILED, REJECTED, DISCARDED'],
  [undefined, 'it has no "status"'],
])('a row with the status %s is left alone, and the refusal names it', async (status, problem) => {
  const { claim, row } = await inboxWith({ ...DEAD, status });
  const before = row();
  await expect(claim(ALONE)).resolves.toEqual({ status: 'unreadable', problem });
  expect(row()).toEqual(before);
});

test('poison is not rejected while another worker holds it', async () => {
  const { reject, row } = await inboxWith({ ...DEAD, leaseUntil: 9e15, endsBy: 9e15 });
  const before = row();
  await expect(reject()).resolves.toMatchObject({ status: 'leased' });
  expect(row()).toEqual(before);
});

test('poison without a claim is rejected under a new fencing token', async () => {
  const fences = await Promise.all(
    [FAILED, FAILED].map(async (left) => {
      const { reject, row } = await inboxWith(left);
      await expect(reject()).resolves.toMatchObject({ status: 'rejected' });
      return row()?.fence;
    }),
  );
  expect(new Set([...fences, 'theirs', undefined]).size).toBe(4);
});

test('a claim of a redriven message begins its attempts at 1, and keeps those before it and their effects', async () => {
  const effects = { charge: { status: 'RELEASED', fence: 'theirs', run: 1, endsBy: 1, startedAt: 1 } };
  const pastAttempts = [{ at: 1, attempt: 3, ended: 'rejected', effects: { charge: 'failed' } }];
  const rejected = { status: 'REJECTED', reason: 'POISON_MESSAGE', attempts: 3, effects, pastAttempts };
  const { claim } = await inboxWith(rejected);
  await expect(claim(ALONE)).resolves.toMatchObject({
    status: 'claimed',
    claim: { attempt: 1, effects, pastAttempts },
  });
});

describe('a takeover', () => {
  test('removes the attributes of the previous claim', async () => {
    const { claim, row } = await inboxWith({
      ...DEAD,
      outOfTime: true,
      retryAt: 1,
      lastError: 'its own error',
    });
    await expect(claim(AGAIN)).resolves.toMatchObject({ status: 'claimed', claim: { takenOver: true } });
    expect(row()).toMatchObject({ status: 'PROCESSING', lastError: 'its own error' });
    expect(row()).not.toHaveProperty('outOfTime');
    expect(row()).not.toHaveProperty('retryAt');
  });

  test.each([
    ['renewed by its worker', DEAD, { ...DEAD, leaseUntil: 9e15, endsBy: 9e15 }, 'leased'],
    ['processed by its worker', DEAD, { status: 'PROCESSED', attempts: 3 }, 'processed'],
    ['taken over, and left again', DEAD, { ...DEAD, fence: 'another' }, 'leased'],
    [
      'left with a new effect, where it had none,',
      DEAD,
      { ...DEAD, effects: { charge: { status: 'IN_PROGRESS' } } },
      'leased',
    ],
    [
      'left with another effect',
      { ...DEAD, effects: {} },
      { ...DEAD, effects: { charge: { status: 'IN_PROGRESS' } } },
      'leased',
    ],
    [
      'taken over, where it had no fencing token,',
      { ...DEAD, fence: undefined },
      { ...DEAD, fence: 'another' },
      'leased',
    ],
  ])(
    'a takeover of a message that was %s in the meantime is refused',
    async (_what, before, meanwhile, status) => {
      let tries = 0;
      const { claim, put, row } = await inboxWith(before, (table) => ({
        ...table,
        write: async (wanted) => {
          if (wanted.Update?.UpdateExpression?.includes('claimedAt')) tries += 1;
          if (tries === 2) await put(meanwhile);
          return table.write(wanted);
        },
      }));
      await expect(claim(AGAIN)).resolves.toMatchObject({ status });
      expect(row()).toMatchObject(meanwhile);
    },
  );

  test('whose answer was lost is recognized', async () => {
    const { claim } = await inboxWith(DEAD, (table) => ({
      ...table,
      write: async (wanted) => {
        if (wanted.Update?.UpdateExpression?.includes(':unfinished')) await table.write(wanted);
        return table.write(wanted);
      },
    }));
    await expect(claim(AGAIN)).resolves.toMatchObject({
      status: 'claimed',
      claim: { attempt: 3, unfinished: 1, takenOver: true },
    });
  });
});
