import { describe, expect, test } from 'vitest';
import { messagesOf, messagesText } from '../../../cli/reports/messages/list-messages.ts';
import { eventReports, traceText } from '../../../cli/reports/why/trace-text.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased, transactional } from '../../../lambdas/runtime/consume/handler.ts';
import { resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { createOutbox } from '../../../lambdas/runtime/store/dynamo/outbox.ts';
import { discardDead, requeueDead } from '../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { consumerConfig, ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { broken, commit, drained, fine, poison, published, why } from './support/why-rig.ts';

describe('why, of an event that is under way', () => {
  test('it was just committed', async () => {
    const mailroom = mailroomInMemory([fine]);
    const { verdict, needed } = await why(mailroom, await commit(mailroom));
    expect(verdict).toMatchObject({ state: 'publishing', next: null });
    expect(needed).toBe(false);
  });

  test('it is in the queue', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await published(mailroom);
    const { verdict, story } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'waiting', consumer: 'worker', next: null });
    expect(story).toEqual(['outbox committed', 'outbox published', 'worker not-arrived']);
  });

  test('it failed: which attempt, when it is tried next, and what happens then', async () => {
    const mailroom = mailroomInMemory([broken]);
    const eventId = await published(mailroom);
    await mailroom.deliver();
    const { verdict, story, needed } = await why(mailroom, eventId);
    expect(verdict.state).toBe('retrying');
    expect(verdict.next).toBe('mailroom messages list --failed --by cause --consumer worker');
    expect(story.slice(2)).toEqual(['worker claimed', 'worker failed', 'worker next-attempt']);
    expect(needed).toBe(false);
  });

  test('it was processed, and so was what it caused', async () => {
    const mailroom = mailroomInMemory([
      transactional(ThingHappened, async ({ data }) => ({
        events: data.n > 2 ? [] : [ThingHappened.create({ aggregateId: 'next', data: { n: data.n + 1 } })],
      })),
    ]);
    const eventId = await commit(mailroom);
    for (let n = 0; n < 3; n += 1) {
      await mailroom.publish();
      await mailroom.drain();
    }
    const { verdict, trace } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'processed', eventId, next: null });
    expect(verdict.text).toBe(
      `ThingHappened ${eventId} and the 2 events that it caused: published, and processed by worker (2 min 30 s after its commit); ` +
        'ThingHappened by worker (2 min 30 s after its commit); ThingHappened by worker (2 min 30 s after its commit).',
    );
    const reports = eventReports(trace, true);
    expect(reports.map(({ data }) => data)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(reports.map(({ caused }) => caused)).toEqual([[reports[1]?.eventId], [reports[2]?.eventId], []]);
    expect(eventReports(trace, false)[0]).not.toHaveProperty('data');
    expect(traceText(trace)).not.toContain('"n"');
  });
});

