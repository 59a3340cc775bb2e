import { describe, expect, test, vi } from 'vitest';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { type LeasedContext, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';
import { staleReads } from '../../../support/stale-reads.ts';
import {
  afterWrite,
  beforeWrite,
  body,
  consumer,
  domainRow,
  envelope,
  inboxRow,
  oneMessage,
  send,
  unanswered,
} from './consumer-rig.ts';

type OneMessage = ReturnType<typeof oneMessage>;

const CLAIM = 'claimedAt';
const attemptOf = (attempts: number[]) => (ctx: LeasedContext) => attempts.push(ctx.attempt);

/** Writes the row of a message that another worker claimed, and whose lease ends after this time. */
const held = ({ overwrite, clock }: OneMessage, leaseMs: number, more: object = {}) => {
  const [leaseUntil, endsBy] = [clock.now() + leaseMs, clock.now() + leaseMs + 60_000];
  return overwrite({ status: 'PROCESSING', fence: 'other', attempts: 1, leaseUntil, endsBy, ...more });
};

describe('a message that another worker holds', () => {
  test('waits for the rest of the lease, then until that worker is stopped, and never runs at once', async () => {
    const one = oneMessage();
    const handle = vi.fn();
    await held(one, 9_500);
    const now = one.clock.now();
    await one.deliver(handle);
    expect(one.visibleAt()).toBeGreaterThanOrEqual(now + 10_500);
    expect(one.visibleAt()).toBeLessThanOrEqual(now + 11_500);
    await one.clock.advance(11_500);
    await held(one, 9_500); // renewed: its worker is alive
    const then = one.clock.now();
    await one.deliver(handle);
    expect(one.visibleAt()).toBeGreaterThanOrEqual(then + 70_000);
    expect(handle).not.toHaveBeenCalled();
    expect(one.row()).toMatchObject({ attempts: 1, fence: 'other' });
  });

  test('is taken over as soon as its lease has passed, beside the others of its batch', async () => {
    const one = oneMessage({ aggregateId: 'left' });
    send(one, { aggregateId: 'fresh' });
    await one.receivedBefore();
    await held(one, -1, { attempts: 2 });
    const started: string[] = [];
    const handler = leased(ThingHappened, async (event, ctx) => {
      started.push(`${event.aggregateId}, attempt ${ctx.attempt}, ${ctx.remainingMs() / 1_000} s left`);
      await one.clock.sleep(20_000);
    });
    await one.deliver(handler);
    expect(started.sort()).toEqual(['fresh, attempt 1, 30 s left', 'left, attempt 2, 30 s left']);
    expect(one.telemetry.counted('LeasesExpired')).toBe(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test.each<[string, object]>([
    ['has no lease', { leaseUntil: undefined, endsBy: undefined }],
    ['has a lease that is not a time', { leaseUntil: null, unfinished: 1 }],
    ['has no fencing token', { fence: undefined, unfinished: 1 }],
    [
      'is rejected without a fencing token',
      { status: 'REJECTED', reason: 'POISON_MESSAGE', fence: undefined },
    ],
  ])('is claimed at once if its row %s', async (_what, change) => {
    const one = oneMessage();
    await one.receivedBefore();
    await held(one, -1, change);
    const handle = vi.fn();
    await one.deliver(handle);
    expect(handle).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test.each([['PARKED'], [undefined]])(
    'is not changed and reported as an outage if its row has the status %s',
    async (status) => {
      const one = oneMessage();
      await one.receivedBefore();
      await held(one, -1, { status });
      const row = one.row();
      const handle = vi.fn();
      await one.deliver(handle);
      expect(handle).not.toHaveBeenCalled();
      expect(one.row()).toEqual(row);
      expect(one.telemetry.counted('TableFailures')).toBe(1);
      expect(one.waitsMs()).toBeGreaterThan(40_000);
    },
  );

  test('starts at attempt 1 when it is received for the first time, whatever was counted before', async () => {
    const one = oneMessage();
    await held(one, -1, { attempts: 3 });
    const attempts: number[] = [];
    await one.deliver(attemptOf(attempts));
    expect(attempts).toEqual([1]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('starts at attempt 1 after the first run of its transactional handler, which needs no claim, threw', async () => {
    const one = oneMessage();
    await held(one, -1, { attempts: 3 });
    const attempts: number[] = [];
    const handler = transactional(ThingHappened, async ({ eventId }, ctx) => {
      attempts.push(ctx.attempt);
      if (attempts.length === 1) throw new Error(eventId);
      return { writes: [domainRow] };
    });
    await one.drain(handler);
    expect(attempts).toEqual([1, 1]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('is rejected without a run when its attempts are exhausted and its process died alone', async () => {
    const one = oneMessage();
    await one.receivedBefore();
    await held(one, -1, { attempts: 3, unfinished: 2 });
    const handle = vi.fn();
    await one.deliver(handle);
    expect(handle).not.toHaveBeenCalled();
    expect(one.row()).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_EXHAUSTED',
      lastError: expect.stringContaining('The function ended before its handler did'),
    });
  });

  test('is not taken over by a second worker', async () => {
    const one = oneMessage();
    await held(one, -100_000);
    const endsBy = one.clock.now() + 60_000;
    const taken = { fence: 'third', leaseUntil: endsBy, endsBy };
    let claims = 0;
    const table = beforeWrite(one.memory, CLAIM, () => {
      claims += 1;
      return claims === 2 ? one.overwrite(taken) : undefined;
    });
    const handle = vi.fn();
    await one.deliver(handle, { table });
    expect(claims).toBeGreaterThanOrEqual(2);
    expect(handle).not.toHaveBeenCalled();
    expect(one.row()).toMatchObject(taken);
  });
});

test('each claim of a message has its own fencing token', async () => {
  const one = oneMessage();
  const fences = new Set<unknown>();
  const handler = () => {
    fences.add(one.row()?.fence);
    if (fences.size < 3) throw new Error('again');
  };
  await one.drain(handler);
  expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 3 });
});

describe('a worker that has lost its message', () => {
  test.each<[string, () => unknown]>([
    ['returns', () => {}],
    ['throws', () => Promise.reject(new Error('too late'))],
    ['throws PoisonMessage', () => Promise.reject(new PoisonMessage('too late'))],
  ])('changes nothing when its handler %s', async (_what, end) => {
    const one = oneMessage();
    const { failed } = await one.deliver(async () => {
      await one.overwrite({ fence: 'other' });
      await end();
    });
    expect(failed).toHaveLength(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSING', fence: 'other' });
    expect(one.row()).not.toHaveProperty('lastError');
    expect(one.pointer()).toBeUndefined();
  });

  test.each<[string, object, number, number]>([
    ['failed under its own fencing token', { status: 'FAILED' }, 1, 0],
    ['was processed by another worker, which is a duplicate', { status: 'PROCESSED', fence: 'other' }, 0, 1],
  ])('does not count the message as processed if it %s', async (_what, change, stays, duplicates) => {
    const one = oneMessage();
    await one.deliver(() => one.overwrite(change));
    expect(one.row()).toMatchObject(change);
    expect(one.queue.messages()).toHaveLength(stays);
    expect(one.telemetry.counted('MessagesProcessed')).toBe(0);
    expect(one.telemetry.counted('MessagesDuplicate')).toBe(duplicates);
    expect(one.telemetry.counted('FenceRefused')).toBe(1);
  });
});

describe('a message', () => {
  test('with an unknown receive count continues its attempts', async () => {
    const one = oneMessage();
    const attempts: number[] = [];
    const { handle } = consumer(one, [
      leased(ThingHappened, async (_event, ctx) => {
        attempts.push(ctx.attempt);
        throw new Error('not now');
      }),
    ]);
    const [record] = one.queue.receive();
    if (record === undefined) throw new Error('There is no message');
    const Records = [{ ...record, attributes: {} as typeof record.attributes }];
    for (const _ of [1, 2]) await runThrough(one.clock, handle({ Records }, lambdaContext(one)));
    expect(attempts).toEqual([1, 2]);
    expect(one.row()).toMatchObject({ attempts: 2 });
  });

  test('without a handler is rejected even if its row has an expired lease', async () => {
    const one = oneMessage({ type: 'Unheard' });
    await held(one, -100_000);
    await one.drain(() => {});
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_TYPE' });
    expect(one.pointer()).toBeDefined();
    expect(one.queue.deadLetters()).toHaveLength(1);
  });

  test('without a handler is rejected under each SQS message id that it arrives with', async () => {
    const one = oneMessage({ type: 'Unheard' });
    await one.drain(() => {});
    one.queue.redrive();
    await one.drain(() => {});
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(one.row()?.rejectedIds).toHaveProperty('size', 2);
    expect(one.queue.deadLetters()).toHaveLength(1);
  });

  test('a rejected message is readmitted by one redrive only', async () => {
    const one = oneMessage();
    const handle = vi.fn(() => Promise.reject(new PoisonMessage('not like this')));
    await one.drain(handle);
    one.queue.redrive();
    const transact: Table['transact'] = async (...call) => {
      await held(one, 60_000);
      return one.memory.transact(...call);
    };
    await one.deliver(handle, { table: { ...one.memory, transact } });
    expect(handle).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSING', fence: 'other' });
  });

  test('a rejected message does not run under its old id after its redrive has failed', async () => {
    const parts = rig();
    const event = envelope(parts);
    const handle = vi
      .fn<() => Promise<never>>()
      .mockRejectedValueOnce(new PoisonMessage('not like this'))
      .mockRejectedValue(new Error('not now'));
    const { handle: consume } = consumer(parts, [leased(ThingHappened, handle)]);
    for (const _ of ['old', 'new']) parts.queue.send(body(event));
    const [old, redriven] = parts.queue.receive();
    for (const record of [old, redriven, old]) {
      if (record === undefined) throw new Error('There is no message');
      await runThrough(parts.clock, consume({ Records: [record] }, lambdaContext(parts)));
    }
    expect(handle).toHaveBeenCalledTimes(2);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'not now' });
  });
});

describe('a write whose answer was lost, and which the SDK has sent again, is recognized:', () => {
  /** A table that gets the first write of an attribute twice. */
  function sentTwice(table: Table, attribute: string): Table {
    let sent = 0;
    return beforeWrite(table, `${attribute} = `, async (action) => {
      sent += 1;
      if (sent === 1) await table.write(action as never);
    });
  }

  test.each<[string, string, (ctx: LeasedContext) => unknown, object, object]>([
    ['a claim', CLAIM, () => {}, { status: 'PROCESSED' }, { MessagesProcessed: 1 }],
    [
      'the start of an effect',
      'effects.#effect',
      () => {},
      { status: 'PROCESSED' },
      { MessagesProcessed: 1 },
    ],
    ['the result of an effect', 'completedAt', () => {}, { status: 'PROCESSED' }, { MessagesProcessed: 1 }],
    ['a completion', 'processedAt', () => {}, { status: 'PROCESSED' }, { MessagesProcessed: 1 }],
    [
      'a failure',
      'lastError',
      () => Promise.reject(new Error('not now')),
      { status: 'FAILED', lastError: 'not now' },
      { MessagesFailed: 1 },
    ],
  ])('%s', async (_what, attribute, end, row, counts) => {
    const one = oneMessage();
    const charge = vi.fn(async () => 'charged');
    const handler = async (ctx: LeasedContext) => {
      await ctx.once('charge', charge);
      await end(ctx);
    };
    await one.deliver(handler, { table: sentTwice(one.memory, attribute) });
    expect(charge).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ attempts: 1, ...row });
    for (const metric of ['MessagesProcessed', 'MessagesFailed', 'FenceRefused'] as const)
      expect(one.telemetry.counted(metric)).toBe({ [metric]: 0, ...counts }[metric]);
  });

  test('a release', async () => {
    const one = oneMessage();
    await one.leaveEffect({ endsBy: one.clock.now() + 20_000 });
    const table = sentTwice(one.memory, 'retryAt');
    await one.deliver((ctx) => ctx.once('charge', async () => 1), { table });
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.telemetry.counted('FenceRefused')).toBe(0);
  });

  test('a commit, by a strongly consistent read of the row', async () => {
    const one = oneMessage();
    const { transact } = afterWrite(one.memory, 'THING#1', unanswered);
    const committed = vi.fn();
    const handler = (ctx: LeasedContext) => ctx.commit({ writes: [domainRow] }).then(committed);
    const { failed } = await one.deliver(handler, { table: { ...staleReads(one.memory), transact } });
    expect(failed).toEqual([]);
    expect(committed).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });
});
