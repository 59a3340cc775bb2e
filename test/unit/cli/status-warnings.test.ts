import { describe, expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import type { BacklogHistory } from '../../../cli/deployment/resources.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { createStatusReader } from '../../../cli/reports/status/status-reader.ts';
import { statusText } from '../../../cli/reports/status/status-text.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { failedKey, inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import type { Key } from '../../../lambdas/runtime/store/table.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, wired, wiringOf } from './support/resources-in-memory.ts';

const lines = {
  commandLine: (command: string) => `mailroom ${command}`,
  awsLine: (command: string) => `aws ${command}`,
};

/** A Mailroom whose handler fails while `bank.closed`, and always at a negative number. */
function mailroomWithBank() {
  const bank = { closed: false };
  const charge = leased(ThingHappened, async ({ data }) => {
    if (bank.closed || data.n < 0) throw new Error('the bank is closed');
  });
  return { ...mailroomInMemory([charge]), bank };
}

type Mailroom = ReturnType<typeof mailroomWithBank>;

async function commit({ outbox, happened }: Mailroom, count: number, sign = 1): Promise<void> {
  for (let n = 1; n <= count; n += 1) await outbox.commit({ events: [happened(sign * n)] });
}

function status(
  { table, queues, clock }: Mailroom,
  inFlight = 0,
  backlog?: (queueUrl: string) => Promise<BacklogHistory>,
) {
  return readStatus({
    backlog,
    directory,
    region: 'eu-west-1',
    table,
    stored: dynamoRows(table),
    queues: {
      ...queues,
      depth: async (url) => {
        const depth = await queues.depth(url);
        return url === worker.queue ? { ...depth, inFlight } : depth;
      },
    },
    wiring: wired,
    now: clock.now(),
  });
}

describe('a consumer whose every attempt fails', () => {
  test('is a warning, although every message is still retried', async () => {
    const mailroom = mailroomWithBank();
    mailroom.bank.closed = true;
    await commit(mailroom, 10);
    await mailroom.publish();
    await mailroom.deliver();
    const report = await status(mailroom, 10);
    expect(report).toMatchObject({
      ok: false,
      state: 'look',
      looks: [{ consumer: 'worker', look: 'failing', messages: 10 }],
    });
    const text = statusText(report, lines);
    expect(unwrapped(text)).toMatch(
      /^1 warning .*worker fails at every message: 10 failed, and .* of the last .*; newest error: the bank is closed/,
    );
    expect(text).toContain('mailroom messages list --failed --by cause --consumer worker');
  });

  test('shows the error of the message that failed last, not of the newest event', async () => {
    const mailroom = mailroomWithBank();
    const { memory, outbox, clock } = mailroom;
    mailroom.bank.closed = true;
    const ids: string[] = [];
    for (let n = 1; n <= 5; n += 1) {
      const [event] = await outbox.commit({ events: [mailroom.happened(n)] });
      ids.push(event?.eventId ?? '');
    }
    await mailroom.publish();
    await mailroom.deliver();
    const change = (key: Key, to: object) => memory.write({ Put: { Item: { ...memory.item(key), ...to } } });
    await change(failedKey(worker.name, ids[2] ?? ''), { failedAt: clock.now() + 1_000 });
    await change(inboxKey(worker.name, ids[2] ?? ''), { lastError: 'the bank has moved' });
    expect((await status(mailroom, 5)).looks).toMatchObject([
      { look: 'failing', lastError: 'the bank has moved' },
    ]);
  });

  test('is found also when it processed others of the same minute before', async () => {
    const mailroom = mailroomWithBank();
    await commit(mailroom, 10);
    await mailroom.publish();
    await mailroom.drain();
    mailroom.bank.closed = true;
    await commit(mailroom, 5);
    await mailroom.publish();
    await mailroom.deliver();
    expect((await status(mailroom, 5)).looks).toMatchObject([{ look: 'failing', messages: 5 }]);
  });

  test.each([
    ['fewer than five messages fail', 4, 0],
    ['a later message succeeded', 5, 1],
    ['it is busy, and one in twenty fails', 5, 95],
  ])('is not meant where %s', async (_what, failed, succeeded) => {
    const mailroom = mailroomWithBank();
    await commit(mailroom, failed, -1);
    await commit(mailroom, succeeded);
    await mailroom.publish();
    for (let round = 0; round < 12; round += 1) await mailroom.deliver();
    const report = await status(mailroom, failed);
    expect(report.consumers.worker).toMatchObject({ failed });
    expect(report.looks).toEqual([]);
    expect(report.state).toBe('ok');
  });
});

