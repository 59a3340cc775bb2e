import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { INBOX_RETENTION_MAX_DAYS } from '../../../../lambdas/runtime/base/consumer-config.ts';
import { TransactionCancelled } from '../../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import {
  allowTooOld,
  discardMessage,
  resolveMessage,
} from '../../../../lambdas/runtime/operations/message-operations.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { inboxKey, rejectedKey } from '../../../../lambdas/runtime/store/keys.ts';
import { eventBridgeMessage } from '../../../../testing/index.ts';
import {
  consumerConfig,
  rig,
  runThrough,
  startedLongAgo,
  ThingHappened,
} from '../../../support/runtime-rig.ts';
import { staleReads } from '../../../support/stale-reads.ts';

const { consumer } = consumerConfig;

const note = { reason: 'charged by phone', by: 'ada' };

/** A message in the queue, and a consumer whose handler is counted. */
async function message(handle: () => Promise<void>, ageDays = 0) {
  const parts = rig();
  const [event] = await parts.outbox.commit({ events: [parts.happened(1)] });
  if (event === undefined) throw new Error('unreachable');
  const row = parts.rows()[0];
  if (row === undefined) throw new Error('unreachable');
  await parts.clock.advance(ageDays * 86_400_000);
  const publishedAt = parts.clock.now();
  parts.queue.send(
    eventBridgeMessage({
      id: '1',
      publishedAt,
      source: row.source,
      detailType: row.type,
      detail: row.envelope,
    }),
  );
  const consume = createConsumer({
    ...parts,
    table: parts.memory,
    config: { ...consumerConfig, maxAttempts: 1 },
    handlers: [leased(ThingHappened, handle)],
  });
  const deps = { table: parts.memory, clock: parts.clock };
  const key = inboxKey(consumer, event.eventId);
  return {
    ...parts,
    row: () => parts.memory.item(key),
    pointer: () => parts.memory.item(rejectedKey(consumer, event.eventId)),
    key,
    stale: { ...deps, table: staleReads(parts.memory) },
    eventId: event.eventId,
    deliver: () => runThrough(parts.clock, parts.queue.deliver(consume)),
    redrive: () => parts.queue.redrive(),
    resolve: (force = false, clockIsTrusted = true, effectsChecked = force) =>
      resolveMessage(
        { ...deps, clockIsTrusted },
        { ...note, consumer, eventId: event.eventId, force, effectsChecked },
      ),
    /** Writes the inbox row, as an operator might by hand. */
    put: (row: object) =>
      parts.memory.write({ Put: { Item: { ...key, schema: 1, fence: 'f', attempts: 1, ...row } } }),
    discard: (effectsChecked = false) =>
      discardMessage(deps, { ...note, consumer, eventId: event.eventId, effectsChecked }),
    allow: () => allowTooOld(deps, { ...note, consumer, eventId: event.eventId }),
  };
}

test('the row of an operator’s decision outlives every inbox retention', async () => {
  const { discard, row, clock } = await message(async () => {});
  await discard();
  const { expiresAt } = row() as { readonly expiresAt: number };
  expect(expiresAt * 1_000).toBeGreaterThan(clock.now() + INBOX_RETENTION_MAX_DAYS * 86_400_000);
});

