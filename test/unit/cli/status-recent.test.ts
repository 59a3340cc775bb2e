import { describe, expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusText } from '../../../cli/reports/status/status-text.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { wired } from './support/resources-in-memory.ts';

const lines = {
  commandLine: (command: string) => `mailroom ${command}`,
  awsLine: (command: string) => `aws ${command}`,
};

const MINUTE = 60_000;

/** A second consumer, which no event reaches. */
const cut = {
  ...worker,
  name: 'cut',
  queue: 'cut-queue',
  deadLetterQueue: 'cut-dead',
  undeliveredQueue: 'cut-undelivered',
};

const withCut: Directory = { ...directory, consumers: [worker, cut] };

/** A Mailroom whose worker processed one event. */
async function mailroomWithEvent(commits = 1) {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const events = Array.from({ length: commits }, (_, n) => mailroom.happened(n + 1));
  const committed = await mailroom.outbox.commit({ events });
  await mailroom.publish();
  await mailroom.drain();
  const publishedAt = mailroom.clock.now();
  return { ...mailroom, publishedAt, eventId: committed[0]?.eventId ?? '' };
}

type Mailroom = Awaited<ReturnType<typeof mailroomWithEvent>>;

function status({ table, queues, clock }: Mailroom, entries = directory, inFlight = 0, waiting = 0) {
  return readStatus({
    directory: entries,
    region: 'eu-west-1',
    table,
    stored: dynamoRows(table),
    queues: {
      ...queues,
      depth: async (url) => ({
        ...(await queues.depth(url)),
        ...(url === cut.queue && { inFlight, waiting }),
      }),
    },
    wiring: wired,
    now: clock.now(),
  });
}

describe('an event that did not reach a consumer', () => {
  test('is a warning although nothing is broken any more, with the time from which an audit is certain', async () => {
    const mailroom = await mailroomWithEvent();
    expect((await status(mailroom, withCut)).looks).toEqual([]);
    await mailroom.clock.advance(3 * MINUTE);
    const report = await status(mailroom, withCut);
    expect(report).toMatchObject({
      state: 'look',
      looks: [{ consumer: 'cut', look: 'missing', messages: 1 }],
    });
    const [look] = report.looks;
    expect(look?.conclusiveAt).toBeGreaterThan(mailroom.clock.now());
    expect(look?.conclusiveAt).toBeLessThanOrEqual(mailroom.publishedAt + 5 * MINUTE);
    expect(look?.missingUntil).toBeGreaterThan(mailroom.publishedAt);
    expect(look?.missingUntil).toBeLessThan(mailroom.clock.now());
    const text = statusText(report, lines);
    expect(text).toContain('mailroom audit --since 1h');
  });

  test('is not reported once it has a row, nor an hour later', async () => {
    const mailroom = await mailroomWithEvent();
    await mailroom.clock.advance(10 * MINUTE);
    const row = mailroom.memory.item(inboxKey('worker', mailroom.eventId));
    await mailroom.memory.write({ Put: { Item: { ...row, ...inboxKey('cut', mailroom.eventId) } } });
    expect((await status(mailroom, withCut)).looks).toEqual([]);
    const late = await mailroomWithEvent();
    await late.clock.advance(70 * MINUTE);
    expect((await status(late, withCut)).looks).toEqual([]);
  });

  test.each([
    ['was declared after its publish', { changedAt: 3 * MINUTE }],
    ['was declared in the minute before its publish', { changedAt: -30_000 }],
  ])('is not expected of a consumer that %s', async (_what, { changedAt }) => {
    const mailroom = await mailroomWithEvent();
    const consumers = [worker, { ...cut, changedAt: mailroom.publishedAt + changedAt }];
    await mailroom.clock.advance(10 * MINUTE);
    expect((await status(mailroom, { ...directory, consumers })).looks).toEqual([]);
  });

  test('is not reported for a consumer with dead letters, which may be it', async () => {
    const mailroom = await mailroomWithEvent();
    await mailroom.clock.advance(10 * MINUTE);
    const letter = {
      messageId: 'm',
      receiptHandle: 'm',
      body: '{}',
      sentAt: mailroom.publishedAt,
      attributes: {},
    };
    mailroom.addDeadLetter('cut-undelivered', letter);
    const report = await status(mailroom, withCut);
    expect(report).toMatchObject({ state: 'broken', looks: [] });
  });
});

