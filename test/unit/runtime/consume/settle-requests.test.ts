import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import {
  type HandlerOptions,
  type LeasedContext,
  leased,
  type RejectedContext,
  transactional,
} from '../../../../lambdas/runtime/consume/handler.ts';
import type { SettleAnswer, SettleRequest } from '../../../../lambdas/runtime/consume/settle-requests.ts';
import { inboxHistoryKey } from '../../../../lambdas/runtime/store/keys.ts';
import type { TransactAction } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { runThrough, startedLongAgo, ThingHappened } from '../../../support/runtime-rig.ts';
import { beforeWrite, body, CONSUMER, consumer, domainRow, oneMessage } from './consumer-rig.ts';

const note = { by: 'ada', reason: 'the customer left' };
const charge = (ctx: LeasedContext) => ctx.once('charge', async () => ({ chargeId: 'c-1' }));
const fails = async (): Promise<never> => {
  throw new Error('down');
};
const announces = async () => ({ writes: [domainRow], events: [rejectedThing] });
const rejectedThing = ThingHappened.create({ aggregateId: '1', data: { n: 9 } });

type Rejected = HandlerOptions<typeof ThingHappened>['rejected'];

/** A message whose handler may have a `rejected` function, and its consumer's function. */
function settling({
  handle = fails,
  rejected,
  sent,
}: {
  readonly handle?: (ctx: LeasedContext) => Promise<unknown>;
  readonly rejected?: Rejected;
  readonly sent?: Parameters<typeof oneMessage>[0];
} = {}) {
  const one = oneMessage(sent);
  const handler = leased(ThingHappened, (_, ctx) => handle(ctx), rejected === undefined ? {} : { rejected });
  const ask = async (request: SettleRequest, table = one.table): Promise<SettleAnswer['settled']> => {
    const { handle: invoked } = consumer(one, [handler], table);
    const context = lambdaContext({ clock: one.clock, timeoutMs: 30_000 });
    const answer = await runThrough(one.clock, invoked(request as never, context));
    expect(answer.batchItemFailures).toEqual([]);
    return (answer as SettleAnswer).settled;
  };
  return {
    ...one,
    /** Its handler rejects it at its first attempt. */
    exhaust: () => one.deliver(handler, { maxAttempts: 1 }),
    ask,
    reject: (change: object = {}, table = one.table) =>
      ask({ mailroomReject: { ...note, body: JSON.stringify(body(one.event)), ...change } }, table),
    commit: (change: object = {}) =>
      ask({
        mailroomCommit: { ...note, eventId: one.event.eventId, writes: [], events: [], ...change },
      }),
    eventTypes: () => one.rows().map(({ type }) => type),
  };
}

