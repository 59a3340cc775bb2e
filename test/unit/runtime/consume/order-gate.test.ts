import { describe, expect, test, vi } from 'vitest';
import { PoisonMessage, TransactionCancelled } from '../../../../lambdas/runtime/base/errors.ts';
import { nothingHappened } from '../../../../lambdas/runtime/base/nothing-happened.ts';
import { latest, strict } from '../../../../lambdas/runtime/base/order.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { resolveMessage } from '../../../../lambdas/runtime/operations/message-operations.ts';
import { failedKey, inboxKey, lastKey } from '../../../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { Counted, rig, startedLongAgo, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, domainRow, envelope, inboxRow, type Parts } from './consumer-rig.ts';

const STRICT = { order: strict(), maxReceives: 6 };

/** A consumer of numbered events of one aggregate, and its applied numbers. */
function ordered(
  change: Parameters<typeof consumer>[3] = STRICT,
  handlers?: readonly Handler[],
  options?: Parameters<typeof rig>[0],
) {
  const parts: Parts = rig(options);
  const appliedNumbers: number[] = [];
  const handler = transactional(Counted, async (event) => {
    appliedNumbers.push(event.sequence);
    return {};
  });
  const group = change.order?.mode === 'strict' ? 'strict' : 'Counted';
  const key = lastKey({
    source: 'things',
    consumer: CONSUMER,
    group,
    aggregateType: 'Thing',
    aggregateId: '1',
  });
  return {
    ...parts,
    applied: appliedNumbers,
    ...consumer(parts, handlers ?? [handler], parts.table, change),
    key,
    last: () => parts.memory.item(key),
    setLast: (last: number, more: object = {}) =>
      parts.memory.write({ Put: { Item: { ...key, last, at: 0, schema: 1, ...more } } }),
    send(sequence: unknown, more: object = {}) {
      const event = envelope(parts, { type: 'Counted', version: 1, sequence: sequence as number, ...more });
      parts.queue.send(body(event));
      return event;
    },
    row: (event: ReturnType<typeof envelope>) => inboxRow(parts, event),
    keyOf: ({ eventId }: { readonly eventId: string }) => inboxKey(CONSUMER, eventId),
    waitsS: () =>
      (Math.min(...parts.queue.messages().map(({ visibleAt }) => visibleAt)) - parts.clock.now()) / 1_000,
  };
}

