import { describe, expect, test, vi } from 'vitest';
import {
  AlreadyProcessed,
  PoisonMessage,
  TransactionCancelled,
} from '../../../../lambdas/runtime/base/errors.ts';
import {
  type Handler,
  type LeasedContext,
  leased,
  transactional,
} from '../../../../lambdas/runtime/consume/handler.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';
import {
  afterWrite,
  awsError,
  beforeWrite,
  consumer,
  domainRow,
  inboxRow,
  oneMessage,
  send,
  throttled,
  unanswered,
} from './consumer-rig.ts';

const FAILURE = ':FAILED, retryAt';
const HINT = '"PK":"FAILED#';
const unavailable = () => Promise.reject(new Error('bank answered 503'));
const failsUntil = (attempt: number) => (ctx: LeasedContext) =>
  ctx.attempt < attempt ? unavailable() : undefined;
const happened = (n: number) => ThingHappened.create({ aggregateId: 'thing-2', data: { n } });

describe('a leased handler that throws', () => {
  test('is tried again after the delay on its row, with one more attempt each time', async () => {
    const one = oneMessage();
    const rows: unknown[] = [];
    const attempts: number[] = [];
    const handler = (ctx: LeasedContext) => {
      rows.push(one.row());
      attempts.push(ctx.attempt);
      return failsUntil(3)(ctx);
    };
    for (const attempt of [1, 2]) {
      await one.deliver(handler);
      expect(one.row()).toMatchObject({
        status: 'FAILED',
        attempts: attempt,
        lastError: 'bank answered 503',
        fingerprint: 'worker Error: bank answered #',
        retryAt: one.visibleAt(),
      });
      expect(one.row()).not.toHaveProperty('expiresAt');
    }
    await one.deliver(handler);
    expect(attempts).toEqual([1, 2, 3]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    for (const claimed of [...rows, one.row()]) expect(claimed).not.toHaveProperty('retryAt');
  });

  test.each([
    [1, 'Rejected after 1 attempt. Error: bank answered 503'],
    [3, 'Rejected after 3 attempts. Error: bank answered 503'],
  ])(
    '%d times has its message rejected, which SQS moves to the dead-letter queue',
    async (maxAttempts, lastError) => {
      const one = oneMessage();
      const handle = vi.fn(unavailable);
      await one.drain(handle, { maxAttempts });
      expect(handle).toHaveBeenCalledTimes(maxAttempts);
      expect(one.row()).toMatchObject({
        status: 'REJECTED',
        reason: 'ATTEMPTS_EXHAUSTED',
        attempts: maxAttempts,
        lastError,
        fingerprint: 'worker Error: bank answered #',
      });
      expect(one.pointer()).toMatchObject({
        reason: 'ATTEMPTS_EXHAUSTED',
        fingerprint: 'worker Error: bank answered #',
      });
      expect(one.queue.deadLetters()).toHaveLength(1);
    },
  );

  test('is counted at its fourth attempt and each later one', async () => {
    const one = oneMessage();
    for (const expected of [0, 0, 0, 1, 2]) {
      await one.deliver(failsUntil(5), { maxAttempts: 5 });
      expect(one.telemetry.counted('AttemptsOverThree')).toBe(expected);
    }
    expect(one.telemetry.counted('MessagesProcessed')).toBe(1);
  });

  test('AlreadyProcessed has processed its message; a 409 or 422 of a provider is a failure', async () => {
    const parts = rig();
    const [imported, refused] = [send(parts, { data: { n: 1 } }), send(parts, { data: { n: 2 } })];
    const handler = leased(ThingHappened, async ({ data }) => {
      if (data.n === 1) throw new AlreadyProcessed('imported');
      throw Object.assign(new Error('downstream'), { statusCode: 422, status: 409 });
    });
    await consumer(parts, [handler]).deliver();
    expect(inboxRow(parts, imported)).toMatchObject({ status: 'PROCESSED' });
    expect(inboxRow(parts, refused)).toMatchObject({ status: 'FAILED' });
  });

  test('AlreadyProcessed has processed its message in an outage, too', async () => {
    const one = oneMessage();
    const table = beforeWrite(one.memory, 'THING#1', () => {
      throw new TransactionCancelled([{ code: 'ThrottlingError' }, { code: 'None' }]);
    });
    const handler = async (ctx: LeasedContext) => {
      await ctx.commit({ writes: [domainRow] }).catch(() => {});
      throw new AlreadyProcessed('by another system');
    };
    await one.deliver(handler, { table });
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('PoisonMessage is rejected at once; fixed and redriven, it is processed, and its pointer removed', async () => {
    const one = oneMessage();
    const rejects = vi.fn(() => Promise.reject(new PoisonMessage('currency is not supported')));
    for (let receive = 1; one.queue.deadLetters().length === 0; receive += 1) {
      expect(receive).toBeLessThan(100);
      await one.deliver(rejects);
      if (one.queue.messages().length > 0) expect(one.waitsMs()).toBeLessThanOrEqual(0); // visible at once
    }
    expect(rejects).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
    one.queue.redrive();
    const attempts: number[] = [];
    await one.drain(({ attempt }) => attempts.push(attempt));
    expect(attempts).toEqual([1]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(one.pointer()).toBeUndefined();
  });

  test.each([
    ['leased', leased],
    ['transactional', transactional],
  ])('anything fails alone in its batch, also as a %s handler', async (_kind, kind) => {
    for (const thrown of [null, undefined, 'a text', { message: 7 }]) {
      const parts = rig();
      const [bad, good] = [send(parts, { data: { n: 1 } }), send(parts, { data: { n: 2 } })];
      const handler = kind(ThingHappened, async ({ data }) => {
        if (data.n === 1) throw thrown;
        return {};
      });
      const { failed } = await consumer(parts, [handler]).deliver();
      expect(failed).toHaveLength(1);
      expect(inboxRow(parts, good)).toMatchObject({ status: 'PROCESSED' });
      expect(inboxRow(parts, bad)?.status).not.toBe('PROCESSED');
    }
  });
});

describe('the write that ends a claim', () => {
  test('is repeated while the table cannot be reached', async () => {
    const one = oneMessage();
    const tries = vi.fn().mockImplementationOnce(throttled).mockImplementationOnce(throttled);
    await one.deliver(unavailable, { table: beforeWrite(one.memory, FAILURE, tries) });
    expect(tries).toHaveBeenCalledTimes(3);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1, lastError: 'bank answered 503' });
  });

  test('is not repeated after a final refusal', async () => {
    const one = oneMessage();
    const tries = vi.fn().mockRejectedValue(awsError('ValidationException'));
    await one.deliver(unavailable, { table: beforeWrite(one.memory, FAILURE, tries) });
    expect(tries).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['until the batch can just be answered before its function is stopped', 10_000, 8_000],
    ['for 20 s at most, however long the function may take', 600_000, 20_000],
  ])('is repeated %s', async (_what, timeoutMs, atMostMs) => {
    const one = oneMessage();
    const triedAtMs: number[] = [];
    const fails = () => {
      triedAtMs.push(one.clock.now());
      return throttled();
    };
    await one.deliver(unavailable, { table: beforeWrite(one.memory, FAILURE, fails), timeoutMs });
    // With pauses of one to two seconds.
    expect(triedAtMs.length).toBeGreaterThan(atMostMs / 2_000);
    expect(triedAtMs.length).toBeLessThan(30);
    // From the first try: the last pause that would pass the limit is not taken, and another one could not end within it.
    const lastedMs = Math.max(...triedAtMs) - Math.min(...triedAtMs);
    expect(lastedMs).toBeGreaterThan(atMostMs - 2_100);
    expect(lastedMs).toBeLessThanOrEqual(atMostMs);
  });
});

describe('the events that a consumer writes', () => {
  const commits = leased(ThingHappened, (_event, ctx) => ctx.commit({ events: [happened(1)] }));
  const refused = [{ Put: { Item: { PK: 'A', SK: 'A' }, ConditionExpression: 'attribute_exists(PK)' } }];

  test.each<[string, number, Handler, number]>([
    [
      'once by a leased handler that throws after its commit',
      2,
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.commit({ events: [happened(1), happened(2)] });
        throw new Error('too late to matter');
      }),
      0,
    ],
    [
      'once by a transactional handler',
      1,
      transactional(ThingHappened, async () => ({ events: [happened(1)] })),
      0,
    ],
    ['once if an answer was lost', 1, commits, 1],
    ['once if two answers were lost', 1, commits, 2],
    [
      'never if the commit was refused',
      0,
      leased(ThingHappened, (_event, ctx) => ctx.commit({ writes: refused, events: [happened(1)] })),
      0,
    ],
  ])('are counted %s', async (_what, counted, handler, losses) => {
    const one = oneMessage();
    one.queue.send(one.queue.messages()[0]?.body ?? ''); // a duplicate in the same batch
    let lost = 0;
    const table = afterWrite(one.memory, 'OUTBOX#', () => {
      lost += 1;
      return lost <= losses ? unanswered() : undefined;
    });
    await one.deliver(handler, { table });
    expect(one.telemetry.counted('EventsCommitted')).toBe(counted);
    expect(one.telemetry.counted('MessagesProcessed')).toBe(counted === 0 ? 0 : 1);
    expect(one.telemetry.counted('MessagesFailed')).toBe(counted === 0 ? 1 : 0);
  });
});

