import { expect, test } from 'vitest';
import { unwrapped } from '../../support/captured-io.ts';
import { mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { broken, commit, fine, poison } from './support/why-rig.ts';

/** A Mailroom whose events are published, and wait in the queue. */
async function published(count: number, handler = fine) {
  const mailroom = mailroomInMemory([handler]);
  const ids: string[] = [];
  for (let nth = 0; nth < count; nth += 1) ids.push(await commit(mailroom));
  await mailroom.publish();
  return { mailroom, ids };
}

test('why takes the beginning of an event id, and an ambiguous one lists the candidates', async () => {
  const { mailroom, ids } = await published(2);
  const [first = '', second = ''] = ids;
  const one = await runInMemory(mailroom, ['why', first.slice(0, 23), '--json']);
  expect(JSON.parse(one.out)).toMatchObject({ verdict: { eventId: first, state: 'waiting' } });
  const both = await runInMemory(mailroom, ['why', first.slice(0, 12)]);
  expect(both.code).toBe(2);
  expect(both.err).toContain('AMBIGUOUS_ID');
  for (const id of [first, second]) expect(both.err).toContain(id);
});

test('why takes the id of a dead letter', async () => {
  const { mailroom, ids } = await published(1, poison);
  await mailroom.drain();
  const [letter] = mailroom.queue.deadLetters();
  const { out, code } = await runInMemory(mailroom, ['why', letter?.messageId.toUpperCase() ?? '', '--json']);
  expect(code).toBe(1);
  expect(JSON.parse(out).verdict).toMatchObject({ eventId: ids[0], state: 'rejected', consumer: 'worker' });
  expect(mailroom.shown).toContain(letter?.messageId);
});

test('why names the command that shows a dead letter of no known event', async () => {
  const mailroom = mailroomInMemory([fine]);
  const messageId = '5f0a1a0c-6a2e-4f0f-9a3c-0c9d5b7e4f11';
  const letter = {
    messageId,
    body: 'not JSON',
    sentAt: mailroom.clock.now(),
    receiptHandle: 'r',
    attributes: {},
  };
  mailroom.addDeadLetter(worker.undeliveredQueue, letter);
  const { err, code } = await runInMemory(mailroom, ['why', messageId]);
  expect(code).toBe(3);
  expect(unwrapped(err)).toContain(`npx cdk-mailroom dlq show rule:worker ${messageId} --stage dev`);
});

test('why --at searches around a time that --since from now on does not reach', async () => {
  const mailroom = mailroomInMemory([fine]);
  await mailroom.outbox.commit({ events: [mailroom.happened(7)] });
  const at = new Date(mailroom.clock.now()).toISOString();
  await mailroom.clock.advance(6 * 3_600_000);
  const lost = await runInMemory(mailroom, ['why', 'thing-7', '--since', '10m']);
  expect(lost.code).toBe(3);
  expect(unwrapped(lost.err)).toContain('--at');
  const found = await runInMemory(mailroom, ['why', 'thing-7', '--since', '10m', '--at', at, '--json']);
  expect(JSON.parse(found.out).verdict.state).toBe('stuck');
});

test('events list shows pending events, the longest waiting first, and the command to run', async () => {
  const mailroom = mailroomInMemory([fine]);
  const first = await commit(mailroom);
  await mailroom.clock.advance(6 * 60_000);
  const second = await commit(mailroom);
  const { out, code } = await runInMemory(mailroom, ['events', 'list', '--pending', '--json']);
  expect(code).toBe(0);
  const { events, more } = JSON.parse(out);
  expect(events).toMatchObject([
    {
      eventId: first,
      status: 'PENDING',
      type: 'ThingHappened',
      source: 'things',
      attempts: 0,
      lastError: null,
    },
    { eventId: second },
  ]);
  expect(more).toBe(false);
  const text = (await runInMemory(mailroom, ['events', 'list', '--pending', '--limit', '1'])).out;
  expect(text).toMatch(/^2 events pending\n {2}npx cdk-mailroom status --stage dev\n/);
  expect(text).toContain(first);
  expect(text).not.toContain(second);
  const groups = JSON.parse(
    (await runInMemory(mailroom, ['events', 'list', '--by', 'source', '--json'])).out,
  );
  expect(groups.sources).toMatchObject([{ source: 'things', count: 2, example: second }]);
});

test('events list shows DEAD events with their cause', async () => {
  const mailroom = mailroomInMemory([fine], {
    bus: { failEntry: () => ({ code: 'InvalidArgument', message: 'The entry is invalid' }) },
  });
  const eventId = await commit(mailroom);
  for (let pass = 0; pass < 6; pass += 1) await mailroom.publish();
  const { out } = await runInMemory(mailroom, ['events', 'list', '--dead', '--json']);
  expect(JSON.parse(out).events).toMatchObject([{ eventId, status: 'DEAD', source: 'things' }]);
  expect((await runInMemory(mailroom, ['events', 'list'])).out).toMatch(/^1 event DEAD\n.*dlq list dead/);
});

test('messages list --waiting shows what a consumer has not claimed', async () => {
  const { mailroom, ids } = await published(3, broken);
  const { out } = await runInMemory(mailroom, ['messages', 'list', '--waiting', '--json']);
  const { messages } = JSON.parse(out);
  expect(messages.map(({ eventId }: { eventId: string }) => eventId).sort()).toEqual(ids.sort());
  expect(messages[0]).toMatchObject({
    status: 'WAITING',
    consumer: 'worker',
    attempt: null,
    type: 'ThingHappened',
  });
  const limited = await runInMemory(mailroom, ['messages', 'list', '--waiting', '--limit', '2', '--json']);
  expect(JSON.parse(limited.out)).toMatchObject({ more: true, messages: [{}, {}] });
  await mailroom.deliver();
  const after = await runInMemory(mailroom, ['messages', 'list', '--waiting', '--json']);
  expect(JSON.parse(after.out).messages).toEqual([]);
  const failed = await runInMemory(mailroom, ['messages', 'list', '--json']);
  expect(JSON.parse(failed.out).messages).toHaveLength(3);
});

test.each(['aggregateId', 'correlationId'])(
  'why takes the %s of a dead letter whose outbox row has expired',
  async (name) => {
    const mailroom = mailroomInMemory([fine]);
    const order = '3f0c6a52-0b59-4b6e-9d1e-0a3f4c5d6e7f';
    const messageId = '5f0a1a0c-6a2e-4f0f-9a3c-0c9d5b7e4f11';
    mailroom.addDeadLetter(worker.undeliveredQueue, {
      messageId,
      receiptHandle: 'r',
      body: JSON.stringify({ 'detail-type': 'ThingHappened', detail: { [name]: order } }),
      sentAt: mailroom.clock.now(),
      attributes: {},
    });
    const { err, code } = await runInMemory(mailroom, ['why', order]);
    expect(code).toBe(3);
    expect(unwrapped(err)).toContain(`npx cdk-mailroom dlq show rule:worker ${messageId} --stage dev`);
  },
);
