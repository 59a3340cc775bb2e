import { describe, expect, test } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { LINE_MAX_MS } from '../../../../lambdas/runtime/inbox/limit-bucket.ts';
import { inboxKey, type LimitOf, limitKey } from '../../../../lambdas/runtime/store/keys.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, inboxRow, send } from './consumer-rig.ts';

const LIMIT: LimitOf = { consumer: CONSUMER, source: 'things', type: 'ThingHappened' };
const BUCKET = limitKey(LIMIT, 'm');

interface Given {
  /** Runs at the start of the handler. @default nothing */
  readonly atStart?: () => void;
  /** @default 0.1 */
  readonly perSecond?: number;
  /** The handler runs until its function stops. @default false */
  readonly hangs?: boolean;
}

/** A consumer with a limit, whose table answers the next successful writes of the bucket late. */
function limited({ perSecond = 0.1, hangs = false, atStart }: Given = {}) {
  const slowMs: number[] = [];
  const parts = rig({
    wrap: (memory) => ({
      ...memory,
      write: async (write) => {
        const item = await memory.write(write);
        const late = JSON.stringify(write).includes('nextAt') ? slowMs.shift() : undefined;
        if (late !== undefined) await parts.clock.sleep(late);
        return item;
      },
    }),
  });
  const ran: number[] = [];
  const handler = leased(
    ThingHappened,
    async (_event, { signal }) => {
      ran.push(parts.clock.now());
      atStart?.();
      if (hangs) await parts.clock.sleep(1_000_000, signal).catch(() => {});
    },
    { limit: { key: () => 'm', perSecond } },
  );
  const put = (bucket: { readonly nextAt: number; readonly lineUntil?: number }) =>
    parts.memory.write({
      Put: { Item: { ...BUCKET, schema: 1, everyMs: 10_000, burstMs: 0, ...bucket } },
    });
  return { ...parts, ...consumer(parts, [handler]), parts, ran, slowMs, put };
}

type Limited = ReturnType<typeof limited>;

const slotOf = (one: Limited, event: Parameters<typeof inboxRow>[1]): number =>
  Number(inboxRow(one.parts, event)?.pastAttempts?.at(-1)?.wait?.limit?.slotAt);

/** A message that has a slot in 20 seconds. */
async function withSlot(one: Limited) {
  await one.put({ nextAt: one.clock.now() + 20_000 });
  const event = send(one.parts);
  await one.deliver();
  const slotAt = slotOf(one, event);
  expect(slotAt).toBeGreaterThan(one.clock.now());
  return { event, slotAt };
}

describe('a message with a slot', () => {
  test('waits in its function for a token that is free some seconds after its slot: it does not go to the end of the line', async () => {
    const one = limited();
    const { event, slotAt } = await withSlot(one);
    await one.clock.advance(slotAt - one.clock.now());
    // Its predecessor took its token 6 seconds late.
    await one.put({ nextAt: slotAt + 6_000, lineUntil: slotAt + 3_600_000 });
    await one.clock.advance(1_000);
    await one.deliver();
    expect(inboxRow(one.parts, event)?.status).toBe('PROCESSED');
    expect(one.ran[0]).toBeGreaterThanOrEqual(slotAt + 6_000);
  });

  test('keeps it, and is before newcomers, if the line is too long to join', async () => {
    const one = limited();
    const { event, slotAt } = await withSlot(one);
    await one.clock.advance(slotAt - one.clock.now() + 1_000);
    await one.put({
      nextAt: one.clock.now() + 60_000,
      lineUntil: one.clock.now() + LINE_MAX_MS + 60_000,
    });
    await one.deliver();
    const row = inboxRow(one.parts, event);
    expect(row).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(Number(row?.retryAt) - one.clock.now()).toBeGreaterThan(LINE_MAX_MS / 2 - 1_000);
    expect(slotOf(one, event)).toBe(slotAt);
  });

  test('keeps it if it comes a little before it, to a function with little time', async () => {
    const one = limited();
    const { event, slotAt } = await withSlot(one);
    const before = one.memory.item(BUCKET);
    const body = one.queue.messages()[0]?.body ?? '';
    await one.clock.advance(slotAt - 1_500 - one.clock.now());
    one.queue.send(JSON.parse(body)); // a duplicate
    await one.deliver(3_000);
    expect(one.memory.item(BUCKET)).toEqual(before);
    expect(slotOf(one, event)).toBe(slotAt);
  });
});