describe('to resolve a message', () => {
  test('sets a rejected one PROCESSED, with operator and reason, and removes its pointer', async () => {
    const { deliver, resolve, row, pointer } = await message(async () => {
      throw new Error('never');
    });
    await deliver();
    expect(row()).toMatchObject({ status: 'REJECTED' });
    expect(pointer()).toBeDefined();
    expect(await resolve()).toEqual({ status: 'resolved' });
    expect(row()).toMatchObject({
      status: 'PROCESSED',
      resolvedBy: 'ada',
      resolvedReason: 'charged by phone',
    });
    expect(row()).toHaveProperty('expiresAt');
    expect(pointer()).toBeUndefined();
    expect(await resolve()).toMatchObject({ status: 'processed' });
  });

  test('before it comes: its handler is never run', async () => {
    let runs = 0;
    const { deliver, resolve, queue } = await message(async () => {
      runs += 1;
    });
    expect(await resolve()).toEqual({ status: 'resolved' });
    await deliver();
    expect(runs).toBe(0);
    expect(queue.messages()).toEqual([]);
  });

  test.each([
    ['that failed', { status: 'FAILED' }, false],
    ['whose lease ended long ago', { status: 'PROCESSING', leaseUntil: 1, endsBy: 1 }, false],
    ['that has not arrived yet, by force', undefined, true],
  ])('sets one PROCESSED %s', async (_which, found, force) => {
    const { memory, key, resolve, row } = await message(async () => {});
    const item = { ...key, schema: 1, fence: 'one', attempts: 1, ...found };
    if (found !== undefined) await memory.write({ Put: { Item: item } });
    expect(await resolve(force)).toEqual({ status: 'resolved' });
    const attempts = found === undefined ? 0 : 1;
    expect(row()).toMatchObject({ status: 'PROCESSED', resolvedBy: 'ada', attempts });
  });

  test('changes nothing if it should be resolved only before it comes', async () => {
    const { put, row, memory, clock, eventId } = await message(async () => {});
    await put({ status: 'FAILED' });
    const before = row();
    const settlement = { ...note, consumer, eventId, unlessReceived: true };
    const decision = await resolveMessage({ table: memory, clock }, settlement);
    expect(decision).toEqual({ status: 'received' });
    expect(row()).toEqual(before);
  });

  test('reports the status that a strongly consistent read finds', async () => {
    const { deliver, stale, eventId } = await message(async () => {});
    await deliver();
    expect(await resolveMessage(stale, { ...note, consumer, eventId })).toMatchObject({
      status: 'processed',
    });
  });

  test('is refused while a worker holds it, with the end of the lease', async () => {
    let verdict: unknown;
    const parts: Awaited<ReturnType<typeof message>> = await message(async () => {
      verdict = await parts.resolve();
    });
    const until = parts.clock.now() + consumerConfig.leaseMs + CLOCK_SKEW_MS;
    await parts.deliver();
    expect(verdict).toEqual({ status: 'leased', until });
    expect(parts.row()).toMatchObject({ status: 'PROCESSED' });
    expect(parts.row()).not.toHaveProperty('resolvedBy');
  });

  test('is refused until its lease has been over for as long as clocks may differ', async () => {
    const parts = await message(async () => {});
    const leaseUntil = parts.clock.now() + 30_000;
    await parts.put({ status: 'PROCESSING', leaseUntil });
    await parts.clock.advance(30_000 + CLOCK_SKEW_MS);
    expect(await parts.resolve()).toEqual({ status: 'leased', until: leaseUntil + CLOCK_SKEW_MS });
    expect(await parts.discard()).toEqual({ status: 'leased', until: leaseUntil + CLOCK_SKEW_MS });
    await parts.clock.advance(1);
    expect(await parts.resolve()).toEqual({ status: 'resolved' });
  });

  test('is granted for one that was left without a lease', async () => {
    const { put, row, resolve } = await message(async () => {});
    await put({ status: 'PROCESSING', unfinished: 2, outOfTime: true });
    expect(await resolve()).toEqual({ status: 'resolved' });
    expect(row()).toMatchObject({ status: 'PROCESSED', resolvedBy: 'ada' });
    for (const gone of ['unfinished', 'outOfTime']) expect(row()).not.toHaveProperty(gone);
  });

  test.each([
    ['a claim', { status: 'PROCESSING', fence: 'another', leaseUntil: 99_999 }],
    ['a renewal', { status: 'PROCESSING', leaseUntil: 99_999 }],
  ])('is refused when %s comes between the look and the write', async (_what, change) => {
    const parts = await message(async () => {});
    const until = parts.clock.now() + change.leaseUntil;
    await parts.put({ status: 'PROCESSING', leaseUntil: parts.clock.now() - 60_000 });
    const { get } = parts.memory;
    parts.memory.get = async (...args) => {
      parts.memory.get = get;
      const seen = await get(...args);
      await parts.put({ ...change, leaseUntil: until });
      return seen;
    };
    expect(await parts.resolve()).toEqual({ status: 'leased', until: until + CLOCK_SKEW_MS });
    expect(parts.row()).not.toHaveProperty('resolvedBy');
  });

  test('without a clock that can be trusted waits out the lease, and leaves a message whose worker renewed it', async () => {
    const parts = await message(async () => {});
    const held = { status: 'PROCESSING', claimedAt: 1_000, leaseUntil: 31_000 } as const;
    const resolve = () => runThrough(parts.clock, parts.resolve(false, false));
    await parts.put(held);
    const startedAt = parts.clock.now();
    expect(await resolve()).toEqual({ status: 'resolved' });
    expect(parts.clock.now() - startedAt).toBe(30_000);

    await parts.put(held);
    let renewals = 0;
    const renew = async (): Promise<void> => {
      await parts.clock.sleep(10_000);
      renewals += 1;
      await parts.put({ ...held, leaseUntil: 31_000 + renewals * 10_000 });
      return renew();
    };
    void renew();
    expect(await resolve()).toMatchObject({ status: 'leased' });
    expect(parts.row()).toMatchObject({ status: 'PROCESSING' });
  });

  test.each([
    ['longer than any function may run', { claimedAt: 1_000, leaseUntil: 90_000_000 }],
    ['that ends before its claim', { claimedAt: 60_000, leaseUntil: 31_000 }],
    ['without the time of its claim', { leaseUntil: 90_000_000 }],
  ])('without a clock that can be trusted waits 15 minutes for a lease %s', async (_what, lease) => {
    const parts = await message(async () => {});
    await parts.put({ status: 'PROCESSING', ...lease });
    const decided = vi.fn();
    void parts.resolve(false, false).then(decided);
    for (let minute = 1; minute < 15; minute += 1) await parts.clock.advance(60_000);
    expect(decided).not.toHaveBeenCalled();
    await parts.clock.advance(60_000);
    expect(decided).toHaveBeenCalledWith({ status: 'resolved' });
  });

  test('rejects with the reasons of its own writes, and without any with those of its transaction', async () => {
    const parts = await message(async () => {});
    const { eventId, memory, clock } = parts;
    const settlement = { ...note, consumer, eventId };
    const absent = { Key: { PK: 'THING#1', SK: 'THING' }, ConditionExpression: 'attribute_exists(PK)' };
    const writes = async () => [{ ConditionCheck: absent }];
    const deps = { table: memory, clock };
    await expect(resolveMessage(deps, { ...settlement, writes })).rejects.toMatchObject({
      reasons: [{ code: 'ConditionalCheckFailed' }],
    });
    const reasons = [{ code: 'None' }, { code: 'ThrottlingError' }];
    memory.transact = async () => Promise.reject(new TransactionCancelled(reasons));
    await expect(resolveMessage(deps, settlement)).rejects.toMatchObject({ reasons });
  });

  test.each([
    ['an unknown status', { status: 'PARKED' }, 'its "status" is "PARKED"', 'resolved'],
    ['no status', { status: undefined }, 'it has no "status"', 'resolved'],
    [
      'a lease that is not a time',
      { status: 'PROCESSING', leaseUntil: 'soon' },
      '"leaseUntil" is not a time',
      'resolved',
    ],
    ['a newer schema', { status: 'FAILED', schema: 2 }, 'its "schema" is 2', 'unreadable'],
  ])(
    'resolving a row with %s changes nothing without force, and never a newer row',
    async (_what, change, problem, forced) => {
      const { put, row, resolve, discard } = await message(async () => {});
      await put(change as object);
      const before = row();
      for (const decide of [resolve, discard])
        expect(await decide()).toEqual({ status: 'unreadable', problem: expect.stringContaining(problem) });
      expect(row()).toEqual(before);
      expect(await resolve(true)).toMatchObject({ status: forced });
    },
  );

  test.each<[string, object | undefined, object, object]>([
    ['its worker completed it', { status: 'PROCESSING' }, { status: 'PROCESSED' }, { status: 'processed' }],
    [
      'it came for the first time',
      undefined,
      { status: 'PROCESSING', leaseUntil: Date.UTC(2100, 0, 1) },
      { status: 'leased', until: Date.UTC(2100, 0, 1) + CLOCK_SKEW_MS },
    ],
    [
      'it failed once more',
      { status: 'FAILED' },
      { status: 'FAILED', fence: 'of another attempt at each look' },
      { status: 'leased' },
    ],
  ])('is refused when between each look and its write %s', async (_what, before, change, decided) => {
    const parts = await message(async () => {});
    if (before !== undefined) await parts.put(before);
    const { get } = parts.memory;
    let looks = 0;
    parts.memory.get = async (...args) => {
      const seen = await get(...args);
      looks += 1;
      const fence = 'fence' in change ? { fence: `${change.fence} ${looks}` } : {};
      await parts.put({ ...change, ...fence });
      return seen;
    };
    expect(await parts.resolve()).toMatchObject(decided);
    expect(looks).toBe('fence' in change ? 3 : 2);
    expect(parts.row()).toMatchObject({ status: (change as { status: string }).status });
    expect(parts.row()).not.toHaveProperty('resolvedBy');
  });

  test('resolving by force takes the message from its worker, which can then write nothing', async () => {
    let verdict: unknown;
    const parts: Awaited<ReturnType<typeof message>> = await message(async () => {
      verdict = await parts.resolve(true);
    });
    const { failed } = await parts.deliver();
    expect(verdict).toEqual({ status: 'resolved' });
    expect(parts.row()).toMatchObject({ status: 'PROCESSED', resolvedBy: 'ada' });
    expect(parts.telemetry.counted('FenceRefused')).toBe(1);
    expect(failed).toEqual([]);
  });
});

