import { describe, expect, test } from 'vitest';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusText } from '../../../cli/reports/status/status-text.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { eventIdTime } from '../../../lambdas/runtime/store/event-id.ts';
import { deadKey, failedKey, SWEEP_STATE_KEY } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { consumerConfig, ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, RETENTION_MS, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, wired, wiringOf } from './support/resources-in-memory.ts';

type Mailroom = ReturnType<typeof mailroomInMemory>;

const fine = leased(ThingHappened, async () => {});

function status({ table, queues, clock }: Mailroom, wiring = wired) {
  return readStatus(withStored({ directory, region: 'eu-west-1', table, queues, wiring, now: clock.now() }));
}

const lines = {
  commandLine: (command: string) => `mailroom ${command}`,
  awsLine: (command: string) => `aws ${command}`,
};

describe('the status', () => {
  test('is well when everything was processed', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    await mailroom.drain();

    const report = await status(mailroom);
    expect(report).toMatchObject({
      stack: 'mailroom-dev',
      region: 'eu-west-1',
      ok: true,
      outbox: { pending: 0, oldestPendingMs: 0, dead: 0 },
      consumers: { worker: { queued: 0, inFlight: 0, failed: 0, rejected: 0, deadLetters: 0 } },
      atLeast: [],
    });
    expect(report.deadLetterSources.map(({ source, count }) => [source, count])).toEqual([
      ['dead', 0],
      ['stream', 0],
      ['rule:worker', 0],
      ['consumer:worker', 0],
    ]);
  });

  test('counts PENDING rows in minutes that no sweep has read, with the age of the oldest', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.clock.advance(20 * 60_000);
    await mailroom.outbox.commit({ events: [mailroom.happened(2), mailroom.happened(3)] });

    const report = await status(mailroom);
    expect(report.outbox).toEqual({
      pending: 3,
      oldestPendingMs: 20 * 60_000,
      oldestCommittedMs: 20 * 60_000,
      inDatabase: { pending: 0, oldestPendingMs: 0, oldest: null },
      dead: 0,
      sweptAgoMs: null,
      unsweptMs: 20 * 60_000,
      unreadable: 0,
      undeclared: 0,
      firstUndeclared: null,
      stuck: [expect.objectContaining({ because: 'due', events: 1 })],
      scheduled: { withinMs: 60 * 60_000, due: 0, nextDueAt: null, overdue: 0 },
    });
    expect(report.ok).toBe(false);
    // The silent sweep is not a second problem.
    expect(unwrapped(statusText(report, lines))).toMatch(
      /^1 problem .*1 of 3 pending events should be published by now, the oldest for 20 min.*mailroom sweep --since 1h/,
    );
  });

  test('names a sweep that still reaches the oldest event when it is typed a few minutes later', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.clock.advance(59 * 60_000);
    expect(statusText(await status(mailroom), lines)).toContain('mailroom sweep --since 2h');
  });

  test('requires action when the sweep has stopped running, even if nothing waits', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.publish();
    expect((await status(mailroom)).ok).toBe(true);
    await mailroom.clock.advance(5 * 60_000);
    const report = await status(mailroom);
    expect(report.outbox.pending).toBe(0);
    expect(report.ok).toBe(false);
    expect(unwrapped(statusText(report, lines))).toMatch(
      /1 problem.*the sweep has not completed a pass for 5 min.*mailroom sweep --since 1h/,
    );
  });

  test('waits three intervals for a sweep that runs less often', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.publish();
    const deployed = resourcesInMemory();
    deployed.changeEnvironment(directory.mailroom.sweepFunction, { MAILROOM_SWEEP_EVERY_MS: '600000' });
    await mailroom.clock.advance(29 * 60_000);
    expect((await status(mailroom, wiringOf(deployed.resources))).ok).toBe(true);
    await mailroom.clock.advance(60_000);
    expect((await status(mailroom, wiringOf(deployed.resources))).ok).toBe(false);
  });

  test('requires action when no sweep has ever run: its silence counts from the creation of the table', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.clock.advance(5 * 60_000);
    expect((await status(mailroom)).ok).toBe(true);
    await mailroom.clock.advance(1);
    const report = await status(mailroom);
    expect(report).toMatchObject({ outbox: { sweptAgoMs: null, unsweptMs: 300_001 }, ok: false });
    const text = statusText(report, lines);
    expect(text).toContain('mailroom sweep --since 1h');
  });

  test('treats an unreadable sweep state as missing', async () => {
    const mailroom = mailroomInMemory([fine]);
    const state = { ...SWEEP_STATE_KEY, schema: 1, shards: 'many', sweptTo: 'yesterday' };
    await mailroom.table.write({ Put: { Item: state } });
    await mailroom.clock.advance(600_000);
    expect((await status(mailroom)).outbox).toMatchObject({ sweptAgoMs: null, unsweptMs: 600_000 });
  });

  test('names a queue that does not exist, and shows all the others', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    const deployed = resourcesInMemory();
    deployed.queues.delete(worker.undeliveredQueue);
    const queues = {
      ...mailroom.queues,
      depth: async (url: string) => {
        if (url !== worker.undeliveredQueue) return mailroom.queues.depth(url);
        throw Object.assign(new Error('There is no such queue'), { name: 'QueueDoesNotExist' });
      },
    };
    const report = await status({ ...mailroom, queues }, wiringOf(deployed.resources));
    expect(report).toMatchObject({ gone: [worker.undeliveredQueue], ok: false });
    expect(report.consumers.worker).toMatchObject({ queued: 1 });
    expect(unwrapped(statusText(report, lines))).toContain(
      `the queue ${worker.undeliveredQueue} does not exist`,
    );
  });

  test('counts rows that a sweep left unsettled, long after', async () => {
    const error = { code: 'ThrottlingException', message: 'slow down' };
    const mailroom = mailroomInMemory([fine], { bus: { failEntry: () => error } });
    const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    await mailroom.publish();
    await mailroom.publish();

    const { outbox } = await status(mailroom);
    expect(outbox.pending).toBe(1);
    expect(outbox.oldestPendingMs).toBe(mailroom.clock.now() - eventIdTime(event?.eventId ?? ''));
    expect(outbox.sweptAgoMs).toBeLessThan(60_000);
  });

  test('finds DEAD events in every shard that was ever used, not only in today’s', async () => {
    const mailroom = mailroomInMemory([fine]);
    const pointer = { schema: 1, deadAt: 7, type: 'ThingHappened', lastError: 'no', fingerprint: 'no' };
    await mailroom.table.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 40 } } });
    await mailroom.table.write({ Put: { Item: { ...deadKey(39, 'an-event'), ...pointer } } });

    const report = await status(mailroom);
    expect(report.outbox.dead).toBe(1);
    expect(report.deadLetterSources[0]).toEqual({
      source: 'dead',
      count: 1,
      oldestAt: 7,
      firstExpiryAt: null,
    });
    expect(report.ok).toBe(false);
  });

  test('the status counts a failed message as long as its row says FAILED, and asks no operator to act', async () => {
    let broken = true;
    const mailroom = mailroomInMemory([
      leased(ThingHappened, async () => {
        if (broken) throw new Error('the bank is closed');
      }),
    ]);
    const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    await mailroom.deliver();
    const failing = await status(mailroom);
    expect(failing.consumers.worker).toMatchObject({ failed: 1, rejected: 0, deadLetters: 0 });
    expect(failing.ok).toBe(true);

    broken = false;
    await mailroom.clock.advance(600_000);
    await mailroom.drain();
    const key = failedKey(worker.name, event?.eventId ?? '');
    await mailroom.table.write({ Put: { Item: { ...key, schema: 1, failedAt: 1, expiresAt: 1 } } });
    expect((await status(mailroom)).consumers.worker).toMatchObject({ failed: 0 });
  });

  test('says when the first dead letter is deleted: the retention after its first send, however late it died', async () => {
    const mailroom = mailroomInMemory([
      leased(ThingHappened, async () => {
        throw new PoisonMessage('not like this');
      }),
    ]);
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    const sentAt = mailroom.queue.messages()[0]?.sentAt ?? 0;
    await mailroom.clock.advance(3 * 60_000);
    await mailroom.drain();

    const report = await status(mailroom);
    expect(report.consumers.worker).toMatchObject({ queued: 0, failed: 0, rejected: 1, deadLetters: 1 });
    expect(report.deadLetterSources.at(-1)).toEqual({
      source: 'consumer:worker',
      count: 1,
      oldestAt: sentAt,
      firstExpiryAt: sentAt + RETENTION_MS,
    });
    expect(report.ok).toBe(false);
  });

  test('requires action if a message was rejected and no longer has a dead letter', async () => {
    const mailroom = mailroomInMemory([
      leased(ThingHappened, async () => {
        throw new PoisonMessage('not like this');
      }),
    ]);
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    await mailroom.drain();
    const gone = {
      ...mailroom.queues,
      depth: async (url: string) => ({ arn: url, waiting: 0, inFlight: 0, retentionMs: 1 }),
    };

    const report = await status({ ...mailroom, queues: gone });
    expect(report.ok).toBe(false);
    expect(statusText(report, lines)).toContain('messages list --rejected --consumer worker');
  });

  test('is read also where the sweep state is of another century, and the count of what waits is a lower bound', async () => {
    const mailroom = mailroomInMemory([fine]);
    await mailroom.table.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, sweptTo: 7 } } });
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    const report = await status(mailroom);
    expect(report.outbox.pending).toBe(1);
    expect(report.atLeast).toEqual(['outbox.pending']);
  });

  test('says which counts are lower bounds', async () => {
    const mailroom = mailroomInMemory([fine]);
    for (let n = 0; n < 1_001; n += 1) {
      const key = failedKey(consumerConfig.consumer, String(n).padStart(5, '0'));
      await mailroom.table.write({ Put: { Item: { ...key, schema: 1, failedAt: 1, expiresAt: 1 } } });
    }
    const report = await status(mailroom);
    expect(report.atLeast).toEqual(['consumers.worker.failed']);
    expect(statusText(report, lines)).toMatch(/worker.*0\+/);
  });
});