describe('messages that wait', () => {
  test('messages that wait for two minutes with none in flight show a stalled consumer', async () => {
    const mailroom = mailroomWithBank();
    await commit(mailroom, 3);
    await mailroom.publish();
    expect((await status(mailroom)).looks).toEqual([]);
    await mailroom.clock.advance(3 * 60_000);
    await mailroom.publish();
    const report = await status(mailroom);
    expect(report).toMatchObject({
      state: 'look',
      looks: [{ consumer: 'worker', look: 'stalled', messages: 3 }],
    });
    expect(statusText(report, lines)).toContain('mailroom logs worker');
    // Others are in flight: it works.
    expect((await status(mailroom, 2)).looks).toEqual([]);
  });

  test('messages that wait for fifteen minutes show a consumer that is behind', async () => {
    const mailroom = mailroomWithBank();
    await commit(mailroom, 3);
    await mailroom.publish();
    await mailroom.clock.advance(15 * 60_000);
    await mailroom.publish();
    const report = await status(mailroom, 2);
    expect(report.looks).toMatchObject([{ look: 'behind', messages: 3 }]);
    expect(unwrapped(statusText(report, lines))).toContain('worker is behind');
  });

  test('messages behind a disabled mapping are explained by the mapping', async () => {
    const mailroom = mailroomWithBank();
    await commit(mailroom, 3);
    await mailroom.publish();
    await mailroom.clock.advance(3 * 60_000);
    await mailroom.publish();
    const deployed = resourcesInMemory();
    const own = deployed.mappings.get(worker.function) ?? [];
    deployed.mappings.set(
      worker.function,
      own.map((mapping) => ({ ...mapping, enabled: false })),
    );
    const { table, queues, clock } = mailroom;
    const wiring = wiringOf(deployed.resources);
    const now = clock.now();
    // It also rises, and is older than usual.
    const backlog = async () => ({
      waiting: [{ at: now - 3 * 60_000, value: 1 }],
      agesMs: [{ at: now - 3_600_000, value: 1_000 }],
    });
    const report = await readStatus(
      withStored({ directory, region: 'x', table, queues, wiring, backlog, now }),
    );
    expect(report).toMatchObject({ state: 'broken', looks: [] });
    expect(report.wiring.problems).toHaveLength(1);
  });
});