describe('to discard a message', () => {
  test('stores operator and reason, removes the pointer, and a redrive does not run it', async () => {
    let runs = 0;
    const { deliver, discard, redrive, row, pointer, queue } = await message(async () => {
      runs += 1;
      throw new Error('never');
    });
    for (let i = 0; i < 10 && queue.deadLetters().length === 0; i += 1) await deliver();
    expect(pointer()).toBeDefined();
    expect(await discard()).toMatchObject({ status: 'discarded' });
    expect(row()).toMatchObject({
      status: 'DISCARDED',
      discardedBy: 'ada',
      discardedReason: 'charged by phone',
      discardedAt: expect.any(Number),
      expiresAt: expect.any(Number),
    });
    expect(pointer()).toBeUndefined();
    expect(await discard()).toMatchObject({ status: 'discarded' });

    expect(redrive()).toBe(1);
    await deliver();
    expect(runs).toBe(1);
    expect(queue.messages()).toEqual([]);
  });

  test('is refused when it is processed, and while a worker holds it', async () => {
    let verdict: unknown;
    const parts: Awaited<ReturnType<typeof message>> = await message(async () => {
      verdict = await parts.discard();
    });
    const until = parts.clock.now() + consumerConfig.leaseMs + CLOCK_SKEW_MS;
    await parts.deliver();
    expect(verdict).toEqual({ status: 'leased', until });
    expect(await parts.discard()).toMatchObject({ status: 'processed' });
    expect(parts.row()).toMatchObject({ status: 'PROCESSED' });
    expect(parts.row()).not.toHaveProperty('discardedBy');
  });

  test('resolving a discarded message leaves it discarded', async () => {
    const { discard, resolve, row } = await message(async () => {});
    expect(await discard()).toMatchObject({ status: 'discarded' });
    expect(await resolve(true)).toMatchObject({ status: 'discarded' });
    expect(row()).toMatchObject({ status: 'DISCARDED' });
  });
});

