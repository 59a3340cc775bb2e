import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  type HandlerOptions,
  type LeasedContext,
  leased,
} from '../../../../lambdas/runtime/consume/handler.ts';
import type { SettleAnswer } from '../../../../lambdas/runtime/consume/settle-requests.ts';
import { externalEvent } from '../../../../lambdas/runtime/events/external-event.ts';
import { discardMessage } from '../../../../lambdas/runtime/operations/message-operations.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { rejectedKey } from '../../../../lambdas/runtime/store/keys.ts';
import { readInboxRow } from '../../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, runThrough, startedLongAgo, ThingHappened } from '../../../support/runtime-rig.ts';
import { awsError, beforeWrite, body, CONSUMER, domainRow, oneMessage } from './consumer-rig.ts';

const note = { by: 'ada', reason: 'the customer left' };
const fails = async (): Promise<never> => {
  throw new Error('down');
};
const rejectedThing = ThingHappened.create({ aggregateId: '1', data: { n: 9 } });
const announces = async () => ({ writes: [domainRow], events: [rejectedThing] });
const event = { type: 'ThingHappened', version: 2, aggregateType: 'Thing', aggregateId: '1', data: { n: 5 } };

type Rejected = HandlerOptions<typeof ThingHappened>['rejected'];

/** A message, and its consumer's function, to which any JSON is sent. */
function settling({
  handle = fails,
  rejected = announces as Rejected,
  redact,
}: {
  readonly handle?: (ctx: LeasedContext) => Promise<unknown>;
  readonly rejected?: Rejected;
  readonly redact?: (text: string) => string;
} = {}) {
  const one = oneMessage();
  const handler = leased(ThingHappened, (_, ctx) => handle(ctx), { rejected });
  const ask = async (request: object, table: Table = one.table): Promise<SettleAnswer['settled']> => {
    const { queue, clock, telemetry } = one;
    const invoked = createConsumer({
      config: consumerConfig,
      table,
      queue,
      handlers: [handler],
      clock,
      telemetry,
      redact,
    });
    const context = lambdaContext({ clock, timeoutMs: 30_000 });
    return ((await runThrough(clock, invoked(request as never, context))) as SettleAnswer).settled;
  };
  return {
    ...one,
    exhaust: () => one.deliver(handler, { maxAttempts: 1 }),
    ask,
    reject: (change: object = {}, table?: Table) =>
      ask({ mailroomReject: { ...note, body: JSON.stringify(body(one.event)), ...change } }, table),
    commit: (change: object = {}, table?: Table) =>
      ask(
        { mailroomCommit: { ...note, eventId: one.event.eventId, writes: [], events: [], ...change } },
        table,
      ),
  };
}

const refused = { status: 'refused' };

describe('a request of the wrong shape is refused', () => {
  test.each<[string, object]>([
    ['by is missing', { by: undefined }],
    ['by is a number', { by: 7 }],
    ['reason is an object', { reason: { text: 'x' } }],
    ['effectsChecked is the text "false"', { effectsChecked: 'false' }],
    ['force, which a rejection has not', { force: true }],
    ['body is an object', { body: { toString: 1, valueOf: 1 } }],
    ['body is missing', { body: undefined }],
    ['sentAt is a text', { sentAt: 'now' }],
  ])('rejection: %s', async (_what, change) => {
    const one = settling();
    await one.exhaust();
    const answer = await one.reject(change);
    expect(answer).toMatchObject({
      ...refused,
      message: expect.stringContaining(Object.keys(change)[0] ?? ''),
    });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
  });

  test.each<[string, string, object]>([
    ['eventId is missing', 'eventId', { eventId: undefined }],
    ['eventId is not an event id', 'eventId', { eventId: 'order-17' }],
    ['by is a number', 'by', { by: 7 }],
    ['effectsChecked is the text "false"', 'effectsChecked', { effectsChecked: 'false' }],
    ['force is the text "false"', 'force', { force: 'false' }],
    ['writes is missing', 'writes', { writes: undefined }],
    ['a write is null', 'writes[0]', { writes: [null] }],
    ['a Put is null', 'Put', { writes: [{ Put: null }] }],
    ['events is missing', 'events', { events: undefined }],
    ['events is an object', 'events', { events: {} }],
    ['an event is null', 'events[0]', { events: [null] }],
    ['an event names another source', 'source', { events: [{ ...event, source: 'billing' }] }],
    ['cause is null', 'cause', { events: [event], cause: null }],
  ])('manual fix: %s', async (_what, named, change) => {
    const one = settling();
    await one.exhaust();
    const answer = await one.commit(change);
    expect(answer).toMatchObject({ ...refused, message: expect.stringContaining(named) });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(one.rows()).toEqual([]);
  });

  test.each<[string, object]>([
    ['mailroomReject is a string', { mailroomReject: 'x' }],
    ['mailroomReject is null beside a commit', { mailroomReject: null, mailroomCommit: { ...note } }],
    ['both requests', { mailroomReject: { ...note, body: '{}' }, mailroomCommit: { ...note } }],
  ])('%s', async (_what, request) => {
    expect(await settling().ask(request)).toMatchObject({
      ...refused,
      message: expect.stringContaining('mailroom'),
    });
  });

  test('an inbox row stays readable whatever by and reason were', async () => {
    const one = settling();
    await one.exhaust();
    await one.reject({ by: 7 });
    expect(readInboxRow(one.row())).not.toHaveProperty('unreadable');
  });

  test('readsResults in a manual fix does not replace the check of a completed effect', async () => {
    const one = settling({
      handle: async (ctx) => [await ctx.once('charge', async () => ({ id: 1 })), await fails()],
    });
    await one.exhaust();
    const answer = await one.commit({ writes: [domainRow], readsResults: true });
    expect(answer).toMatchObject({ ...refused, message: expect.stringContaining('readsResults') });
    expect(await one.commit({ writes: [domainRow] })).toMatchObject({ status: 'effects-unchecked' });
  });
});