describe('a strict consumer', () => {
  test('applies the numbers of an aggregate in order, and stores the last one', async () => {
    const one = ordered();
    const [third, , first] = [one.send(3), one.send(2), one.send(1)];
    await one.drain();
    expect(one.applied).toEqual([1, 2, 3]);
    expect(one.last()).toEqual({
      ...one.key,
      last: 3,
      at: expect.any(Number),
      eventId: third.eventId,
      schema: 1,
    });
    const order = { key: one.key.PK, mode: 'strict', sequence: 1 };
    expect(one.row(first)).toMatchObject({ status: 'PROCESSED', order });
  });

  test('writes nothing for an event that waits, and shows it after 1, 2, 4 and up to 60 seconds', async () => {
    const one = ordered({ ...STRICT, maxReceives: 9 }, undefined, { maxReceiveCount: 9 });
    one.send(2);
    const waits = [1, 2, 4, 8, 16, 32, 60, 60];
    for (const seconds of waits) {
      await one.deliver();
      expect(Math.ceil(one.waitsS())).toBe(seconds);
      await one.clock.advance(seconds * 1_000);
    }
    expect(one.memory.items().filter(({ PK }) => !String(PK).endsWith('HISTORY'))).toEqual([]);
    expect(one.telemetry.counted('MessagesOutOfOrder')).toBe(waits.length);
  });

  test('rejects an event whose predecessor did not come until the last receive, and names the missing number', async () => {
    const one = ordered();
    await one.setLast(4);
    const event = one.send(7);
    await one.drain();
    expect(one.row(event)).toMatchObject({
      status: 'REJECTED',
      reason: 'OUT_OF_ORDER',
      order: { sequence: 7 },
      lastError: expect.stringContaining('sequence 5 of its aggregate was not applied'),
    });
    expect(one.queue.deadLetters()).toHaveLength(1);
    expect(one.last()).toMatchObject({ last: 4 });
  });

  test('completes a superseded event without its handler, even if its payload is invalid', async () => {
    const one = ordered();
    await one.setLast(3);
    const event = one.send(2, { data: { n: 'no number' } });
    await one.drain();
    expect(one.applied).toEqual([]);
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED', supersededBy: 3, order: { sequence: 2 } });
    expect(one.telemetry.counted('MessagesSuperseded')).toBe(1);
    expect(one.telemetry.counted('MessagesProcessed')).toBe(0);
    expect(one.last()).toMatchObject({ last: 3 });
  });

  test('leaves a superseded event to the worker that holds it', async () => {
    const one = ordered();
    await one.setLast(3);
    const event = one.send(2);
    const held = { status: 'PROCESSING', fence: 'another', attempts: 1, leaseUntil: one.clock.now() + 9_000 };
    await one.memory.write({ Put: { Item: { ...one.keyOf(event), ...held, schema: 1 } } });
    await one.deliver();
    expect(one.row(event)).toMatchObject(held);
    expect(one.telemetry.counted('MessagesSuperseded')).toBe(0);
  });

  test('completes a superseded event that must run alone beside others, and removes its hint', async () => {
    const one = ordered();
    await one.setLast(3);
    const event = one.send(2);
    const failed = { status: 'FAILED', fence: 'f', attempts: 1, unfinished: 2, lastError: 'no result' };
    await one.memory.write({ Put: { Item: { ...one.keyOf(event), ...failed, schema: 1 } } });
    await one.memory.write({ Put: { Item: { ...failedKey(CONSUMER, event.eventId), schema: 1 } } });
    one.queue.receive();
    await one.clock.advance(60_000);
    await one.deliver();
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED', supersededBy: 3 });
    expect(one.memory.item(failedKey(CONSUMER, event.eventId))).toBeUndefined();
  });

  test('rejects another event under the last number; the same event again is a duplicate', async () => {
    const one = ordered();
    const first = one.send(1);
    await one.drain();
    one.queue.send(body(first));
    await one.drain();
    expect(one.telemetry.counted('MessagesDuplicate')).toBe(1);
    const other = one.send(1);
    await one.drain();
    expect(one.applied).toEqual([1]);
    expect(one.row(other)).toMatchObject({
      status: 'REJECTED',
      reason: 'SEQUENCE_REPEATED',
      order: { sequence: 1 },
      lastError: expect.stringContaining(first.eventId),
    });
  });

  test.each([[undefined], [0], [1.5], ['1']])('rejects an event whose sequence is %o', async (sequence) => {
    const one = ordered();
    const event = one.send(sequence);
    await one.drain();
    const lastError = expect.stringContaining('`sequence`');
    expect(one.row(event)).toMatchObject({ status: 'REJECTED', reason: 'UNREADABLE_MESSAGE', lastError });
    expect(one.applied).toEqual([]);
  });

  test.each([
    ['a long id', { aggregateId: 'é'.repeat(1_010) }, '2052 bytes'],
    ['a long aggregate type', { aggregateType: 'é'.repeat(400) }, '2428 bytes'],
    ['a torn id', { aggregateId: 'thing-\ud83d' }, 'half of a surrogate pair in its `aggregateId`'],
    ['a torn aggregate type', { aggregateType: '\ude00' }, 'half of a surrogate pair in its `aggregateType`'],
  ])('rejects an event with %s, which no key can have', async (_what, names, problem) => {
    const one = ordered();
    const event = one.send(1, names);
    await one.drain();
    expect(one.row(event)).toMatchObject({
      reason: 'UNREADABLE_MESSAGE',
      lastError: expect.stringContaining(problem),
    });
    expect(one.applied).toEqual([]);
  });

  test.each([
    ['block', 0],
    ['skip', 1],
  ] as const)('with onReject %s, a rejection leaves the last number at %i', async (onReject, last) => {
    const poisonous = transactional(Counted, async ({ sequence }) => {
      if (sequence === 1) throw new PoisonMessage('no');
      return {};
    });
    const one = ordered({ order: strict({ onReject }), maxReceives: 3 }, [poisonous]);
    const event = one.send(1);
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'REJECTED' });
    expect(one.last()?.last ?? 0).toBe(last);
    expect(one.last()?.eventId).toBeUndefined();
    const next = one.send(2);
    await one.drain();
    expect(one.row(next)).toMatchObject({ status: last === 1 ? 'PROCESSED' : 'REJECTED' });
    one.queue.redrive();
    await one.drain();
    expect(one.row(event)).toMatchObject(last === 1 ? { supersededBy: 2 } : { status: 'REJECTED' });
  });

  test('with onReject skip, a claimed message that is rejected is passed over', async () => {
    const poisonous = leased(Counted, async () => {
      throw new PoisonMessage('no');
    });
    const one = ordered({ order: strict({ onReject: 'skip' }), maxReceives: 3 }, [poisonous]);
    await one.setLast(4, { eventId: 'earlier' });
    one.send(5);
    await one.drain();
    expect(one.last()).toEqual({ ...one.key, last: 5, at: expect.any(Number), schema: 1 });
  });

  describe('with onReject skip, a rejection', () => {
    const poisonous = transactional(Counted, async () => {
      throw new PoisonMessage('no');
    });

    /** Number 5 is next, and the transactions that end it meet something. */
    async function rejecting(transact: (one: ReturnType<typeof ordered>, tries: number) => Promise<unknown>) {
      const one = ordered({ order: strict({ onReject: 'skip' }), maxReceives: 3 }, [poisonous]);
      await one.setLast(4);
      const event = one.send(5);
      const write = one.memory.transact.bind(one.memory);
      let tries = 0;
      vi.spyOn(one.memory, 'transact').mockImplementation(async (actions, token) => {
        tries += 1;
        await transact(one, tries);
        return write(actions, token);
      });
      const get = vi.spyOn(one.memory, 'get');
      await one.deliver();
      const looks = get.mock.calls.filter(([{ PK }]) => PK === one.key.PK).length;
      return { ...one, event, looks };
    }
    const cancelled = (code: string) =>
      new TransactionCancelled([{ code: 'None' }, { code }, { code: 'None' }]);

    test('looks again if the last number moves before its transaction', async () => {
      const { row, event, last, telemetry } = await rejecting(async (one, tries) => {
        if (tries === 1) await one.setLast(5, { eventId: 'skipped' });
      });
      expect(row(event)).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
      expect(last()).toMatchObject({ last: 5, eventId: 'skipped' });
      expect(telemetry.counted('TableFailures')).toBe(0);
    });

    test.each([
      ['three times at most', 'TransactionConflict', 1 + 3],
      ['not again if it was refused for another reason', 'ThrottlingError', 1 + 1],
    ])('looks %s', async (_what, code, looks) => {
      const outcome = await rejecting(async (_one, tries) => {
        if (tries <= 30) throw cancelled(code);
      });
      expect(outcome.looks).toBe(looks);
      expect(outcome.row(outcome.event)).toBeUndefined();
      expect(outcome.telemetry.counted('TableFailures')).toBe(1);
    });
  });

  test('with onReject skip, a message that is rejected for a gap is not passed over, nor is the gap', async () => {
    const one = ordered({ order: strict({ onReject: 'skip' }), maxReceives: 2 });
    const event = one.send(3);
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'REJECTED', reason: 'OUT_OF_ORDER' });
    expect(one.last()).toBeUndefined();
  });

  test.each([
    ['an earlier', 2],
    ['the last', 3],
  ])('absorbs %s event that is older than the retention of the inbox', async (_which, sequence) => {
    const one = ordered();
    await startedLongAgo(one.memory);
    const event = one.send(sequence);
    await one.setLast(3, { eventId: event.eventId });
    await one.clock.advance(40 * 86_400_000);
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED', supersededBy: 3 });
    expect(one.queue.deadLetters()).toEqual([]);
  });

  test('does not run an event that is older than the retention and next: it may have run before the order', async () => {
    const one = ordered();
    await startedLongAgo(one.memory);
    const event = one.send(1);
    await one.clock.advance(40 * 86_400_000);
    await one.drain();
    expect(one.applied).toEqual([]);
    expect(one.row(event)).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
  });

  test('the event of the last number is not rejected, although its row was deleted', async () => {
    const one = ordered();
    const first = one.send(1);
    await one.drain();
    await one.memory.write({ Delete: { Key: { ...one.keyOf(first) } } });
    one.queue.send(body(first));
    await one.drain();
    expect(one.row(first)).toMatchObject({ status: 'PROCESSED', supersededBy: 1 });
    expect(one.applied).toEqual([1]);
  });

  test.each([{ schema: 2 }, { last: '1' }, { last: 1.5 }, { last: -1 }])(
    'an unreadable last number, %o, is not changed, and counts no attempt',
    async (stored) => {
      const one = ordered();
      await one.setLast(0, stored);
      const before = one.last();
      const event = one.send(1);
      await one.deliver();
      expect(one.applied).toEqual([]);
      expect(one.row(event)).toBeUndefined();
      expect(one.last()).toEqual(before);
      expect(one.telemetry.counted('TableFailures')).toBe(1);
    },
  );

  test('an event that waited until its last receive is not passed over if its predecessor is applied meanwhile', async () => {
    const one = ordered({ order: strict({ onReject: 'skip' }), maxReceives: 1 });
    await one.setLast(1);
    const event = one.send(3);
    const get = one.memory.get.bind(one.memory);
    let isApplied = false;
    vi.spyOn(one.memory, 'get').mockImplementation(async (key, options) => {
      const item = await get(key, options);
      if (key.PK === one.key.PK && !isApplied) await one.setLast(2, { eventId: 'predecessor' });
      isApplied ||= key.PK === one.key.PK;
      return item;
    });
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'REJECTED', reason: 'OUT_OF_ORDER' });
    expect(one.last()).toMatchObject({ last: 2 });
  });

  test('an event without a sequence in its definition is not ordered, and costs no more', async () => {
    const one = ordered(STRICT, [transactional(ThingHappened, async () => ({}))]);
    const get = vi.spyOn(one.memory, 'get');
    const event = envelope(one);
    one.queue.send(body(event));
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED' });
    expect(one.row(event)).not.toHaveProperty('order');
    expect(get.mock.calls.map(([{ PK }]) => PK).filter((PK) => PK.startsWith('LAST#'))).toEqual([]);
  });
});