describe('why, of what operators did', () => {
  test('a resolved message, with who and why', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await drained(mailroom);
    await resolveMessage(mailroom, {
      consumer: worker.name,
      eventId,
      reason: 'charged by phone',
      by: 'ada',
    });
    const { verdict, story } = await why(mailroom, eventId);
    expect(verdict.state).toBe('processed');
    expect(story).toContain('worker resolved');
  });

  test('a redriven message: what came before its last attempts was a rejection, not a wait', async () => {
    let isOpen = false;
    const bank = leased(ThingHappened, async () => {
      if (!isOpen) throw new PoisonMessage('the bank is closed');
    });
    const mailroom = mailroomInMemory([bank]);
    const eventId = await drained(mailroom);
    expect((await why(mailroom, eventId)).story).not.toContain('worker redriven');
    isOpen = true;
    const [deadLetter] = mailroom.queue.deadLetters();
    mailroom.queue.send(deadLetter?.body ?? '');
    await mailroom.drain();
    const { verdict, story, trace } = await why(mailroom, eventId);
    expect(verdict.state).toBe('processed');
    expect(story.slice(2)).toEqual([
      'worker attempt-ended',
      'worker redriven',
      'worker claimed',
      'worker processed',
    ]);
    expect(unwrapped(traceText(trace))).toContain('rejected, then redriven');
  });

  test('it waits for a relay: nothing claims that one is at work on it, and after the stream relay’s time the status is next', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.clock.advance(30_000);
    const early = await why(mailroom, eventId);
    expect(early.verdict).toMatchObject({ state: 'publishing', next: null });
    await mailroom.clock.advance(1_000);
    const { verdict, needed } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'publishing', next: 'mailroom status' });
    expect(needed).toBe(false);
  });

  test.each([
    [0, 'before its first attempt'],
    [1, 'attempt 1 of 3'],
    [3, 'attempt 3 of 3'],
    [4, 'attempt 4'],
  ])('a rejected message after %i attempts of 3', async (attempts, expected) => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await drained(mailroom);
    const row = mailroom.memory.item(inboxKey(worker.name, eventId));
    await mailroom.memory.write({ Put: { Item: { ...row, attempts } } });
    const { verdict } = await why(mailroom, eventId);
    expect(verdict.text).toContain(`, ${expected}, POISON_MESSAGE`);
    const { items } = await messagesOf(withStored(mailroom), worker, { limit: 10 });
    const shown = messagesText(items, mailroom.clock.now());
    expect(shown).not.toMatch(/\b(0 of 3|4 of 3)\b/);
  });

  test('an event that was requeued is being published, whatever its age; one that was discarded is left alone', async () => {
    const failEntry = () => ({ code: 'InvalidArgument', message: 'not like this' });
    const mailroom = mailroomInMemory([fine], { bus: { failEntry } });
    const [requeued, discarded] = [await commit(mailroom), await commit(mailroom)];
    await mailroom.publish();
    await mailroom.clock.advance(86_400_000);
    const note = { by: 'ada', reason: 'it is worth another try' };
    await requeueDead(mailroom, requeued, note);
    await discardDead(mailroom, discarded, note);
    const requeue = await why(mailroom, requeued);
    expect(requeue.verdict.state).toBe('retrying');
    expect(requeue.story).toContain('outbox requeued');
    const discard = await why(mailroom, discarded);
    expect(discard.verdict).toMatchObject({ state: 'discarded', next: null });
    expect(discard.story).toContain('outbox discarded');
  });
});

describe('a trace', () => {
  test('is still read from the inbox when the outbox row has expired', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await drained(mailroom);
    const row = mailroom.rows()[0];
    await mailroom.table.write({ Delete: { Key: { PK: row?.PK, SK: row?.SK } } });
    const { verdict, story } = await why(mailroom, eventId);
    expect(verdict.state).toBe('processed');
    expect(story).toEqual(['outbox expired', 'worker claimed', 'worker processed']);
  });

  test('holds nothing of an event that is nowhere', async () => {
    const mailroom = mailroomInMemory([fine]);
    const { trace } = await why(mailroom, '01a1fba6-4458-7a41-9c37-3f5d2b8e1103');
    expect(trace).toEqual({ events: [], more: false });
  });
});

test('an event waits for the stream relay as long as its own stream lease lasts', async () => {
  const mailroom = mailroomInMemory([fine]);
  const outbox = createOutbox({
    config: { ...consumerConfig, bornLeaseMs: 120_000 },
    table: mailroom.memory,
    clock: mailroom.clock,
  });
  const [event] = await outbox.commit({ events: [mailroom.happened(1)] });
  const eventId = event?.eventId ?? '';
  await mailroom.clock.advance(119_000);
  expect((await why(mailroom, eventId)).verdict).toMatchObject({ state: 'publishing', next: null });
  await mailroom.clock.advance(2_000);
  const { verdict } = await why(mailroom, eventId);
  expect(verdict.state).toBe('publishing');
  expect(verdict.next).toBe('mailroom status');
});