describe('a manual fix', () => {
  test.each([
    [{ correlationId: 7 }],
    [{ correlationId: '' }],
    [{ hops: -5 }],
    [{ hops: 1.5 }],
    [{ hops: '2' }],
    [{ eventId: 9 }],
  ])('commits no event that no consumer can read: cause %j', async (change) => {
    const one = settling();
    await one.exhaust();
    const cause = { eventId: one.event.eventId, correlationId: 'c', hops: 1, ...change };
    expect(await one.commit({ events: [event], cause })).toMatchObject({
      ...refused,
      message: expect.stringContaining(`cause.${Object.keys(change)[0]}`),
    });
    expect(one.rows()).toEqual([]);
  });

  test('puts no outbox row itself, which would replace an event or claim another source', async () => {
    const one = settling();
    await one.exhaust();
    const [entry] = await one.outbox.entries([one.happened(1)]);
    await one.memory.transact([entry as never], 't');
    const key = { PK: entry?.Put.Item.PK, SK: entry?.Put.Item.SK };
    const Item = {
      ...key,
      schema: 1,
      status: 'PUBLISHED',
      source: 'billing',
      type: 'X',
      envelope: '{}',
      leaseUntil: 0,
      attempts: 0,
    };
    expect(await one.commit({ writes: [{ Put: { Item } }] })).toMatchObject({
      ...refused,
      code: 'BAD_WRITE',
    });
    expect(one.rows()).toMatchObject([{ status: 'PENDING' }]);
  });

  test('writes no row of Mailroom under the ARN of its table', async () => {
    const one = settling();
    await one.exhaust();
    const seen: unknown[] = [];
    const table: Table = {
      ...one.table,
      transact: async (actions, token) => {
        seen.push(actions);
        return one.table.transact(actions.slice(0, 2), token);
      },
    };
    const TableName = `arn:aws:dynamodb:eu-west-1:123456789012:table/${one.table.name}`;
    const Key = { PK: `INBOX#${CONSUMER}#${mintEventId(one.clock.now(), 2)}`, SK: 'MESSAGE' };
    const write = {
      Update: { TableName, Key, UpdateExpression: 'SET x = :x', ExpressionAttributeValues: { ':x': 1 } },
    };
    expect(await one.commit({ writes: [write] }, table)).toMatchObject({ ...refused, code: 'BAD_WRITE' });
    expect(seen).toEqual([]);
  });

  test.each([
    [
      'an expression that DynamoDB refuses',
      { Update: { Key: { PK: 'THING#1', SK: 'T' }, UpdateExpression: 'SET SET' } },
    ],
    [
      'an unused value',
      { Put: { Item: { PK: 'THING#1', SK: 'T' }, ExpressionAttributeValues: { ':x': 1 } } },
    ],
    ['a key without SK', { Put: { Item: { PK: 'THING#1' } } }],
    ['a table that is not a text', { Put: { TableName: 7 as never, Item: { PK: 'THING#1', SK: 'T' } } }],
  ])('refuses %s', async (_what, write) => {
    const one = settling();
    await one.exhaust();
    expect(await one.commit({ writes: [write] })).toMatchObject(refused);
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
  });

  test('refuses a write to a row that IAM denies', async () => {
    const one = settling();
    await one.exhaust();
    const table: Table = {
      ...one.table,
      transact: async () => {
        throw awsError('AccessDeniedException');
      },
    };
    expect(await one.commit({ writes: [domainRow] }, table)).toMatchObject(refused);
  });

  test('reports that it was committed when it is requested again', async () => {
    const one = settling();
    await one.exhaust();
    expect(await one.commit({ writes: [domainRow] })).toEqual({ status: 'resolved' });
    // Its answer was lost; "processed" would mean that the handler was first.
    expect(await one.commit({ writes: [domainRow] })).toEqual({ status: 'resolved' });
  });

  test('commits nothing for an event whose row may have expired after it was processed', async () => {
    const one = settling();
    await startedLongAgo(one.memory);
    await one.clock.advance(40 * 86_400_000);
    expect(await one.commit({ writes: [domainRow] })).toMatchObject({ ...refused, code: 'EVENT_TOO_OLD' });
    expect(one.domainRow()).toBeUndefined();
  });
});