describe('a formal rejection', () => {
  test('commits what the rejected function returns together with DISCARDED', async () => {
    const one = settling({ rejected: announces });
    await one.exhaust();
    expect(one.pointer()).toBeDefined();
    expect(await one.reject()).toEqual({ status: 'discarded' });
    expect(one.row()).toMatchObject({
      status: 'DISCARDED',
      discardedBy: 'ada',
      discardedReason: 'the customer left',
    });
    expect(one.pointer()).toBeUndefined();
    expect(one.domainRow()).toBeDefined();
    expect(one.rows().map(({ envelope }) => JSON.parse(envelope))).toMatchObject([
      { causationId: one.event.eventId, correlationId: one.event.correlationId },
    ]);
    expect(one.telemetry.counted('EventsCommitted')).toBe(1);
  });

  test('happens once, however often it is requested', async () => {
    const one = settling({ rejected: announces });
    await one.exhaust();
    await one.reject();
    expect(await one.reject()).toEqual({ status: 'discarded' });
    expect(one.rows()).toHaveLength(1);
  });

  test('receives the cause, the operator and the results of the effects', async () => {
    const rejected = vi.fn(async (_event: unknown, _ctx: RejectedContext) => ({}));
    const one = settling({ handle: async (ctx) => [await charge(ctx), await fails()], rejected });
    await one.exhaust();
    expect(await one.reject()).toEqual({ status: 'discarded' });
    const [event, ctx] = rejected.mock.calls[0] ?? [];
    expect(event).toMatchObject({ eventId: one.event.eventId, source: 'things', data: { n: 1 } });
    expect(ctx).toMatchObject({
      ...note,
      cause: { code: 'ATTEMPTS_EXHAUSTED', message: expect.stringContaining('down') },
      effects: {
        charge: {
          state: 'completed',
          result: { chargeId: 'c-1' },
          idempotencyKey: `${CONSUMER}:${one.event.eventId}:charge`,
        },
      },
      logFields: { consumer: CONSUMER, eventId: one.event.eventId },
    });
    expect(ctx?.remainingMs()).toBeLessThanOrEqual(30_000);
  });

  test('needs a check of the effects that may have happened', async () => {
    const one = settling({ handle: (ctx) => ctx.once('charge', fails), rejected: announces });
    await one.exhaust();
    expect(await one.reject()).toMatchObject({
      status: 'effects-unchecked',
      effects: [{ effect: 'charge', state: 'failed' }],
    });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(await one.reject({ effectsChecked: true })).toEqual({ status: 'discarded' });
  });

  test('waits until the function of an effect has stopped by every clock, also after a check', async () => {
    const one = settling({ rejected: announces });
    await one.exhaust();
    const endsBy = one.clock.now() + 10_000;
    await one.leaveEffect({ endsBy });
    await one.leaveEffect({ endsBy: endsBy - 5_000 }, 'mail');
    const running = { status: 'leased', until: endsBy + CLOCK_SKEW_MS };
    expect(await one.reject({ effectsChecked: true })).toEqual(running);
    await one.clock.advance(10_000);
    expect(await one.reject({ effectsChecked: true })).toEqual(running);
    await one.clock.advance(CLOCK_SKEW_MS);
    expect(await one.reject()).toMatchObject({ status: 'effects-unchecked' });
    expect(await one.reject({ effectsChecked: true })).toEqual({ status: 'discarded' });
  });

  test('reads the effects and the event again if an effect is finished before its transaction', async () => {
    const results: unknown[] = [];
    const one = settling({
      rejected: async ({ data }, { effects }) => {
        results.push([effects.charge?.state, data.n]);
        (data as { n: number }).n *= 10;
        return { writes: [domainRow] };
      },
    });
    await one.exhaust();
    await one.leaveEffect({ status: 'RELEASED' });
    let late = true;
    const table = beforeWrite(one.memory, 'discardedBy', async () => {
      if (late) await one.leaveEffect({ status: 'COMPLETED', result: '1' });
      late = false;
    });
    expect(await one.reject({ effectsChecked: true }, table)).toEqual({ status: 'discarded' });
    expect(results).toEqual([
      ['failed', 1],
      ['completed', 1],
    ]);
  });

  test('loses to a redrive that claims the message first', async () => {
    const one = settling({ rejected: announces });
    await one.exhaust();
    const table = beforeWrite(one.memory, 'discardedBy', () =>
      one.overwrite({ status: 'PROCESSING', fence: 'redriven', leaseUntil: one.clock.now() + 30_000 }),
    );
    expect(await one.reject({}, table)).toMatchObject({ status: 'leased' });
    expect(one.rows()).toEqual([]);
  });

  test('leaves a message that was processed', async () => {
    const rejected = vi.fn(announces);
    const one = settling({ rejected });
    await one.overwrite({ status: 'PROCESSED', fence: 'f', attempts: 1 });
    expect(await one.reject()).toEqual({ status: 'processed' });
    expect(rejected).not.toHaveBeenCalled();
  });

  const existing: TransactAction = {
    ConditionCheck: { Key: { PK: 'THING#1', SK: 'THING' }, ConditionExpression: 'attribute_exists(PK)' },
  };

  test('runs again on fresh reads if a condition of its writes fails', async () => {
    let runs = 0;
    const one = settling({
      rejected: async () => {
        runs += 1;
        return { writes: [runs === 1 ? existing : domainRow] };
      },
    });
    await one.exhaust();
    expect(await one.reject()).toEqual({ status: 'discarded' });
    expect(runs).toBe(2);
  });

  test.each<[string, Rejected, string]>([
    ['throws', fails, 'down'],
    ['returns no commit', (async () => undefined) as never, 'must return { writes, events }'],
  ])('changes nothing if the rejected function %s', async (_what, rejected, message) => {
    const one = settling({ rejected });
    await one.exhaust();
    const before = one.row();
    expect(await one.reject()).toMatchObject({
      status: 'refused',
      message: expect.stringContaining(message),
    });
    expect(one.row()).toEqual(before);
  });

  test('stops a rejected function early enough to answer before its time is up', async () => {
    const one = settling({ rejected: () => new Promise(() => {}) });
    await one.exhaust();
    const startedAt = one.clock.now();
    expect(await one.reject()).toMatchObject({ status: 'refused', code: 'OUT_OF_TIME' });
    expect(one.clock.now() - startedAt).toBeLessThanOrEqual(29_100); // of the function's 30 s
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
  });

  test('is refused for a handler without a rejected function', async () => {
    const one = settling();
    await one.exhaust();
    expect(await one.reject()).toMatchObject({ status: 'refused', code: 'NO_REJECTED_FUNCTION' });
  });

  test.each([
    ['that is not an event', '{}', 'UNREADABLE_MESSAGE'],
    ['of an unknown type', JSON.stringify({ ...body({ type: 'Other' }), detail: {} }), 'UNREADABLE_MESSAGE'],
  ])('is refused for a body %s', async (_what, unread, code) => {
    const one = settling({ rejected: announces });
    expect(await one.reject({ body: unread })).toMatchObject({ status: 'refused', code });
  });

  test('is refused for an event whose row may have expired after it was processed', async () => {
    const one = settling({ rejected: announces });
    await startedLongAgo(one.memory);
    await one.clock.advance(40 * 86_400_000);
    await one.exhaust();
    expect(one.row()).toMatchObject({ reason: 'EVENT_TOO_OLD' });
    expect(await one.reject()).toMatchObject({ status: 'refused', code: 'EVENT_TOO_OLD' });
    await one.overwrite({ runAnyway: true });
    expect(await one.reject()).toEqual({ status: 'discarded' });
  });

  test('judges the age of its event by every retention since, also in the first request of a function', async () => {
    const one = settling({ rejected: announces });
    await one.memory.write({
      Put: {
        Item: {
          ...inboxHistoryKey(CONSUMER),
          schema: 1,
          retentions: [{ days: 1, since: 0 }],
          changedAt: 0,
        },
      },
    });
    await one.clock.advance(3 * 86_400_000);
    expect(await one.reject()).toMatchObject({ status: 'refused', code: 'EVENT_TOO_OLD' });
    expect(one.domainRow()).toBeUndefined();
  });

  test('is not made if the row of the rejected message was deleted', async () => {
    const one = settling({ rejected: announces });
    await one.exhaust();
    const { PK, SK } = one.row() as { readonly PK: string; readonly SK: string };
    await one.memory.write({ Delete: { Key: { PK, SK } } });
    expect(await one.reject()).toEqual({ status: 'row-deleted' });
    expect(await one.reject({ effectsChecked: true })).toEqual({ status: 'row-deleted' });
  });

  test('works for a transactional handler', async () => {
    const one = oneMessage();
    const handler = transactional(ThingHappened, fails, { rejected: announces });
    await one.deliver(
      transactional(ThingHappened, async () => {
        throw new PoisonMessage('no');
      }),
    );
    const { handle } = consumer(one, [handler]);
    const request = { mailroomReject: { ...note, body: JSON.stringify(body(one.event)) } };
    const answer = await runThrough(one.clock, handle(request as never, lambdaContext({ clock: one.clock })));
    expect(answer).toMatchObject({ settled: { status: 'discarded' } });
  });
});

