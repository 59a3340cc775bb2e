import { describe, expect, test } from 'vitest';
import { storyOf } from '../../../cli/trace/story.ts';
import { readTrace } from '../../../cli/trace/trace-reader.ts';
import { eventReports, traceText } from '../../../cli/trace/trace-text.ts';
import { needsSomebody } from '../../../cli/trace/verdict.ts';
import { verdictOf } from '../../../cli/trace/why-verdict.ts';
import { leased, transactional } from '../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../../lambdas/runtime/errors.ts';
import { resolveMessage } from '../../../lambdas/runtime/operate/message-operations.ts';
import { discardDead, requeueDead } from '../../../lambdas/runtime/operate/operations.ts';
import type { Letter } from '../../../lambdas/runtime/operate/queues.ts';
import { asRow, type InboxRow, inboxKey } from '../../../lambdas/runtime/rows.ts';
import { ThingHappened } from '../../support/runtime-bench.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';

type Mailroom = ReturnType<typeof mailroomInMemory>;

const fine = leased(ThingHappened, async () => {});
const broken = leased(ThingHappened, async () => {
  throw new Error('the bank is closed');
});
const poison = leased(ThingHappened, async () => {
  throw new PoisonMessage('the price is missing');
});

async function commit(mailroom: Mailroom): Promise<string> {
  const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
  return event?.eventId ?? '';
}

async function why(mailroom: Mailroom, eventId: string, deployed = directory) {
  const trace = await readTrace({ directory: deployed, table: mailroom.table, queues: mailroom.queues }, [
    eventId,
  ]);
  const verdict = verdictOf(trace, {
    now: mailroom.clock.now(),
    commandLine: (command) => `mailroom ${command}`,
    awsLine: (command) => `aws ${command}`,
  });
  const story = trace.events.flatMap(storyOf).map(({ consumer, what }) => `${consumer ?? 'outbox'} ${what}`);
  return { trace, verdict, story, needed: needsSomebody(verdict) };
}

describe('why, of an event that is under way', () => {
  test('it was just committed', async () => {
    const mailroom = mailroomInMemory([fine]);
    const { verdict, needed } = await why(mailroom, await commit(mailroom));
    expect(verdict).toMatchObject({ state: 'publishing', next: null });
    expect(needed).toBe(false);
  });

  test('it lies in the queue', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    const { verdict, story } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'waiting', consumer: 'worker', next: null });
    expect(verdict.text).toContain('1 waiting and 0 in flight');
    expect(story).toEqual(['outbox committed', 'outbox published', 'worker not-arrived']);
  });

  test('it failed: which attempt, when it is tried next, and what happens then', async () => {
    const mailroom = mailroomInMemory([broken]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.deliver();
    const { verdict, story, needed } = await why(mailroom, eventId);
    expect(verdict.state).toBe('retrying');
    expect(verdict.text).toMatch(/attempt 1 of 3: the bank is closed\. It is tried again in \d+ s/);
    expect(verdict.text).toContain('1 more attempt follows, then it is rejected into the dead-letter queue');
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
    expect(verdict.text).toContain('and the 2 events after it');
    const reports = eventReports(trace, true);
    expect(reports.map(({ data }) => data)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(reports.map(({ caused }) => caused)).toEqual([[reports[1]?.eventId], [reports[2]?.eventId], []]);
    expect(eventReports(trace, false)[0]).not.toHaveProperty('data');
    expect(traceText(trace, false)).not.toContain('"n"');
  });
});