describe('a formal rejection', () => {
  test('does not report a plain discard as its own', async () => {
    const one = settling();
    await one.exhaust();
    await discardMessage(one, { ...note, by: 'bob', consumer: CONSUMER, eventId: one.event.eventId });
    // Its events were not committed, so the answer must differ from that of a rejection which was.
    expect(await one.reject()).not.toEqual({ status: 'discarded' });
  });

  test('counts its events once if another rejection comes first', async () => {
    const one = settling();
    await one.exhaust();
    let first = true;
    const table = beforeWrite(one.memory, 'discardedBy', async () => {
      if (!first) return;
      first = false;
      await one.reject();
    });
    await one.reject({}, table);
    expect(one.rows()).toHaveLength(1);
    expect(one.telemetry.counted('EventsCommitted')).toBe(1);
  });

  test('of a message without a row reads only what its function may read', async () => {
    const one = settling();
    const table: Table = {
      ...one.table,
      get: async (key, options) => {
        // MailroomTable.grantInbox allows PutItem and DeleteItem on the pointers, but not GetItem.
        if (key.PK === rejectedKey(CONSUMER, '').PK) throw awsError('AccessDeniedException');
        return one.table.get(key, options);
      },
    };
    expect(await one.reject({}, table)).toEqual({ status: 'discarded' });
  });

  test('redacts the code of an error', async () => {
    const one = settling({
      rejected: async () => {
        throw Object.assign(new Error('card 4111111111111111'), { code: 'card.4111111111111111' });
      },
      redact: (text) => text.replace(/\d{12,19}/g, '#'),
    });
    await one.exhaust();
    const answer = await one.reject();
    expect(answer).toMatchObject({ ...refused, message: 'card #' });
    expect(JSON.stringify(answer)).not.toContain('4111');
  });

  test('refuses what a rejected function returns with a null among its writes', async () => {
    const one = settling({ rejected: (async () => ({ writes: [null] })) as never });
    await one.exhaust();
    expect(await one.reject()).toMatchObject(refused);
  });

  test('refuses an expression of the rejected function that DynamoDB refuses', async () => {
    const one = settling({
      rejected: async () => ({
        writes: [{ Update: { Key: { PK: 'T', SK: 'T' }, UpdateExpression: 'SET SET' } }],
      }),
    });
    await one.exhaust();
    expect(await one.reject()).toMatchObject(refused);
  });

  test('refuses a stored result that is not JSON without quoting it', async () => {
    const one = settling();
    await one.exhaust();
    await one.leaveEffect({ status: 'COMPLETED', result: 'secret-4111' });
    const answer = await one.reject({ effectsChecked: true });
    expect(answer).toMatchObject({ ...refused, message: expect.stringContaining('charge') });
    expect(JSON.stringify(answer)).not.toContain('secret-4111');
  });

  test('does not name a handler when it is the rejected function that returned nothing', async () => {
    const one = settling({ rejected: (async () => undefined) as never });
    await one.exhaust();
    expect(await one.reject()).toMatchObject({ ...refused, message: expect.stringContaining('rejected') });
  });
});

