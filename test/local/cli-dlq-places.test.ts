import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { startMove } from '../../cli/letters/move-task.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { eventually } from './support/eventually.ts';
import { byId, consumerOf, directory, queues, seeing, sqs } from './support/letters.ts';
import { mailroom } from './support/mailroom.ts';
import { get } from './support/order-system.ts';
import { deadEvent, forgottenEvent } from './support/stuck-events.ts';

vi.setConfig({ maxConcurrency: 10 });

describe.concurrent('DEAD events', () => {
  it('are listed, redriven, and published', async () => {
    const { eventId } = await deadEvent();
    const listed = await mailroom('dlq', 'list', 'dead', '--json');
    expect(listed.code).toBe(0);
    expect(byId(listed.json().places[0].letters)[eventId]).toMatchObject({
      eventId,
      type: 'OrderPlaced',
      expiresAt: null,
      fingerprint: 'relay MalformedDetail: The entry is malformed.',
    });
    const run = await mailroom(
      ...['dlq', 'redrive', 'dead', '--letter', eventId, '--wait', '15m', '--apply'],
      ...['--reason', 'mended', '--json'],
    );
    expect(run.code, run.err).toBe(0);
    expect(run.json().letters).toMatchObject([{ verdict: 'runs', outcome: 'processed' }]);
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED', requeuedReason: 'mended' });
  });

  it('are requeued by id, or by cause; the second time there is nothing to do', async () => {
    const word = randomUUID().replaceAll(/\d/g, '').replaceAll('-', '');
    const [one, two, other] = await Promise.all([
      deadEvent(`This is ${word}.`),
      deadEvent(`This is ${word}.`),
      deadEvent(),
    ]);
    const requeue = ['dead', 'requeue', '--reason', 'mended', '--json'];
    const byCause = await mailroom(...requeue, '--all', '--cause', word.toUpperCase());
    expect(byCause.code, byCause.err).toBe(0);
    expect(byCause.json().requeued.sort()).toEqual([one.eventId, two.eventId].sort());
    expect((await mailroom(...requeue, '--all', '--cause', word)).json()).toEqual({
      requeued: [],
      notDead: [],
    });
    const named = [...requeue, other.eventId];
    expect((await mailroom(...named)).json()).toEqual({ requeued: [other.eventId], notDead: [] });
    expect((await mailroom(...named)).json()).toEqual({ requeued: [], notDead: [other.eventId] });
    for (const { eventId } of [one, two, other]) {
      await eventually(async () => {
        expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED' });
      });
    }
  });

  it('are discarded for good', async () => {
    const { eventId } = await deadEvent();
    const argv = ['dlq', 'discard', 'dead', '--letter', eventId, '--reason', 'a test order', '--json'];
    expect((await mailroom(...argv)).json()).toMatchObject({ applied: false });
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'DEAD' });
    expect((await mailroom(...argv, '--apply')).json().letters).toMatchObject([{ outcome: 'discarded' }]);
    expect(await get(outboxKeyOf(eventId))).toMatchObject({
      status: 'DISCARDED',
      expiresAt: expect.any(Number),
    });
    expect((await mailroom(...argv, '--apply')).code).toBe(3);
    const requeued = await mailroom('dead', 'requeue', eventId, '--reason', 'after all', '--json');
    expect(requeued.json()).toEqual({ requeued: [], notDead: [eventId] });
  });

  it.each([
    [['dead', 'requeue', '01a1fba6-4458-7a41-9c37-3f5d2b8e1103', '--reason', 'mended'], 3, 'NO_SUCH_EVENT'],
    [['dead', 'requeue', '42', '--reason', 'mended'], 2, 'UUIDv7'],
    [['dead', 'requeue', '--reason', 'mended'], 2, 'BAD_ARGUMENT'],
    [['dead', 'requeue', '--all'], 2, '--reason'],
  ])('are not requeued by %j', async (argv, code, says) => {
    const run = await mailroom(...argv);
    expect(run.code).toBe(code);
    expect(run.err).toContain(says);
  });
});

