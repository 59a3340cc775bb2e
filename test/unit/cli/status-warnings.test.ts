import { describe, expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusText } from '../../../cli/reports/status/status-text.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
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

function status({ table, queues, clock }: Mailroom, inFlight = 0) {
  return readStatus({
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
    expect(unwrapped(text)).toMatch(/^1 warning .*worker fails at every message: 10 failed/);
    expect(text).toContain('mailroom messages list --failed --by cause --consumer worker');
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
    const report = await readStatus(
      withStored({ directory, region: 'x', table, queues, wiring, now: clock.now() }),
    );
    expect(report).toMatchObject({ state: 'broken', looks: [] });
    expect(report.wiring.problems).toHaveLength(1);
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