describe('why, of an event that needs somebody', () => {
  test('it is DEAD', async () => {
    const failEntry = () => ({ code: 'InvalidArgument', message: 'not like this' });
    const mailroom = mailroomInMemory([fine], { bus: { failEntry } });
    const eventId = await commit(mailroom);
    await mailroom.publish();
    const { verdict, story, needed } = await why(mailroom, eventId);
    expect(verdict.state).toBe('dead');
    expect(verdict.text).toContain('not like this');
    expect(verdict.next).toBe(`mailroom dead requeue ${eventId} --reason "why"`);
    expect(story).toEqual(['outbox committed', 'outbox dead']);
    expect(needed).toBe(true);
  });

  test('nobody publishes it', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.clock.advance(3 * 3_600_000 - 60_000);
    const { verdict, needed } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'stuck', next: 'mailroom sweep --since 4h' });
    expect(needed).toBe(true);
  });

  test('it was rejected, and its letter is found, shown again, and named', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.drain();
    const [letter] = mailroom.queue.deadLetters();
    const { verdict, story, needed } = await why(mailroom, eventId);
    expect(verdict.state).toBe('rejected');
    expect(verdict.text).toMatch(/POISON_MESSAGE: the price is missing.*deleted for ever in 13 d/);
    expect(verdict.next).toBe(`mailroom dlq redrive consumer:worker --letter ${letter?.messageId}`);
    expect(story.slice(3)).toEqual(['worker rejected', 'worker letter']);
    expect(mailroom.shown).toEqual([letter?.messageId]);
    expect(needed).toBe(true);
  });

  test('it was rejected long ago: it is only to be resolved where no letter can be left', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.drain();
    await mailroom.clock.advance(3_600_000);
    const seeing = (inFlight: number) => ({
      ...mailroom,
      queues: {
        ...mailroom.queues,
        depth: async (url: string) => ({ arn: url, waiting: 0, inFlight, retentionMs: 1 }),
      },
    });
    const hidden = await why(seeing(1), eventId);
    expect(hidden.verdict.next).toBe(`mailroom dlq redrive consumer:worker --letter ${eventId}`);
    const gone = await why(seeing(0), eventId);
    expect(gone.verdict.next).toBe(`mailroom message resolve worker ${eventId} --reason "why"`);
  });

  test('the message of its consumer cannot be read: it is known by the name of its row', async () => {
    const mailroom = mailroomInMemory([fine]);
    const messageId = mailroom.queue.send('this is no JSON');
    await mailroom.drain();
    const { verdict } = await why(mailroom, `unreadable-${messageId}`);
    expect(verdict.state).toBe('rejected');
    expect(verdict.next).toBe(`mailroom dlq redrive consumer:worker --letter ${messageId}`);
  });

  /** Published, and its message is nowhere but in a queue of letters. */
  async function lettered(queue: string, attributes: Letter['attributes']) {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    const [message] = mailroom.queue.receive();
    mailroom.queue.delete(message?.receiptHandle ?? '');
    const body = message?.body ?? '';
    const sentAt = mailroom.clock.now();
    mailroom.addLetter(queue, { messageId: 'letter-1', receiptHandle: 'r', body, sentAt, attributes });
    return why(mailroom, eventId);
  }

  test('its rule could not deliver it', async () => {
    const { verdict, needed } = await lettered(worker.undeliveredQueue, { ERROR_CODE: 'NO_PERMISSIONS' });
    expect(verdict.state).toBe('undelivered');
    expect(verdict.text).toContain('NO_PERMISSIONS');
    expect(verdict.next).toBe('mailroom dlq redrive rule:worker --letter letter-1');
    expect(needed).toBe(true);
  });

  test('it was delivered, and received until SQS moved it to the dead-letter queue, and its consumer has no row of it', async () => {
    const { verdict, needed } = await lettered(worker.deadLetterQueue, {});
    expect(verdict.state).toBe('dead-lettered');
    expect(verdict.text).toContain('was never finished by worker. Its letter is in consumer:worker');
    expect(verdict.next).toBe('mailroom dlq redrive consumer:worker --letter letter-1');
    expect(needed).toBe(true);
  });

  test('it never arrived', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    const [message] = mailroom.queue.receive();
    mailroom.queue.delete(message?.receiptHandle ?? '');
    await mailroom.clock.advance(400_000);
    const { verdict, needed } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({
      state: 'missing',
      consumer: 'worker',
      next: 'mailroom audit --since 1h',
    });
    expect(needed).toBe(true);
  });

  test('but what was published before its consumer was declared proves nothing', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    const [message] = mailroom.queue.receive();
    mailroom.queue.delete(message?.receiptHandle ?? '');
    await mailroom.clock.advance(200_000);
    const young = { ...directory, consumers: [{ ...worker, changedAt: mailroom.clock.now() }] };
    const { verdict, needed } = await why(mailroom, eventId, young);
    expect(verdict).toMatchObject({ state: 'unproven', next: 'mailroom audit --since 1h --earlier' });
    expect(needed).toBe(false);
  });

  test('its consumer should have tried it again long ago', async () => {
    const mailroom = mailroomInMemory([broken]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.deliver();
    await mailroom.clock.advance(3_600_000);
    const { verdict } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({
      state: 'late',
      next: expect.stringContaining('aws lambda list-event-source-mappings --function-name worker-function'),
    });
  });

  test('it has lain in the queue for a quarter of an hour: whether anybody receives it is the question', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.clock.advance(16 * 60_000);
    const { verdict, needed } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({
      state: 'late',
      next: expect.stringContaining('aws lambda list-event-source-mappings --function-name worker-function'),
    });
    expect(verdict.text).toContain('mailroom audit --since 1h');
    expect(needed).toBe(true);
  });

  test('its worker stopped without an answer: the log is where the function says that it is', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    const leaseUntil = mailroom.clock.now() - 1;
    const row = {
      ...inboxKey(worker.name, eventId),
      schema: 1,
      status: 'PROCESSING',
      attempts: 1,
      leaseUntil,
    };
    await mailroom.table.write({ Put: { Item: row } });
    const { verdict } = await why(mailroom, eventId);
    expect(verdict.next).toBe(
      'aws logs tail "$(aws lambda get-function-configuration --function-name worker-function ' +
        '--query LoggingConfig.LogGroup --output text)" --since 1h',
    );
  });

  test('its queue does not exist: it is missing there, and nothing else is hidden by that', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.clock.advance(400_000);
    const depth = () =>
      Promise.reject(Object.assign(new Error('There is no such queue'), { name: 'QueueDoesNotExist' }));
    const { verdict } = await why({ ...mailroom, queues: { ...mailroom.queues, depth } }, eventId);
    expect(verdict).toMatchObject({ state: 'missing', next: 'mailroom audit --since 1h' });
  });

  test('the worst of a chain is said first, and how many others there are', async () => {
    const mailroom = mailroomInMemory([
      transactional(ThingHappened, async ({ data }) => {
        if (data.n > 1) throw new PoisonMessage(`number ${data.n} is not for us`);
        return { events: [2, 3].map((n) => ThingHappened.create({ aggregateId: 'x', data: { n } })) };
      }),
    ]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.drain();
    await mailroom.publish();
    await mailroom.drain();
    const { verdict } = await why(mailroom, eventId);
    expect(verdict.state).toBe('rejected');
    expect(verdict.text).toContain('1 more of this chain needs somebody');
  });
});

describe('why, of what operators did', () => {
  test('a resolved message, with who and why', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.drain();
    await resolveMessage(mailroom, {
      consumer: worker.name,
      eventId,
      reason: 'charged by phone',
      by: 'ada',
      inboxRetentionDays: 35,
    });
    const { verdict, trace } = await why(mailroom, eventId);
    expect(verdict.state).toBe('processed');
    expect(traceText(trace, false)).toContain('set PROCESSED without running, by ada: charged by phone');
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
  test('is still told by the inbox when the outbox row has expired', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.drain();
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

  test('does not let an error text move the terminal’s cursor', async () => {
    const mailroom = mailroomInMemory([
      leased(ThingHappened, async () => {
        throw new Error('one\u001b[2Jtwo\nthree\u0007');
      }),
    ]);
    const eventId = await commit(mailroom);
    await mailroom.publish();
    await mailroom.deliver();
    const { trace, verdict } = await why(mailroom, eventId);
    const row = asRow<InboxRow>(mailroom.memory.item(inboxKey(worker.name, eventId)) ?? {});
    expect(row.lastError).toContain('\u001b');
    expect(JSON.stringify([verdict, trace.events.flatMap(storyOf)])).toMatch(/onetwo three/);
  });
});