describe.concurrent('letters of the stream', () => {
  it('are swept: what the batch held is published, and the letter goes', async () => {
    const ageMs = 30 * 60_000;
    const { eventId } = await forgottenEvent(ageMs);
    const at = new Date(Date.now() - ageMs).toISOString();
    const letter = await queues.send(
      directory.mailroom.failureQueue,
      JSON.stringify({
        requestContext: { condition: 'RetryAttemptsExhausted' },
        version: '1.0',
        DDBStreamBatchInfo: {
          approximateArrivalOfFirstRecord: at,
          approximateArrivalOfLastRecord: at,
          batchSize: 1,
        },
      }),
    );
    const unreadable = await queues.send(directory.mailroom.failureQueue, 'no JSON');
    const argv = ['dlq', 'redrive', 'stream', '--json', '--letter', letter, unreadable];
    const plan = byId((await seeing(...argv)).json().letters);
    expect(plan[letter]).toMatchObject({ verdict: 'runs', fingerprint: 'RetryAttemptsExhausted' });
    expect(plan[unreadable]).toMatchObject({ verdict: 'fails', code: 'UNREADABLE_LETTER' });
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PENDING' });

    const run = await seeing(...argv, '--apply');
    expect(run.code).toBe(1); // the other one is there still
    expect(byId(run.json().letters)[letter]).toMatchObject({ outcome: 'processed' });
    expect(await get(outboxKeyOf(eventId))).toMatchObject({ status: 'PUBLISHED' });

    const discard = ['dlq', 'discard', 'stream', '--letter', unreadable, '--reason', 'not ours', '--apply'];
    const discarded = await seeing(...discard);
    expect(discarded.code).toBe(0);
    expect(discarded.out).toContain('the sweep publishes them');
    expect((await mailroom(...discard)).code).toBe(3);
  });
});

it('an engine without move tasks is told from one that fails', async () => {
  const { deadLetterQueue, queue } = consumerOf('inventory');
  const [from, to] = await Promise.all(
    [deadLetterQueue, queue].map(async (url) => (await queues.depth(url)).arn),
  );
  const engine = { sqs, isLocal: false };
  expect(await startMove(engine, { from: from ?? '', to: to ?? '', ratePerS: 10 })).toBe(false);
});

it.each([
  [['dlq', 'list', 'nowhere'], 3, 'NO_SUCH_PLACE'],
  [['dlq', 'redrive'], 2, 'place'],
  [['dlq', 'redrive', 'consumer:nobody'], 3, 'consumer:payments'],
  [['dlq', 'redrive', 'dead', '--rate', '0/s'], 2, 'letters a second'],
  [['dlq', 'redrive', 'dead', '--limit', 'all'], 2, 'whole number'],
  [['dlq', 'redrive', 'dead', '--wait', '5'], 2, 'whole number with a unit'],
  [['dlq', 'discard', 'stream', '--reason', 'why not'], 2, 'BAD_ARGUMENT'],
  [['dlq', 'discard', 'stream', '--all'], 2, '--reason'],
  [['dlq', 'discard', 'stream', '--all', '--reason', ' '], 2, 'must say why'],
])('%j is refused', async (argv, code, says) => {
  const run = await mailroom(...argv);
  expect(run.code).toBe(code);
  expect(run.err).toContain(says);
});

it('where nothing is dead there is nothing to do', async () => {
  const empty = await mailroom('dlq', 'redrive', 'rule:order-status', '--apply');
  expect(empty).toMatchObject({ code: 0, err: '' });
  const discard = ['dlq', 'discard', 'rule:order-status', '--all', '--reason', 'nothing', '--apply'];
  expect(await mailroom(...discard)).toMatchObject({ code: 0, err: '' });
  expect(await mailroom('dlq', 'list', 'rule:order-status')).toMatchObject({
    code: 0,
    out: 'Nothing is dead.\n',
  });
});