describe('a backlog that is younger than its alarm allows', () => {
  const { backlog: none } = resourcesInMemory().resources;
  const at = (now: number, values: readonly number[], everyMs: number, untilMs: number) =>
    values.map((value, i) => ({ at: now - untilMs - (values.length - 1 - i) * everyMs, value }));
  /** The history of the queue: its counts of the last minutes, and its greatest age before. */
  const historyOf = (now: number, counts: readonly number[], ageMs?: number): BacklogHistory => ({
    waiting: at(now, counts, 60_000, 60_000),
    agesMs: ageMs === undefined ? [] : at(now, [1_000, ageMs, 1_000], 300_000, 15 * 60_000),
  });

  /** A consumer that processed ten events at once, and has not claimed the next five for minutes. */
  async function waiting() {
    const mailroom = mailroomWithBank();
    await commit(mailroom, 10);
    await mailroom.publish();
    for (let round = 0; round < 12; round += 1) await mailroom.deliver();
    await mailroom.clock.advance(15 * 60_000);
    await commit(mailroom, 5);
    await mailroom.publish();
    await mailroom.clock.advance(210_000);
    await mailroom.publish();
    return mailroom;
  }

  const looksOf = async (counts: readonly number[], ageMs?: number) => {
    const mailroom = await waiting();
    const report = await status(mailroom, 2, async () => historyOf(mailroom.clock.now(), counts, ageMs));
    return { ...report, text: unwrapped(statusText(report, lines)) };
  };

  test.each<[string, readonly number[], number | undefined]>([
    ['its number rises', [1, 2, 4], undefined],
    ['its number stays', [5, 5, 5], undefined],
    ['its number rises, and its queue was younger before', [1, 2, 4], 60_000],
    ['its number stays after a burst 7 minutes ago', [400, 4, 4, 4, 4, 5, 5], undefined],
  ])('is reported if it is older than usual, and %s', async (_what, counts, ageMs) => {
    const { state, looks, text } = await looksOf(counts, ageMs);
    expect(state).toBe('look');
    expect(looks).toMatchObject([{ consumer: 'worker', look: 'behind', messages: 5, usualMs: 120_000 }]);
    expect(text).toContain('worker falls behind: 5 messages in its queue, not fewer than before');
    expect(text).toContain('usually the oldest waits for at most 2 min');
  });

  test.each<[string, readonly number[], number | undefined]>([
    ['is a burst that is being worked off', [400, 90, 40], undefined],
    ['fell, and hardly changes', [6, 5, 5], undefined],
    ['was as old in the last hours', [1, 2, 4], 10 * 60_000],
    ['is known for a minute only', [4], undefined],
    ['has no history', [], undefined],
  ])('is not reported if it %s', async (_what, counts, ageMs) => {
    expect(await looksOf(counts, ageMs)).toMatchObject({ state: 'ok', looks: [] });
  });

  test('does not make its own age usual', async () => {
    const mailroom = await waiting();
    const now = mailroom.clock.now();
    const history = historyOf(now, [1, 2, 4], 60_000);
    const agesMs = [...history.agesMs, { at: now - 5 * 60_000, value: 10 * 60_000 }];
    const report = await status(mailroom, 2, async () => ({ ...history, agesMs }));
    expect(report.looks).toMatchObject([{ look: 'behind', usualMs: 120_000 }]);
  });

  test('is not reported while the consumer has processed nothing and its queue has no ages, which would show the usual age', async () => {
    const mailroom = mailroomWithBank();
    await commit(mailroom, 5);
    await mailroom.publish();
    await mailroom.clock.advance(210_000);
    await mailroom.publish();
    const rising = historyOf(mailroom.clock.now(), [1, 2, 4]);
    expect((await status(mailroom, 2, async () => rising)).looks).toEqual([]);
  });

  test('is found without metrics by a status that is shown continuously', async () => {
    const mailroom = await waiting();
    const { table, queues, clock } = mailroom;
    const reader = createStatusReader({
      ...{ directory, region: 'eu-west-1', clock, table, stored: dynamoRows(table) },
      queues: {
        ...queues,
        depth: async (url) => ({
          ...(await queues.depth(url)),
          ...(url === worker.queue && { inFlight: 2 }),
        }),
      },
      resources: { ...resourcesInMemory().resources, backlog: none },
    });
    expect((await reader.read()).looks).toEqual([]);
    await clock.advance(130_000);
    await mailroom.publish();
    expect((await reader.read()).looks).toMatchObject([{ look: 'behind', messages: 5 }]);
  });
});

test('an event that was requeued waits since then, and the sweep still reaches back to its commit', async () => {
  const mailroom = mailroomWithBank();
  const { clock, memory, outbox } = mailroom;
  const [event] = await outbox.commit({ events: [mailroom.happened(1)] });
  await clock.advance(70 * 60_000);
  const row = memory.item(outboxKeyOf(event?.eventId ?? ''));
  await memory.write({ Put: { Item: { ...row, requeuedAt: clock.now(), requeuedBy: 'ada' } } });
  await clock.advance(6 * 60_000);
  const report = await status(mailroom);
  expect(report.outbox).toMatchObject({ oldestPendingMs: 6 * 60_000, oldestCommittedMs: 76 * 60_000 });
  const text = statusText(report, lines);
  expect(unwrapped(text)).toContain('1 event pending, the oldest for 6 min');
  expect(text).toContain('mailroom sweep --since 2h');
});
