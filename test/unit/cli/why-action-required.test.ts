import { deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { openEffects } from '../../../cli/deployment/effects.ts';
import { judgeDeadLetters } from '../../../cli/reports/dead-letters/redrive-plan.ts';
import { storyOf } from '../../../cli/reports/why/story.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { PUT_EVENTS_BYTES_MAX } from '../../../lambdas/runtime/bus/event-bus.ts';
import { transactional } from '../../../lambdas/runtime/consume/handler.ts';
import type { QueueMessage } from '../../../lambdas/runtime/operations/queues.ts';
import { outboxKeyOf, unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { readInboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { startedLongAgo, ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { broken, commit, drained, fine, poison, published, why } from './support/why-rig.ts';

describe('why, of an event that requires action', () => {
  test('it is DEAD', async () => {
    const failEntry = () => ({ code: 'InvalidArgument', message: 'The entry is malformed.' });
    const mailroom = mailroomInMemory([fine], { bus: { failEntry } });
    const eventId = await published(mailroom);
    const { verdict, story, needed } = await why(mailroom, eventId);
    expect(verdict.state).toBe('dead');
    expect(verdict.next).toBe(`mailroom dlq redrive dead ${eventId}`);
    expect(story).toEqual(['outbox committed', 'outbox dead']);
    expect(needed).toBe(true);
  });

  test.each([
    [
      'its size: no redrive is suggested, which would fail again',
      PUT_EVENTS_BYTES_MAX - 20,
      'discard',
      'fails',
    ],
    ['another cause, of which the error speaks of a size', 419, 'redrive', 'runs'],
  ])('it is DEAD for %s', async (_, bytes, command, expected) => {
    const refusal = {
      code: 'ValidationException',
      message: 'Total size of the entries in the request is over the limit.',
    };
    const mailroom = mailroomInMemory([fine], { bus: { failEntry: () => refusal } });
    const eventId = await published(mailroom);
    const key = outboxKeyOf(eventId);
    const envelope = deflateRawSync(JSON.stringify('x'.repeat(bytes)));
    const row = { ...mailroom.memory.item(key), envelope, encoding: 'deflate-raw' };
    await mailroom.table.write({ Put: { Item: row } });
    const { verdict } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'dead', next: `mailroom dlq ${command} dead ${eventId}` });
    const judged = await judgeDeadLetters(
      withStored({ table: mailroom.table, check: async () => [], now: mailroom.clock.now() }),
      { name: 'dead', kind: 'dead' },
      [
        {
          id: eventId,
          eventId,
          type: undefined,
          sentAt: 1,
          expiresAt: undefined,
          fingerprint: '',
          lastError: '',
        },
      ],
    );
    expect(judged).toMatchObject([{ verdict: expected }]);
    expect(judged[0]?.code).toBe(expected === 'fails' ? 'EVENT_TOO_LARGE' : undefined);
  });

  test('the deployed code refuses its dead letter: what helps is suggested, and not a redrive that its plan refuses', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await drained(mailroom);
    const [deadLetter] = mailroom.queue.deadLetters();
    const refuse = async () => [
      { ok: false, code: 'INVALID_PAYLOAD', message: 'data.n is missing' } as const,
    ];
    const { verdict } = await why(mailroom, eventId, directory, refuse);
    expect(verdict).toMatchObject({
      state: 'rejected',
      next: `mailroom dlq discard consumer:worker ${deadLetter?.messageId}`,
    });
    expect(verdict.text).toContain('INVALID_PAYLOAD: data.n is missing');
    const unknown = await why(mailroom, eventId, directory, async () => {
      throw new Error('the function is throttled');
    });
    expect(unknown.verdict.next).toBe(`mailroom dlq redrive consumer:worker ${deadLetter?.messageId}`);
  });

  test.each([
    [undefined, `mailroom messages allow worker`],
    [true, 'mailroom dlq redrive consumer:worker'],
  ])('it was rejected as too old, and was allowed: %s', async (runAnyway, next) => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await drained(mailroom);
    const row = {
      ...mailroom.memory.item(inboxKey(worker.name, eventId)),
      reason: 'EVENT_TOO_OLD',
      runAnyway,
    };
    await mailroom.memory.write({ Put: { Item: row } });
    const accept = async () => [{ ok: true, eventId, type: 'ThingHappened' } as const];
    const { verdict } = await why(mailroom, eventId, directory, accept);
    expect(verdict.next).toContain(next);
  });

  test('its message died without a row, and is too old: it is resolved by hand', async () => {
    const mailroom = mailroomInMemory([fine]);
    await startedLongAgo(mailroom.memory);
    const eventId = await published(mailroom);
    const [sent] = mailroom.queue.messages();
    await mailroom.clock.advance(36 * 86_400_000);
    mailroom.addDeadLetter(worker.deadLetterQueue, {
      messageId: 'message-1',
      receiptHandle: 'r',
      body: sent?.body ?? '',
      sentAt: mailroom.clock.now(),
      attributes: {},
    });
    const accept = async () => [{ ok: true, eventId, type: 'ThingHappened' } as const];
    const { verdict } = await why(mailroom, eventId, directory, accept);
    expect(verdict).toMatchObject({
      state: 'dead-lettered',
      next: `mailroom messages resolve worker ${eventId}`,
    });
  });

  test('it is not being published', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await commit(mailroom);
    await mailroom.clock.advance(3 * 3_600_000 - 60_000);
    const { verdict, needed } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'stuck', next: 'mailroom sweep --since 4h' });
    expect(needed).toBe(true);
  });

  test('it was rejected, and its dead letter is found, made visible again, and named', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await drained(mailroom);
    const [deadLetter] = mailroom.queue.deadLetters();
    const { verdict, story, needed } = await why(mailroom, eventId);
    expect(verdict.state).toBe('rejected');
    expect(verdict.text).toMatch(/POISON_MESSAGE: the price is missing.*permanently deleted in 13 d/);
    expect(verdict.next).toBe(`mailroom dlq redrive consumer:worker ${deadLetter?.messageId}`);
    expect(story.slice(3)).toEqual(['worker rejected', 'worker dead-letter']);
    expect(mailroom.shown).toEqual([deadLetter?.messageId]);
    expect(needed).toBe(true);
  });

  test('it was rejected long ago: it can only be resolved once no dead letter can be left', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await drained(mailroom);
    await mailroom.clock.advance(3_600_000);
    const seeing = (inFlight: number) => ({
      ...mailroom,
      queues: {
        ...mailroom.queues,
        depth: async (url: string) => ({ arn: url, waiting: 0, inFlight, retentionMs: 1 }),
        receive: async () => [],
      },
    });
    const hidden = await why(seeing(1), eventId);
    expect(hidden.verdict.next).toBe(`mailroom dlq redrive consumer:worker ${eventId}`);
    const gone = await why(seeing(0), eventId);
    expect(gone.verdict.next).toBe(`mailroom messages resolve worker ${eventId}`);
  });

  test('its dead letter was deleted: minutes later, not a quarter of an hour, it is gone, unless its queue still holds messages', async () => {
    const mailroom = mailroomInMemory([poison]);
    const eventId = await drained(mailroom);
    const seeing = (inFlight: number) => ({
      ...mailroom,
      queues: {
        ...mailroom.queues,
        depth: async (url: string) => ({
          arn: url,
          waiting: 0,
          inFlight: url === worker.queue ? inFlight : 0,
          retentionMs: 1,
        }),
        receive: async () => [],
      },
    });
    const early = await why(seeing(0), eventId);
    expect(early.verdict.next).toBe(`mailroom why ${eventId}`);
    await mailroom.clock.advance(181_000);
    expect((await why(seeing(1), eventId)).verdict.next).toBe(`mailroom why ${eventId}`);
    const gone = await why(seeing(0), eventId);
    expect(gone.verdict.next).toBe(`mailroom messages resolve worker ${eventId}`);
  });

  test('the message of its consumer cannot be read: it is known by the name of its row', async () => {
    const mailroom = mailroomInMemory([fine]);
    const messageId = mailroom.queue.send('this is not JSON');
    const id = unreadableId('this is not JSON');
    await mailroom.drain();
    const { verdict } = await why(mailroom, id);
    expect(verdict.state).toBe('rejected');
    expect(verdict.next).toBe(`mailroom dlq redrive consumer:worker ${messageId}`);
  });

  /** Published, and its message is nowhere but in a dead-letter queue. */
  async function deadLettered(queue: string, attributes: QueueMessage['attributes']) {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await published(mailroom);
    const [message] = mailroom.queue.receive();
    mailroom.queue.delete(message?.receiptHandle ?? '');
    const body = message?.body ?? '';
    const sentAt = mailroom.clock.now();
    mailroom.addDeadLetter(queue, { messageId: 'message-1', receiptHandle: 'r', body, sentAt, attributes });
    return why(mailroom, eventId);
  }

  test('its rule could not deliver it', async () => {
    const { verdict, needed } = await deadLettered(worker.undeliveredQueue, { ERROR_CODE: 'THROTTLING' });
    expect(verdict.state).toBe('undelivered');
    expect(verdict.text).toContain('THROTTLING');
    expect(verdict.next).toBe('mailroom dlq redrive rule:worker message-1');
    expect(needed).toBe(true);
  });

  test('its rule may not send to the queue: doctor comes first, and the story has the time of the dead letter', async () => {
    const found = await deadLettered(worker.undeliveredQueue, { ERROR_CODE: 'NO_PERMISSIONS' });
    expect(found.verdict.text).toContain('NO_PERMISSIONS');
    expect(found.verdict.next).toBe('mailroom doctor');
    expect(found.verdict.text).toContain(
      'Once EventBridge may send to it again, redrive: `mailroom dlq redrive rule:worker message-1`.',
    );
    const [event] = found.trace.events;
    const told = event && storyOf(event).find(({ what }) => what === 'dead-letter');
    expect(told?.at).toBe(event?.messages[0]?.deadLetter?.sentAt);
  });

  test('it was delivered, and received until SQS moved it to the dead-letter queue, and its consumer has no row of it', async () => {
    const { verdict, needed } = await deadLettered(worker.deadLetterQueue, {});
    expect(verdict.state).toBe('dead-lettered');
    expect(verdict.next).toBe('mailroom dlq redrive consumer:worker message-1');
    expect(needed).toBe(true);
  });

  test('it never arrived', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await published(mailroom);
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
    const eventId = await published(mailroom);
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
    const eventId = await published(mailroom);
    await mailroom.deliver();
    await mailroom.clock.advance(3_600_000);
    const { verdict } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({
      state: 'late',
      next: expect.stringContaining('aws lambda list-event-source-mappings --function-name worker-function'),
    });
  });

  test('it has been in the queue for a quarter of an hour: the consumer may not be receiving', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await published(mailroom);
    await mailroom.clock.advance(16 * 60_000);
    const { verdict, needed } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({
      state: 'late',
      next: expect.stringContaining('aws lambda list-event-source-mappings --function-name worker-function'),
    });
    expect(needed).toBe(true);
  });

  test('its worker stopped without an answer: the command that shows its log lines is named', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await published(mailroom);
    const leaseUntil = mailroom.clock.now() - 2_001;
    const row = {
      ...inboxKey(worker.name, eventId),
      schema: 1,
      status: 'PROCESSING',
      attempts: 1,
      leaseUntil,
    };
    await mailroom.table.write({ Put: { Item: row } });
    const { verdict } = await why(mailroom, eventId);
    expect(verdict.next).toBe(`mailroom logs ${eventId}`);
  });

  test('its queue does not exist: it is missing there, and everything else is still shown', async () => {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await published(mailroom);
    await mailroom.clock.advance(400_000);
    const depth = () =>
      Promise.reject(Object.assign(new Error('There is no such queue'), { name: 'QueueDoesNotExist' }));
    const { verdict } = await why({ ...mailroom, queues: { ...mailroom.queues, depth } }, eventId);
    expect(verdict).toMatchObject({ state: 'missing', next: 'mailroom audit --since 1h' });
  });

  test('the worst problem of a chain comes first, with the number of others', async () => {
    const mailroom = mailroomInMemory([
      transactional(ThingHappened, async ({ data }) => {
        if (data.n > 1) throw new PoisonMessage(`number ${data.n} is not for us`);
        return { events: [2, 3].map((n) => ThingHappened.create({ aggregateId: 'x', data: { n } })) };
      }),
    ]);
    const eventId = await drained(mailroom);
    await mailroom.publish();
    await mailroom.drain();
    const { verdict } = await why(mailroom, eventId);
    expect(verdict.state).toBe('rejected');
  });
});