describe('a run that another event overtakes', () => {
  test.each(['transactional', 'leased', 'throws', 'returns'] as const)(
    '%s: writes nothing, and ends as superseded',
    async (kind) => {
      let raise = async (): Promise<unknown> => undefined;
      const seen: unknown[] = [];
      const run = vi.fn(async () => {
        await raise();
        return { writes: [domainRow] };
      });
      const handler = {
        transactional: transactional(Counted, run),
        leased: leased(Counted, async (_, ctx) => {
          const wanted = await run();
          await ctx.commit(wanted).catch((error: unknown) => seen.push(error));
          await ctx.commit({}).catch((error: unknown) => seen.push(error));
        }),
        throws: leased(Counted, async (_, ctx) => ctx.commit(await run())),
        returns: leased(Counted, run),
      }[kind];
      const one = ordered({ order: latest() }, [handler]);
      raise = () => one.setLast(9);
      const event = one.send(5);
      await one.drain();
      expect(run).toHaveBeenCalledTimes(1);
      expect(one.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeUndefined();
      expect(one.row(event)).toMatchObject({ status: 'PROCESSED', supersededBy: 9, attempts: 1 });
      expect(one.last()).toMatchObject({ last: 9 });
      expect(one.telemetry.counted('TableFailures')).toBe(0);
      expect(one.telemetry.counted('MessagesFailed')).toBe(0);
      if (kind === 'leased') expect(seen).toMatchObject([{ code: 'OUT_OF_ORDER' }, { code: 'OUT_OF_ORDER' }]);
    },
  );

  test('by an older event runs again on fresh reads', async () => {
    const reads: unknown[] = [];
    let raise = async (): Promise<unknown> => undefined;
    const handler = transactional(Counted, async () => {
      reads.push(1);
      if (reads.length === 1) await raise();
      return { writes: [domainRow] };
    });
    const one = ordered({ order: latest() }, [handler]);
    raise = () => one.setLast(4);
    const event = one.send(5);
    await one.deliver();
    expect(reads).toHaveLength(2);
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED' });
    expect(one.last()).toMatchObject({ last: 5, eventId: event.eventId });
  });

  test('by transactions that do not end is shown again after a second, and counts no attempt', async () => {
    const run = vi.fn(async () => ({ writes: [domainRow] }));
    const one = ordered({ order: latest() }, [transactional(Counted, run)]);
    const codes = ['None', 'TransactionConflict', 'None'];
    vi.spyOn(one.memory, 'transact').mockRejectedValue(
      new TransactionCancelled(codes.map((code) => ({ code }))),
    );
    const event = one.send(5);
    await one.deliver();
    expect(run).toHaveBeenCalledTimes(4);
    expect(Math.ceil(one.waitsS())).toBe(1);
    expect(one.row(event)).toBeUndefined();
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('does not run again with less than two seconds left', async () => {
    let raise = async (): Promise<unknown> => undefined;
    const run = vi.fn(async () => {
      await raise();
      return { writes: [domainRow] };
    });
    const one = ordered({ order: latest() }, [transactional(Counted, run)]);
    raise = async () => {
      await one.clock.sleep(28_500); // of the function's 30 s
      await one.setLast(4);
    };
    const event = one.send(5);
    await one.deliver();
    expect(run).toHaveBeenCalledTimes(1);
    expect(Math.ceil(one.waitsS())).toBe(1);
    expect(one.row(event)).toBeUndefined();
  });

  test('that has lost its message completes nothing, and raises no number', async () => {
    let take = async (): Promise<unknown> => undefined;
    const one = ordered(STRICT, [leased(Counted, () => take())]);
    const event = one.send(1);
    take = async () =>
      one.memory.write({ Put: { Item: { ...one.row(event), ...one.keyOf(event), fence: 'another' } } });
    await one.deliver();
    expect(one.row(event)).toMatchObject({ status: 'PROCESSING', fence: 'another' });
    expect(one.last()).toBeUndefined();
  });

  test('hides nothing of a condition of the handler that failed by itself', async () => {
    const handler = leased(Counted, async (_, ctx) => {
      await ctx.commit({ writes: [domainRow] });
    });
    const one = ordered(STRICT, [handler]);
    await one.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING', schema: 1 } } });
    const event = one.send(1);
    await one.deliver();
    expect(one.row(event)).toMatchObject({ status: 'FAILED', lastError: expect.stringContaining('1') });
    expect(one.last()).toBeUndefined();
  });
});

describe('latest', () => {
  test('applies a later event at once, and never an earlier one after it', async () => {
    const one = ordered({ order: latest() });
    one.send(3);
    await one.drain();
    const second = one.send(2);
    await one.drain();
    expect(one.applied).toEqual([3]);
    expect(one.row(second)).toMatchObject({ supersededBy: 3, order: { mode: 'latest' } });
  });

  test.each([{}, { order: latest({ group: 'others' }) }])(
    'of a handler shares its number in its own group at the consumer %o',
    async (ofConsumer) => {
      const handler = transactional(Counted, async () => ({}), { order: latest({ group: 'things' }) });
      const one = ordered(ofConsumer, [handler]);
      one.send(3);
      await one.drain();
      const key = lastKey({
        ...{ source: 'things', consumer: CONSUMER, group: 'things' },
        ...{ aggregateType: 'Thing', aggregateId: '1' },
      });
      expect(one.memory.item(key)).toMatchObject({ last: 3 });
    },
  );
});

test.each([
  [4, { status: 'discarded' }, 5],
  [3, { status: 'out-of-order', missing: 4 }, 3],
])('a formal rejection of number 5 after %i, which has no row, is %o', async (from, settled, last) => {
  const handler = transactional(Counted, async () => ({}), {
    rejected: async () => ({ writes: [domainRow] }),
  });
  const one = ordered(STRICT, [handler]);
  await one.setLast(from);
  const detail = envelope(one, { type: 'Counted', version: 1, sequence: 5 });
  const mailroomReject = { by: 'ada', reason: 'lost', body: JSON.stringify(body(detail)) };
  const answer = await one.handle({ mailroomReject } as never, lambdaContext({ clock: one.clock }));
  expect(answer).toMatchObject({ settled });
  expect(one.last()).toMatchObject({ last });
  expect(one.memory.item({ PK: 'THING#1', SK: 'THING' }) === undefined).toBe(from === 3);
});

test.each([
  [4, { sequence: 5 }, { status: 'resolved' }, 5],
  [3, { sequence: 5 }, { status: 'out-of-order', missing: 4 }, 3],
  [4, { sequence: 5, type: 'Another' }, { status: 'resolved' }, 4],
  [4, { sequence: 5, source: 'shelves' }, { status: 'resolved' }, 4],
  [4, { sequence: 5, aggregateId: '\ud83d' }, { status: 'resolved' }, 4],
  [4, { sequence: '5' }, { status: 'resolved' }, 4],
])(
  'after %i, a manual fix of a message without a row, of the event %o, is %o',
  async (from, of, settled, last) => {
    const one = ordered(STRICT);
    await one.setLast(from);
    const cause = { source: 'things', ...envelope(one, { type: 'Counted', version: 1, ...(of as object) }) };
    const mailroomCommit = {
      by: 'ada',
      reason: 'lost',
      eventId: cause.eventId,
      cause,
      writes: [],
      events: [],
    };
    const answer = await one.handle({ mailroomCommit } as never, lambdaContext({ clock: one.clock }));
    expect(answer).toMatchObject({ settled });
    expect(one.last()).toMatchObject({ last });
  },
);

describe('the last number counts among the 100 actions of a transaction', () => {
  const writes = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ Put: { Item: { PK: `THING#${n}`, SK: 'THING' } } }));

  test.each([
    [97, { status: 'resolved' }],
    [98, { status: 'refused', code: 'TRANSACTION_TOO_LARGE' }],
  ])('beside the row and its pointer: a manual fix of %i writes is %o', async (count, settled) => {
    const one = ordered(STRICT);
    const cause = { ...envelope(one, { type: 'Counted', version: 1, sequence: 1 }), source: 'things' };
    const mailroomCommit = {
      ...{ by: 'ada', reason: 'lost', eventId: cause.eventId, cause },
      ...{ writes: writes(count), events: [] },
    };
    const answer = await one.handle({ mailroomCommit } as never, lambdaContext({ clock: one.clock }));
    expect(answer).toMatchObject({ settled });
  });

  test.each([
    [98, undefined],
    [99, 'TRANSACTION_TOO_LARGE'],
  ])('beside the row: a commit of %i writes under a claim is refused as %o', async (count, code) => {
    const refusals: unknown[] = [];
    const handler = leased(Counted, (_, ctx) =>
      ctx.commit({ writes: writes(count) }).catch((error: unknown) => void refusals.push(error)),
    );
    const one = ordered(STRICT, [handler]);
    one.send(1);
    await one.deliver();
    expect(refusals).toMatchObject(code === undefined ? [] : [{ code }]);
  });
});