describe('a consumer whose messages are all in flight', () => {
  test('is a problem if none of them ends, and the first sentence has its cause', async () => {
    const mailroom = await mailroomWithEvent(3);
    await mailroom.clock.advance(3 * MINUTE);
    const report = await status(mailroom, withCut, 3);
    expect(report).toMatchObject({
      state: 'broken',
      looks: [{ consumer: 'cut', look: 'crashing', messages: 3 }],
    });
    expect(unwrapped(statusText(report, lines))).toContain(
      'cut finishes no messages: its function crashes, or cannot reach the table, as its log shows. 3 messages in flight, and no attempt at events published 3 min ago ended',
    );
    expect(report.consumers.cut).toMatchObject({ inFlight: 3, backlog: 3 });
    expect(report.consumers.cut?.oldestUnprocessedMs).toBeGreaterThan(5 * MINUTE);
  });

  test.each([
    ['a few wait again', 3, 1, ['crashing']],
    ['most wait', 1, 3, []],
  ])('where %s', async (_what, inFlight, waiting, looks) => {
    const mailroom = await mailroomWithEvent(4);
    await mailroom.clock.advance(3 * MINUTE);
    const report = await status(mailroom, withCut, inFlight, waiting);
    expect(report.looks.map(({ look }) => look)).toEqual(looks);
  });

  test('is a warning where there is only one message, which may crash each worker', async () => {
    const mailroom = await mailroomWithEvent();
    await mailroom.clock.advance(3 * MINUTE);
    expect(await status(mailroom, withCut, 1)).toMatchObject({
      state: 'look',
      looks: [{ look: 'crashing', messages: 1 }],
    });
  });

  test.each([
    ['a worker holds one for the first time', { leaseUntil: 60 * MINUTE, unfinished: undefined }, []],
    ['a worker holds one again that crashed once', { leaseUntil: 60 * MINUTE, unfinished: 1 }, []],
    ['workers crashed at each twice', { leaseUntil: -5 * MINUTE, unfinished: 1 }, ['crashing']],
  ])('where %s', async (_what, { leaseUntil, unfinished }, looks) => {
    const mailroom = await mailroomWithEvent();
    await mailroom.clock.advance(6 * MINUTE);
    const lease = { status: 'PROCESSING', leaseUntil: mailroom.clock.now() + leaseUntil, unfinished };
    const row = { schema: 1, fence: 'f', attempts: 1, type: 'ThingHappened', ...lease };
    await mailroom.memory.write({ Put: { Item: { ...inboxKey('cut', mailroom.eventId), ...row } } });
    expect((await status(mailroom, withCut, 1)).looks.map(({ look }) => look)).toEqual(looks);
  });
});

test('rows of an unknown status are found, in the outbox and in an inbox', async () => {
  const mailroom = await mailroomWithEvent(2);
  const { memory, eventId, clock } = mailroom;
  for (const key of [outboxKeyOf(eventId), inboxKey('worker', eventId)])
    await memory.write({ Put: { Item: { ...memory.item(key), status: 'PARKED' } } });
  await clock.advance(3 * MINUTE);
  // The inbox row of an event that cannot be read is not looked for.
  expect(await status(mailroom)).toMatchObject({ state: 'broken', outbox: { pending: 0, unreadable: 1 } });
  await memory.write({ Put: { Item: { ...memory.item(outboxKeyOf(eventId)), status: 'PUBLISHED' } } });
  const report = await status(mailroom);
  expect(report).toMatchObject({ state: 'broken', consumers: { worker: { unreadable: 1 } } });
  expect(statusText(report, lines)).toContain('mailroom audit --since 24h');
});

test('an event of an undeclared source has its own finding, and makes no other event look old', async () => {
  const mailroom = await mailroomWithEvent();
  const { outbox, happened, clock } = mailroom;
  const [event] = await outbox.commit({ events: [happened(1)] });
  await clock.advance(20 * MINUTE);
  const entries = { ...directory, mailroom: { ...directory.mailroom, sources: ['others'] } };
  const report = await status(mailroom, entries);
  expect(report).toMatchObject({
    state: 'broken',
    outbox: { pending: 1, oldestPendingMs: 0, undeclared: 1, firstUndeclared: event?.eventId },
  });
  const text = statusText(report, lines);
  expect(unwrapped(text)).toContain(
    '1 event pending with a source that no producer of this Mailroom declares',
  );
  expect(text).toContain(`mailroom why ${event?.eventId} --payload`);
  expect(text).not.toMatch(/pending, the oldest for/);
});