describe('the hint of a failed message', () => {
  const unread = (known: () => boolean): Handler => {
    const validate = (value: unknown) => (known() ? { value } : { issues: [{ message: 'no longer known' }] });
    const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const;
    return leased({ ...ThingHappened, schema } as typeof ThingHappened, unavailable);
  };

  test('stays until the message is processed; TTL may delete it a day after the next attempt', async () => {
    const one = oneMessage();
    await one.deliver(failsUntil(2));
    expect(one.hint()).toEqual({
      PK: 'FAILED#worker',
      SK: expect.any(String),
      schema: 1,
      failedAt: expect.any(Number),
      expiresAt: Math.ceil(one.visibleAt() / 1_000) + 86_400,
    });
    await one.deliver(failsUntil(2));
    expect(one.hint()).toBeUndefined();
  });

  test('stays until the last attempt rejects the message', async () => {
    const one = oneMessage();
    await one.deliver(failsUntil(9), { maxAttempts: 2 });
    expect(one.hint()).toBeDefined();
    await one.deliver(failsUntil(9), { maxAttempts: 2 });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(one.row()).not.toHaveProperty('retryAt');
    expect(one.hint()).toBeUndefined();
  });

  test('stays until a schema that changed rejects the message', async () => {
    const one = oneMessage();
    await one.deliver(unread(() => true));
    expect(one.hint()).toBeDefined();
    await one.deliver(unread(() => false));
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'INVALID_PAYLOAD' });
    expect(one.hint()).toBeUndefined();
  });

  test('is written in an outage and removed after it, although no attempt is counted', async () => {
    const one = oneMessage();
    const handler = (ctx: LeasedContext) => ctx.once('charge', async () => 'ok');
    await one.deliver(handler, { table: beforeWrite(one.memory, 'startedAt', throttled) });
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.hint()).toBeDefined();
    await one.deliver(handler);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(one.hint()).toBeUndefined();
  });

  test('is neither written nor removed for a message that never failed', async () => {
    const one = oneMessage();
    const hints = vi.fn();
    await one.deliver(() => {}, { table: beforeWrite(one.memory, HINT, hints) });
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(hints).not.toHaveBeenCalled();
  });

  test('is written when a claim failed, not when a run without a claim did', async () => {
    const one = oneMessage();
    const handler = transactional(ThingHappened, unavailable);
    await one.deliver(handler);
    expect(one.row()).toBeUndefined();
    expect(one.hint()).toBeUndefined();
    await one.deliver(handler);
    expect(one.row()).toMatchObject({ status: 'FAILED' });
    expect(one.hint()).toBeDefined();
  });

  test.each<[string, () => Promise<unknown>, number]>([
    ['is refused, which is logged', () => Promise.reject(new Error('no')), 2],
    ['hangs', () => new Promise<never>(() => {}), 0],
  ])('does not delay its message for long, or fail it, if its write %s', async (_how, answer, warnings) => {
    const one = oneMessage();
    const table = beforeWrite(one.memory, HINT, answer);
    await one.deliver(failsUntil(2), { table });
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    await one.clock.advance(Math.max(0, one.waitsMs()));
    const startedAt = one.clock.now();
    await one.deliver(failsUntil(2), { table });
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
    expect(one.clock.now() - startedAt).toBeLessThan(2_100);
    expect(one.hint()).toBeUndefined();
    expect(one.logged('warn')).toHaveLength(warnings);
    expect(one.telemetry.counted('MessagesProcessed')).toBe(1);
  });
});