describe('createConsumer refuses', () => {
  test.each([
    [
      'a strict order without the last receive',
      'BAD_CONFIG',
      'MAILROOM_MAX_RECEIVES',
      () => ordered({ order: strict(), maxReceives: undefined }),
    ],
    [
      'a handler with its own order in a strict consumer',
      'BAD_CONSUMER',
      'consumer is strict',
      () => ordered(STRICT, [transactional(Counted, async () => ({}), { order: latest() })]),
    ],
    [
      'an order without a sequence',
      'BAD_CONSUMER',
      'sequence: true',
      () => ordered({}, [transactional(ThingHappened, async () => ({}), { order: latest() })]),
    ],
  ])('%s', (_what, code, part, make) => {
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringContaining(part) }));
  });
});

describe('a message whose consumer has lost its order', () => {
  async function rejectedInOrder(then: Parameters<typeof consumer>[3]) {
    const one = ordered();
    const event = one.send(5);
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'REJECTED', order: { mode: 'strict', sequence: 5 } });
    const handler = transactional(Counted, async () => {
      throw new PoisonMessage('not today');
    });
    const without = consumer(one, [handler], one.table, then);
    const settle = (more: object) =>
      resolveMessage(one, { consumer: CONSUMER, eventId: event.eventId, by: 'ada', reason: 'done', ...more });
    return { ...one, event, without, settle };
  }

  test('loses its place with its next claim, and can be resolved', async () => {
    const { event, queue, without, row, settle, last } = await rejectedInOrder({});
    queue.send(body(event));
    await without.drain();
    expect(row(event)).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
    expect(row(event)).not.toHaveProperty('order');
    expect(await settle({ effectsChecked: true })).toEqual({ status: 'resolved' });
    expect(last()).toBeUndefined();
  });

  test('loses its place when it is rejected without a claim', async () => {
    const { event, queue, without, row } = await rejectedInOrder({});
    queue.send(body({ ...event, version: 99 } as typeof event));
    await without.drain();
    expect(row(event)).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_VERSION' });
    expect(row(event)).not.toHaveProperty('order');
  });

  test.each([{}, { force: true, effectsChecked: true }])(
    'can be resolved before that, %o, because its place does not count',
    async (how) => {
      const { settle, last } = await rejectedInOrder({});
      expect(await settle(how)).toEqual({ status: 'out-of-order', missing: 1 });
      expect(await settle({ ...how, isStrict: false })).toEqual({ status: 'resolved' });
      expect(last()).toBeUndefined();
    },
  );

  test('can be resolved by its function, with a fix', async () => {
    const { event, without, clock, last } = await rejectedInOrder({});
    const mailroomCommit = {
      by: 'ada',
      reason: 'done',
      eventId: event.eventId,
      writes: [domainRow],
      events: [],
    };
    expect(await without.handle({ mailroomCommit } as never, lambdaContext({ clock }))).toMatchObject({
      settled: { status: 'resolved' },
    });
    expect(last()).toBeUndefined();
  });
});