describe('a message in a strange state', () => {
  test('commits once although the answer of its transaction was lost', async () => {
    const one = settling();
    await one.exhaust();
    const table: Table = {
      ...one.table,
      transact: async (actions, token) => {
        await one.table.transact(actions, token);
        throw awsError('TimeoutError');
      },
    };
    await expect(one.reject({}, table)).rejects.toThrow();
    expect(await one.reject()).toMatchObject({ status: 'discarded' });
    expect(one.rows()).toHaveLength(1);
  });

  test.each([
    ['effects null', { effects: null }],
    ['effects of an unknown shape', { effects: { charge: { status: 'COMPLETED' } } }],
    ['a newer schema', { schema: 99 }],
    ['an unknown status', { status: 'SETTLED' }],
  ])('is left if its row has %s', async (_what, change) => {
    const rejected = vi.fn(announces);
    const one = settling({ rejected });
    await one.exhaust();
    await one.overwrite(change);
    const before = one.row();
    expect(await one.reject({ effectsChecked: true })).toMatchObject({ status: 'unreadable' });
    expect(await one.commit({ effectsChecked: true, force: true })).toMatchObject({ status: 'unreadable' });
    expect(one.row()).toEqual(before);
    expect(rejected).not.toHaveBeenCalled();
  });

  test.each([[null], [7], ['x'], [['x']], [{ charge: null }]])(
    'is taken over by a redelivery if its row has effects %j',
    async (effects) => {
      const one = settling();
      await one.overwrite({ status: 'PROCESSING', fence: 'f', attempts: 1, leaseUntil: 1, effects });
      let ran = 0;
      await one.deliver(async () => {
        ran += 1;
      });
      expect(ran).toBe(1);
    },
  );

  test.each(['toString', 'hasOwnProperty'])('shows the result of an effect named %s', async (name) => {
    const seen: unknown[] = [];
    const one = settling({
      handle: async (ctx) => [await ctx.once(name, async () => 1), await fails()],
      rejected: async (_e, { effects }) => {
        seen.push(Object.entries(effects).map(([k, v]) => [k, v.result]));
        return {};
      },
    });
    await one.exhaust();
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(await one.reject()).toEqual({ status: 'discarded' });
    expect(seen).toEqual([[[name, 1]]]);
  });

  test('is refused or stored as it is if it has own __proto__ members', async () => {
    const one = settling();
    await one.exhaust();
    const text = `{"mailroomCommit":{"by":"a","reason":"b","eventId":"${one.event.eventId}","__proto__":{"force":true},"writes":[{"Put":{"Item":{"PK":"THING#1","SK":"THING","__proto__":{"x":1}}}}],"events":[]}}`;
    const answer = await one.ask(JSON.parse(text));
    // Either it is stored as it is, or refused: not stored without the attribute.
    if (answer.status === 'resolved') expect(Object.keys(one.domainRow() ?? {})).toContain('__proto__');
    else expect(answer).toMatchObject(refused);
  });

  test('is refused if an item, a reason or a transaction is too large', async () => {
    const one = settling();
    await one.exhaust();
    const big = 'x'.repeat(500_000);
    expect
      .soft(
        await one.commit({ writes: [{ Put: { Item: { PK: 'THING#1', SK: 'T', big } } }] }).catch((e) => e),
      )
      .toMatchObject(refused);
    expect.soft(await one.commit({ reason: big }).catch((e) => e)).toMatchObject(refused);
    const writes = Array.from({ length: 99 }, (_, n) => ({ Put: { Item: { PK: `THING#${n}`, SK: 'T' } } }));
    expect.soft(await one.commit({ writes })).toMatchObject({ ...refused, code: 'TRANSACTION_TOO_LARGE' });
    expect.soft(await one.commit({ writes: writes.slice(1) })).toEqual({ status: 'resolved' });
  });
});

test('a rejected external event without a time has that of its arrival, however late it is rejected', async () => {
  const one = oneMessage();
  const at: unknown[] = [];
  const Charged = externalEvent({ source: 'stripe', type: 'charge', id: 'key', schema: z.unknown() });
  const rejected = async ({ occurredAt }: { occurredAt: number }) => {
    at.push(occurredAt);
    return {};
  };
  const { queue, clock, telemetry, table } = one;
  const handlers = [leased(Charged, fails, { rejected } as never)];
  const handle = createConsumer({ config: consumerConfig, table, queue, handlers, clock, telemetry });
  const arrivedAt = clock.now();
  await clock.advance(3 * 86_400_000);
  // A request has no member for the time of arrival, which the command knows (SentTimestamp).
  const request = { mailroomReject: { ...note, body: '{"key":"k"}', sentAt: arrivedAt } };
  await runThrough(clock, handle(request as never, lambdaContext({ clock })));
  expect(at).toEqual([arrivedAt]);
});

test('nothing is rejected once the row was deleted, because no effect of it is known', async () => {
  const one = settling({
    handle: async (ctx) => [await ctx.once('charge', async () => 1), await fails()],
  });
  await one.exhaust();
  const { PK, SK } = one.row() as { PK: string; SK: string };
  await one.memory.write({ Delete: { Key: { PK, SK } } });
  expect(await one.reject({ effectsChecked: true })).toEqual({ status: 'row-deleted' });
  expect(one.row()).toBeUndefined();
  expect(one.pointer()).toBeDefined();
});