describe('a table that answers late', () => {
  test('three late tokens are an outage, and the message keeps its slot', async () => {
    const one = limited({ perSecond: 10 });
    const { event, slotAt } = await withSlot(one);
    await one.clock.advance(slotAt - one.clock.now() + 1_000);
    one.slowMs.push(5_000, 5_000, 5_000);
    await one.put({ nextAt: one.clock.now() - 60_000 });
    const failures = one.telemetry.counted('TableFailures');
    await one.deliver(120_000);
    expect(one.ran).toEqual([]);
    expect(one.telemetry.counted('TableFailures')).toBe(failures + 1);
    const row = inboxRow(one.parts, event);
    expect(row).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(Number(row?.retryAt) - one.clock.now()).toBeGreaterThan(40_000);
    expect(slotOf(one, event)).toBe(slotAt);
  });

  test('a handler does not start with less than two seconds left: no attempt, no run', async () => {
    const one = limited();
    one.slowMs.push(1_900);
    const event = send(one.parts);
    await one.deliver(3_500);
    expect(one.ran).toEqual([]);
    expect(inboxRow(one.parts, event)).toMatchObject({
      status: 'FAILED',
      attempts: 0,
      lastError: expect.stringContaining('too little time left'),
    });
    expect(one.telemetry.counted('TableFailures')).toBe(1);
  });

  test('the time of slow tokens is not counted against a handler that runs out of time', async () => {
    const one = limited({ perSecond: 10, hangs: true });
    one.slowMs.push(3_000);
    const event = send(one.parts);
    await one.deliver();
    expect(one.ran).toHaveLength(1);
    expect(inboxRow(one.parts, event)).toMatchObject({ outOfTime: true });
    expect(one.telemetry.counted('TableFailures')).toBe(1);
  });

  test('the time of an intended wait is: a handler that hangs is not one that a table delayed', async () => {
    const one = limited({ hangs: true });
    const { event, slotAt } = await withSlot(one);
    await one.clock.advance(slotAt - one.clock.now());
    await one.put({ nextAt: slotAt + 7_000 });
    await one.clock.advance(1_000);
    await one.deliver();
    expect(one.ran).toHaveLength(1);
    expect(inboxRow(one.parts, event)).toMatchObject({ outOfTime: true });
    expect(one.telemetry.counted('TableFailures')).toBe(0);
  });
});

describe('a lease that passes in the wait for a token', () => {
  test('is renewed before the handler starts, if half of it has passed', async () => {
    const leases: number[] = [];
    const one = limited({
      perSecond: 10,
      atStart: () => leases.push(Number(inboxRow(one.parts, event)?.leaseUntil) - one.clock.now()),
    });
    const event = send(one.parts);
    one.slowMs.push(20_000);
    await one.deliver(120_000);
    expect(leases).toEqual([30_000]);
  });

  test('has passed, and another worker has the message: the handler does not start', async () => {
    const one = limited({ perSecond: 10 });
    const event = send(one.parts);
    one.slowMs.push(35_000);
    const delivered = one.deliver(120_000);
    await one.clock.advance(1);
    const key = inboxKey(CONSUMER, event.eventId);
    await one.memory.write({ Put: { Item: { ...one.memory.item(key), ...key, fence: 'another worker' } } });
    await delivered;
    expect(one.ran).toEqual([]);
    expect(inboxRow(one.parts, event)).toMatchObject({ status: 'PROCESSING', fence: 'another worker' });
    expect(one.telemetry.counted('FenceRefused')).toBe(1);
  });
});