describe('an event that is overtaken in its run', () => {
  test('starts no effect, also if its handler catches the refusal of its commit', async () => {
    const started = vi.fn(async () => 'undone');
    const caught: unknown[] = [];
    const one: ReturnType<typeof ordered> = ordered(STRICT, [
      leased(Counted, async (_event, ctx) => {
        await one.setLast(1);
        await ctx.commit({ writes: [domainRow] }).catch((error: unknown) => caught.push(error));
        await ctx.once('compensate', started).catch((error: unknown) => caught.push(error));
        await ctx.onceEach('ship', ['a'], started).catch((error: unknown) => caught.push(error));
      }),
    ]);
    const event = one.send(1);
    await one.drain();
    expect(started).not.toHaveBeenCalled();
    expect(caught).toHaveLength(3);
    expect(new Set(caught).size).toBe(1);
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED', supersededBy: 1, effects: {} });
  });

  test('reports the effects that it has left, and counts its lost lease', async () => {
    const one = ordered({ ...STRICT, maxReceives: 30 }, [
      leased(Counted, async (_event, ctx) => {
        await ctx.once('charge', async () => 'charged');
        await ctx.once('ship', async () => {
          throw nothingHappened(new Error('closed'));
        });
      }),
    ]);
    const event = one.send(1);
    await one.deliver();
    expect(one.row(event)).toMatchObject({ status: 'FAILED' });
    const row = one.memory.item(one.keyOf(event));
    await one.memory.write({
      Put: { Item: { ...row, status: 'PROCESSING', leaseUntil: 1, endsBy: 1 } as never },
    });
    await one.setLast(1);
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED', supersededBy: 1 });
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(1);
    expect(one.telemetry.counted('UnstableEffects')).toBe(0);
    expect(one.telemetry.counted('LeasesExpired')).toBe(1);
    const said = one.telemetry.lines().map(({ message }) => message);
    expect(said).toContain('A message is superseded whose effects have happened, or may have');
  });

  test('reports them although its function dies when it has ended the message', async () => {
    const one = ordered(STRICT, [
      leased(Counted, async (_event, ctx) => {
        await ctx.once('charge', async () => 'charged');
        throw new Error('not yet');
      }),
    ]);
    const event = one.send(1);
    await one.deliver();
    await one.setLast(1);
    const write = one.memory.write.bind(one.memory);
    vi.spyOn(one.memory, 'write').mockImplementation(async (made) => {
      const item = await write(made);
      if (one.row(event)?.status === 'PROCESSED') throw new Error('The function has died');
      return item;
    });
    await one.drain();
    expect(one.row(event)).toMatchObject({ status: 'PROCESSED', supersededBy: 1 });
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(1);
  });
});