describe('why, of a message whose effect may have happened', () => {
  const charge = { status: 'IN_PROGRESS', fence: 'f', run: 1, startedAt: 0 };

  async function whyWith(status: string, effect: object, endsInMs: number) {
    const mailroom = mailroomInMemory([fine]);
    const eventId = await published(mailroom);
    const now = mailroom.clock.now();
    const row = { schema: 1, status, fence: 'f', attempts: 1, leaseUntil: now - 60_000 };
    const effects = { charge: { ...charge, endsBy: now + endsInMs, startedAt: now - 90_000, ...effect } };
    await mailroom.memory.write({ Put: { Item: { ...inboxKey('worker', eventId), ...row, effects } } });
    const stored = readInboxRow(await mailroom.table.get(inboxKey('worker', eventId)));
    const { text } = (await why(mailroom, eventId)).verdict;
    return { eventId, text, open: openEffects(eventId, 'worker', stored, now), startedAt: now - 90_000 };
  }

  test.each(['PROCESSING', 'FAILED'])('it names the effect and its idempotency key: %s', async (status) => {
    const { eventId, text, open, startedAt } = await whyWith(status, {}, -30_000);
    const key = `worker:${eventId}:charge`;
    expect(open).toEqual([{ effect: 'charge', key, state: 'unknown', startedAt }]);
    expect(text).toContain(key);
  });

  test.each([
    ['completed', { status: 'COMPLETED', completedAt: 1 }, -30_000],
    ['failed', { status: 'RELEASED', endedAt: 1, error: 'the bank hung up' }, -30_000],
    ['running', {}, 60_000],
  ])('it names an effect that is %s', async (state, effect, endsInMs) => {
    const { text, open } = await whyWith('FAILED', effect, endsInMs);
    expect(open).toMatchObject([{ effect: 'charge', state }]);
    expect(text).toContain('charge');
  });

  test.each([
    ['did not happen', 'FAILED', { status: 'RELEASED', nothingHappened: true }],
    ['belongs to a processed message', 'PROCESSED', {}],
  ])('it says nothing of an effect that %s', async (_what, status, effect) => {
    const { text, open } = await whyWith(status, effect, -30_000);
    expect(text).not.toContain('charge');
    expect(open).toEqual([]);
  });
});