test('a hint that hangs takes a quarter of the remaining time at most', async () => {
  const one = oneMessage();
  const table = beforeWrite(one.memory, HINT, () => new Promise<never>(() => {}));
  const startedAt = one.clock.now();
  await one.deliver(failsUntil(2), { table, timeoutMs: 4_000 });
  expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
  expect(one.clock.now() - startedAt).toBeLessThan(1_100);
});

test('a message whose visibility cannot be changed has failed all the same, which is logged', async () => {
  const one = oneMessage();
  vi.spyOn(one.queue, 'changeVisibility').mockRejectedValue(new Error('no'));
  await one.deliver(failsUntil(2));
  expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
  expect(one.logged('warn')).toEqual(['The visibility timeout of a message could not be changed']);
  expect(one.queue.messages()).toHaveLength(1);
});

test('a message under a lease without end is hidden for 12 hours, the most that SQS accepts', async () => {
  const one = oneMessage();
  const leaseUntil = one.clock.now() + 30 * 86_400_000;
  await one.overwrite({ status: 'PROCESSING', fence: 'f', attempts: 1, leaseUntil });
  const hide = vi.spyOn(one.queue, 'changeVisibility');
  await one.deliver(() => {});
  expect(hide.mock.calls.map(([, seconds]) => seconds)).toEqual([43_200]);
});

describe('the pointer of a rejected message', () => {
  const rejects = leased(ThingHappened, () => Promise.reject(new PoisonMessage('of no use')));

  test('records when SQS received the message, in epoch milliseconds', async () => {
    const one = oneMessage();
    const [message] = one.queue.messages();
    await one.clock.advance(60_000);
    await one.deliver(rejects);
    expect(one.pointer()).toMatchObject({ sentAt: message?.sentAt });
    expect(message?.sentAt).toBeLessThan(one.clock.now());
  });

  test.each([undefined, '', 'yesterday', '-1'])(
    'has no such time if SQS reports "%s"',
    async (SentTimestamp) => {
      const one = oneMessage();
      const [record] = one.queue.receive();
      if (record === undefined) throw new Error('There is no message');
      const attributes = { ...record.attributes, SentTimestamp } as typeof record.attributes;
      const { handle } = consumer(one, [rejects]);
      await runThrough(one.clock, handle({ Records: [{ ...record, attributes }] }, lambdaContext(one)));
      expect(one.pointer()).toMatchObject({ reason: 'POISON_MESSAGE' });
      expect(one.pointer()).not.toHaveProperty('sentAt');
    },
  );
});
