import { expect, test } from 'vitest';
import { createTail } from '../../../cli/commands/tail.ts';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { limitText } from '../../../cli/deployment/row-text.ts';
import { isLimited } from '../../../cli/reports/status/waiting-keys.ts';
import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { HOUR_MS } from '../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { holderOf } from '../../../lambdas/runtime/inbox/limit-places.ts';
import type { FailedRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey, limitKey } from '../../../lambdas/runtime/store/keys.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { captured, countedBytes, tooWide } from './support/captured-output.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

/** A Mailroom whose provider takes one call per 20 seconds, with three messages of one merchant and one of another. */
async function atItsLimit() {
  const handler = leased(ThingHappened, async () => {}, {
    limit: { name: 'bank', key: ({ data }) => `merchant-${data.n}`, perSecond: 0.05 },
  });
  const mailroom = mailroomInMemory([handler], { random: countedBytes() });
  const events = [1, 1, 1, 2].map((n) => ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } }));
  const ids = (await mailroom.outbox.commit({ events })).map(({ eventId }) => eventId);
  await mailroom.publish();
  await mailroom.deliver();
  return { mailroom, ids };
}

test('the outputs about messages that wait for a limit are the reviewed ones', async () => {
  const { mailroom, ids } = await atItsLimit();
  const waits = ids[1] ?? '';
  const outputs = {
    'status-limited': ['status'],
    'why-limited': ['why', waits],
    'why-limited-story': ['why', waits, '--story'],
    'messages-list-limited': ['messages', 'list'],
    'describe-limited': ['describe', 'worker'],
  };
  for (const [name, argv] of Object.entries(outputs)) {
    const text = await captured(mailroom, argv);
    expect(tooWide(text)).toEqual([]);
    await expect(text).toMatchFileSnapshot(`captures/${name}.txt`);
  }
});

test('status counts the messages of each key, and none of them as failed', async () => {
  const { mailroom } = await atItsLimit();
  const { out, code } = await runInMemory(mailroom, ['status', '--json']);
  expect(code).toBe(0);
  const { limits, consumers, state } = JSON.parse(out);
  expect(limits).toEqual([
    { consumer: 'worker', limit: 'bank', key: 'merchant-1', messages: 2, lastAt: expect.any(Number) },
  ]);
  expect(limits[0].lastAt - mailroom.clock.now()).toBeLessThanOrEqual(40_000);
  expect(consumers.worker.failed).toBe(0);
  expect(state).toBe('ok');
});

test('describe counts them apart from those that failed, and takes its last cause from these', async () => {
  const { mailroom } = await atItsLimit();
  const described = async () =>
    JSON.parse((await runInMemory(mailroom, ['describe', 'worker', '--json'])).out) as unknown;
  expect(await described()).toMatchObject({ failed: 0, limited: 2, lastCause: null, next: null });
  await mailroom.clock.advance(HOUR_MS + STUCK_MS);
  // Their slots have long passed, so their queue may have lost them.
  expect(await described()).toMatchObject({ failed: 2, limited: 0, next: expect.any(String) });
});

test('tail tells them from those that failed', async () => {
  const { mailroom, ids } = await atItsLimit();
  const { table, directory, clock } = mailroom;
  const step = createTail({ directory, stored: dynamoRows(table), shards: [0, 1] }, clock.now() - HOUR_MS);
  const { events } = await step(clock.now());
  const states = Object.fromEntries(events.map(({ eventId, consumers }) => [eventId, consumers.worker]));
  expect(ids.map((id) => states[id]).toSorted()).toEqual(['limited', 'limited', 'processed', 'processed']);
});

test('status and why show the messages that wait for a place', async () => {
  const limit = { name: 'bank', key: () => 'merchant-1', concurrency: 1 };
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {}, { limit })]);
  const { clock, memory, outbox } = mailroom;
  const holders = new Set([holderOf(clock.now() + HOUR_MS, 'elsewhere')]);
  const bucket = { ...limitKey(limit, 'merchant-1'), schema: 1, concurrency: 1, holders };
  await memory.write({ Put: { Item: bucket } });
  const events = [1, 2].map((n) => ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } }));
  const [first] = await outbox.commit({ events });
  await mailroom.publish();
  await mailroom.deliver();
  const status = JSON.parse((await runInMemory(mailroom, ['status', '--json'])).out);
  expect(status.limits).toEqual([
    { consumer: 'worker', limit: 'bank', key: 'merchant-1', messages: 2, lastAt: expect.any(Number) },
  ]);
  expect(status.consumers.worker.failed).toBe(0);
  const why = JSON.parse((await runInMemory(mailroom, ['why', first?.eventId ?? '', '--json'])).out);
  expect(why.verdict.state).toBe('retrying');
  expect(why.verdict.text).toContain('waits for the limit "bank" of "merchant-1", and no attempt is counted');
});

test('the story of a message that has waited tells it', async () => {
  const { mailroom, ids } = await atItsLimit();
  await mailroom.drain();
  const { out } = await runInMemory(mailroom, ['why', ids[1] ?? '', '--json']);
  const { verdict, events } = JSON.parse(out);
  expect(verdict.state).toBe('processed');
  expect(events[0].story.map(({ what }: { what: string }) => what)).toContain('attempt-ended');
});

/** The row of a message that waits for its slot, as its consumer left it. */
async function waitingRow() {
  const { mailroom, ids } = await atItsLimit();
  const eventId = ids[1] ?? '';
  const row = mailroom.memory.item(inboxKey('worker', eventId)) as unknown as FailedRow;
  return { row, now: mailroom.clock.now() };
}

test('a message that waits is not one whose next claim could not reach the bucket, nor one whose slot has long passed', async () => {
  const { row, now } = await waitingRow();
  const isLimitedAt = (at: number, change: Partial<FailedRow> = {}) =>
    isLimited({ state: { is: 'failed', row: { ...row, ...change } } }, at);
  expect(isLimitedAt(now)).toBe(true);
  // A later claim has ended without an entry: the last one is still that of the wait.
  expect(isLimitedAt(now, { claimedAt: now + 1_000, retryAt: now + 60_000 })).toBe(false);
  expect(limitText({ ...row, claimedAt: now + 1_000 })).toBeUndefined();
  const late = Number(row.retryAt) + STUCK_MS;
  expect([isLimitedAt(late), isLimitedAt(late + 1)]).toEqual([true, false]);
});