describe('to allow a message that is too old', () => {
  test('lets it run when it is redriven, and not before', async () => {
    let runs = 0;
    const parts = await message(async () => {
      runs += 1;
    }, 36);
    const { deliver, allow, redrive, row, queue } = parts;
    await startedLongAgo(parts.memory);
    const untilDead = async () => {
      for (let i = 0; i < 10 && queue.deadLetters().length === 0; i += 1) await deliver();
    };
    await untilDead();
    expect(row()).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
    redrive();
    await untilDead();
    expect(runs).toBe(0);

    await allow();
    expect(row()).toMatchObject({ runAnyway: true, allowedBy: 'ada', allowedReason: 'charged by phone' });
    expect(runs).toBe(0);
    redrive();
    await deliver();
    expect(runs).toBe(1);
    expect(row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('is refused in any other state, which the error names', async () => {
    const { deliver, allow, row, stale, eventId } = await message(async () => {
      throw new Error('never');
    });
    await expect(allow()).rejects.toMatchObject({
      code: 'NOT_TOO_OLD',
      message: expect.stringContaining('has no row'),
    });
    await deliver();
    await expect(allow()).rejects.toMatchObject({
      code: 'NOT_TOO_OLD',
      message: expect.stringContaining('REJECTED, ATTEMPTS_EXHAUSTED'),
    });
    await expect(allowTooOld(stale, { ...note, consumer, eventId })).rejects.toThrow(
      'REJECTED, ATTEMPTS_EXHAUSTED',
    );
    expect(row()).not.toHaveProperty('runAnyway');
  });
});

describe('a message with a side effect that may have happened', () => {
  const stored = { fence: 'one', run: 1, endsBy: 1, startedAt: 1 };
  const found = { status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED' };

  test.each([
    ['completed', { status: 'COMPLETED', completedAt: 2 }],
    ['failed', { status: 'RELEASED', endedAt: 2, error: 'no answer' }],
    ['unknown', { status: 'IN_PROGRESS' }],
    ['running', { status: 'IN_PROGRESS', endsBy: Date.UTC(2100, 0, 1) }],
  ])('is neither resolved nor discarded until that is checked: %s', async (state, effect) => {
    const { put, row, resolve, discard, eventId } = await message(async () => {});
    await put({ ...found, effects: { charge: { ...stored, ...effect } } });
    const before = row();
    const refusal = {
      status: 'effects-unchecked',
      effects: [expect.objectContaining({ effect: 'charge', key: `${consumer}:${eventId}:charge`, state })],
    };
    expect(await resolve()).toEqual(refusal);
    expect(await resolve(true, true, false)).toEqual(refusal);
    expect(await discard()).toEqual(refusal);
    expect(row()).toEqual(before);
    expect(await discard(true)).toMatchObject({ status: 'discarded' });
  });

  test('is settled without a check if nothing happened', async () => {
    const { put, discard } = await message(async () => {});
    await put({ ...found, effects: { charge: { ...stored, status: 'RELEASED', nothingHappened: true } } });
    expect(await discard()).toMatchObject({ status: 'discarded' });
  });

  test('is not taken by force if the effect starts between the read and the write', async () => {
    const { put, row, eventId, memory, clock } = await message(async () => {});
    const held = { status: 'PROCESSING', leaseUntil: Date.UTC(2100, 0, 1) };
    await put({ ...held, effects: {} });
    const effects = { charge: { ...stored, status: 'IN_PROGRESS', endsBy: Date.UTC(2100, 0, 1) } };
    const table = {
      ...memory,
      get: async (...given: Parameters<typeof memory.get>) => {
        const read = await memory.get(...given);
        await put({ ...held, effects });
        return read;
      },
    };
    const wanted = { ...note, consumer, eventId, force: true };
    expect(await resolveMessage({ table, clock }, wanted)).toMatchObject({ status: 'effects-unchecked' });
    expect(row()).toMatchObject({ status: 'PROCESSING', effects });
  });
});