describe('a manual fix', () => {
  const event = {
    type: 'ThingHappened',
    version: 2,
    aggregateType: 'Thing',
    aggregateId: '1',
    sequence: 3,
    data: { n: 5 },
  };

  test('commits its writes and events together with PROCESSED', async () => {
    const one = settling();
    await one.exhaust();
    const cause = one.event;
    expect(await one.commit({ writes: [domainRow], events: [event], cause })).toEqual({ status: 'resolved' });
    expect(one.row()).toMatchObject({ status: 'PROCESSED', resolvedBy: 'ada' });
    expect(one.domainRow()).toBeDefined();
    const [written] = one.rows();
    expect(JSON.parse(written?.envelope ?? '')).toMatchObject({
      ...event,
      correlationId: 'chain',
      causationId: one.event.eventId,
    });
    expect(written).toMatchObject({ source: 'things' });
  });

  test('changes nothing if one of its conditions fails', async () => {
    const one = settling();
    await one.exhaust();
    await one.memory.write({ Put: { Item: domainRow.Put.Item } });
    expect(await one.commit({ writes: [domainRow], events: [event] })).toMatchObject({
      status: 'refused',
      code: 'TRANSACTION_CANCELLED',
    });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(one.rows()).toEqual([]);
  });

  test('needs a check of every effect, also of one that has completed', async () => {
    const one = settling({ handle: async (ctx) => [await charge(ctx), await fails()] });
    await one.exhaust();
    expect(await one.commit({ writes: [domainRow] })).toMatchObject({ status: 'effects-unchecked' });
    expect(await one.commit({ writes: [domainRow], effectsChecked: true })).toEqual({ status: 'resolved' });
  });

  test('needs a check if the row of the rejected message was deleted', async () => {
    const one = settling();
    await one.exhaust();
    const { PK, SK } = one.row() as { readonly PK: string; readonly SK: string };
    await one.memory.write({ Delete: { Key: { PK, SK } } });
    expect(await one.commit({ writes: [domainRow] })).toEqual({ status: 'row-deleted' });
    expect(one.domainRow()).toBeUndefined();
    expect(await one.commit({ writes: [domainRow], effectsChecked: true })).toEqual({ status: 'resolved' });
    expect(one.pointer()).toBeUndefined();
  });

  test('waits for an effect that may still run, except by force', async () => {
    const one = settling();
    await one.exhaust();
    await one.leaveEffect({ endsBy: one.clock.now() + 10_000 });
    const fix = { writes: [domainRow], effectsChecked: true };
    expect(await one.commit(fix)).toMatchObject({ status: 'leased' });
    expect(await one.commit({ ...fix, force: true })).toEqual({ status: 'resolved' });
  });

  test('is recognized when it is requested again, and no other one is taken for it', async () => {
    const one = settling();
    await one.exhaust();
    await one.commit({ writes: [domainRow] });
    expect(await one.commit({ writes: [domainRow] })).toEqual({ status: 'resolved' });
    expect(await one.commit({ events: [event] })).toMatchObject({
      status: 'refused',
      code: 'ALREADY_SETTLED',
      message: expect.stringContaining('by ada (the customer left)'),
    });
  });

  test('is refused for a message that its consumer discarded as stale, which no operator did', async () => {
    const one = settling();
    await one.overwrite({ status: 'DISCARDED', reason: 'STALE', discardedAt: one.clock.now() });
    expect(await one.commit({ writes: [domainRow] })).toEqual({
      status: 'refused',
      code: 'ALREADY_SETTLED',
      message: 'The message was discarded as stale by its consumer. Nothing was committed now.',
    });
  });

  test.each([
    ['the same writes with another event', { writes: [domainRow], events: [{ ...event, data: { n: 6 } }] }],
    ['the same event with other writes', { events: [event] }],
  ])('is not taken for one with %s', async (_what, other) => {
    const one = settling();
    await one.exhaust();
    await one.commit({ writes: [domainRow], events: [event] });
    expect(await one.commit(other)).toMatchObject({ status: 'refused', code: 'ALREADY_SETTLED' });
  });

  test('refuses a message that a worker holds, except by force', async () => {
    const one = settling();
    await one.overwrite({
      status: 'PROCESSING',
      fence: 'f',
      attempts: 1,
      leaseUntil: one.clock.now() + 30_000,
    });
    expect(await one.commit({ writes: [domainRow] })).toMatchObject({ status: 'leased' });
    const forced = { writes: [domainRow], force: true, effectsChecked: true };
    expect(await one.commit(forced)).toEqual({ status: 'resolved' });
    expect(one.domainRow()).toBeDefined();
  });

  test.each([
    ['a row of Mailroom', { writes: [{ Put: { Item: { PK: 'INBOX#x', SK: 'x' } } }] }, 'BAD_WRITE'],
    ['an event without a type', { events: [{ ...event, type: undefined }] }, 'BAD_ARGUMENT'],
    ['an event without an aggregate', { events: [{ ...event, aggregateId: 7 }] }, 'BAD_ARGUMENT'],
    ['an event of sequence 0', { events: [{ ...event, sequence: 0 }] }, 'BAD_ARGUMENT'],
    ['an event of version 0', { events: [{ ...event, version: 0 }] }, 'BAD_EVENT_DEFINITION'],
  ])('refuses %s', async (_what, change, code) => {
    const one = settling();
    await one.exhaust();
    expect(await one.commit(change)).toMatchObject({ status: 'refused', code });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
  });
});
