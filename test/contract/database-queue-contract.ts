import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { defineEvent, type Envelope, type EventDraft } from '../../lambdas/runtime/events/event.ts';
import type { MetricName } from '../../lambdas/runtime/observe/telemetry.ts';
import type { DatabaseRelayConfig } from '../../lambdas/runtime/relay/database-config.ts';
import type { DatabaseRelay } from '../../lambdas/runtime/relay/database-relay.ts';
import type { ClaimedEvent, DatabaseTransitions } from '../../lambdas/runtime/relay/database-transitions.ts';
import { poll } from '../../localstack/health.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import type { MemoryTelemetry } from '../../testing/memory-telemetry.ts';

/** An event of its own aggregate. */
const Placed = defineEvent({
  source: 'orders',
  type: 'Placed',
  version: 1,
  aggregateType: 'order',
  schema: z.object({ n: z.number(), note: z.string().optional() }),
});

export const QUEUE_PRODUCER = { service: 'orders', tableName: 'Mailroom', publishes: ['Placed'] };

function placed(n: number, more: { readonly deliverAt?: number; readonly note?: string } = {}) {
  const { note, ...rest } = more;
  return Placed.create({ aggregateId: String(n), data: { n, note }, ...rest });
}

/** The outbox of a database, of one service. */
interface QueueOutbox {
  commit(run: () => Promise<readonly EventDraft[]>): Promise<readonly Envelope[]>;
  /** Writes events in a transaction of the caller. */
  write(tx: unknown, events: readonly EventDraft[]): Promise<readonly Envelope[]>;
  cancel(tx: unknown, eventId: string): Promise<'cancelled' | 'too-late'>;
}

/** A row of the queue. */
interface QueueRow {
  readonly eventId: string;
  readonly isHeld: boolean;
  readonly attempts: number;
  readonly lastError: string | null;
  readonly dueInMs: number;
}

/** A database with the tables of the outbox, as these tests use it. */
export interface QueueRig {
  outboxOf(service: string): QueueOutbox;
  transaction<T>(run: (tx: unknown) => Promise<T>): Promise<T>;
  transitions(settings?: Partial<DatabaseRelayConfig>): DatabaseTransitions;
  relay(bus: Bus, settings?: Partial<DatabaseRelayConfig>): DatabaseRelay;
  /** Rows of the queue, in the order of their ids. */
  queue(): Promise<QueueRow[]>;
  /** The tables in which an event is, sorted. */
  tablesOf(eventId: string): Promise<string[]>;
  /** The stored envelope of an event. */
  envelopeOf(eventId: string): Promise<string | undefined>;
  /** Makes every event in the queue due now, as if time had passed. */
  makeDue(): Promise<void>;
  /** The events that are put off, each with the one of its aggregate that it waits for. */
  waiting(): Promise<Record<string, string>>;
  /** An operator's change of a DEAD event. */
  operate(change: 'requeue' | 'discard', eventId: string): Promise<void>;
  /** Makes the rows of a table older. */
  age(table: 'published' | 'cancelled', days: number): Promise<void>;
  /** Deletes what is older than its retention, and returns the gauges. */
  care(settings?: Partial<DatabaseRelayConfig>): Promise<MemoryTelemetry>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

const REFUSED = new MailroomError('MalformedDetail', 'Detail is malformed');

/** The rules of the outbox and of a relay's transitions, which every database must keep. */
export function queueContract(start: () => Promise<QueueRig>): void {
  let rig: QueueRig;
  let outbox: QueueOutbox;

  beforeAll(async () => {
    rig = await start();
    outbox = rig.outboxOf('orders');
  });
  beforeEach(() => rig.clear());
  afterAll(() => rig.close());

  const commit = async (...ns: number[]) =>
    (await outbox.commit(async () => ns.map((n) => placed(n)))).map(({ eventId }) => eventId);
  const schedule = async (deliverAt: number) =>
    (await outbox.commit(async () => [placed(1, { deliverAt })])).map(({ eventId }) => eventId)[0] ?? '';
  const cancel = (eventId: string, service = 'orders') =>
    rig.transaction((tx) => rig.outboxOf(service).cancel(tx, eventId));
  const only = ([row]: readonly ClaimedEvent[]) => row as ClaimedEvent;
  const idsOf = (rows: readonly { readonly eventId: string }[]) =>
    rows.map(({ eventId }) => eventId).toSorted();

  /** Claims one event, lets the lease pass, and lets another relay claim it. */
  const takenOver = async () => {
    await commit(1);
    const stale = only(await rig.transitions().claim(1));
    await rig.makeDue();
    return { stale, held: only(await rig.transitions().claim(1)) };
  };

  describe('the outbox of a database', () => {
    test('writes an event in the transaction of its caller, or nothing', async () => {
      const error = new Error('no');
      const failed = rig.transaction(async (tx) => {
        await outbox.write(tx, [placed(1)]);
        throw error;
      });
      await expect(failed).rejects.toBe(error);
      expect(await rig.queue()).toEqual([]);
      const [event] = await rig.transaction((tx) => outbox.write(tx, [placed(2)]));
      expect(await rig.tablesOf(event?.eventId ?? '')).toEqual(['event', 'pending']);
    });

    test('stores an envelope byte for byte', async () => {
      const note = `quote " ' backslash \\ nul \u0000 line\u2028 €𝄞 lone \ud800 %_?`;
      const [event] = await outbox.commit(async () => [placed(1, { note })]);
      expect(await rig.envelopeOf(event?.eventId ?? '')).toBe(JSON.stringify(event));
      const [claimed] = await rig.transitions().claim(1);
      expect(claimed?.entry.detail).toBe(JSON.stringify(event));
    });

    test('commits a transaction without events', async () => {
      expect(await outbox.commit(async () => [])).toEqual([]);
    });

    test('writes many large events in one transaction', async () => {
      const note = 'x'.repeat(400_000);
      await outbox.commit(async () => [1, 2, 3, 4, 5].map((n) => placed(n, { note })));
      expect(await rig.queue()).toHaveLength(5);
    });
  });

  describe('a claim', () => {
    test('holds the events that have been due the longest, with their envelopes', async () => {
      const [[first], [second]] = [await commit(1), await commit(2)];
      const before = Date.now();
      const claimed = await rig.transitions().claim(1);
      expect(idsOf(claimed)).toEqual([first]);
      expect(only(claimed).leaseUntil).toBeGreaterThanOrEqual(before + 30_000);
      expect(only(claimed).entry).toMatchObject({ source: 'orders', detailType: 'Placed' });
      const [held, free] = await rig.queue();
      expect([held, free]).toMatchObject([
        { eventId: first, isHeld: true },
        { eventId: second, isHeld: false },
      ]);
      // On the database's clock, the lease ends no earlier than the relay believes.
      expect(Number(held?.dueInMs) + Date.now()).toBeGreaterThanOrEqual(only(claimed).leaseUntil - 1_000);
    });

    test('leaves leased and scheduled events alone', async () => {
      await schedule(Date.now() + 3_600_000);
      await commit(1);
      expect(await rig.transitions().claim(10)).toHaveLength(1);
      expect(await rig.transitions().claim(10)).toEqual([]);
      expect(await rig.transitions().claim(0)).toEqual([]);
    });

    test('takes over an event whose lease has ended, under another fence', async () => {
      const { stale, held } = await takenOver();
      expect(held.eventId).toBe(stale.eventId);
      expect(held.fence).not.toBe(stale.fence);
    });

    test('reads 8 MB of envelopes, and leaves the rest of its group unread', async () => {
      const note = 'x'.repeat(900_000);
      const events = Array.from({ length: 12 }, (_, n) => placed(n, { note }));
      for (const event of events) await outbox.commit(async () => [event]);
      const claimed = await rig.transitions().claim(12);
      const read = claimed.filter(({ unread }) => unread === undefined);
      expect(read).toHaveLength(9);
      expect(read.every(({ entry }) => entry.detail.length > 900_000)).toBe(true);
      const left = claimed.filter(({ unread }) => unread === 'later');
      expect(left.map(({ entry }) => entry.detail)).toEqual(['', '', '']);
    });

    test('never shares an event with another claim', async () => {
      const ids = await commit(...Array.from({ length: 60 }, (_, n) => n));
      const claims = await Promise.all(Array.from({ length: 12 }, () => rig.transitions().claim(5)));
      const rest = await rig.transitions().claim(100);
      expect(idsOf([...claims.flat(), ...rest])).toEqual(ids.toSorted());
    });

    test('finds an event that was committed after later ones were published', async () => {
      let late: readonly Envelope[] = [];
      await rig.transaction(async (tx) => {
        late = await outbox.write(tx, [placed(1)]);
        await commit(2, 3);
        await rig.transitions().markPublished(await rig.transitions().claim(10));
      });
      expect(idsOf(await rig.transitions().claim(10))).toEqual(idsOf(late));
    });
  });

  describe('a mark', () => {
    test('publishes events under any claim, once', async () => {
      const { stale, held } = await takenOver();
      expect(await rig.transitions().markPublished([stale])).toEqual([]);
      expect(await rig.tablesOf(stale.eventId)).toEqual(['event', 'published']);
      expect(await rig.transitions().markPublished([held])).toEqual([]);
      expect(await rig.tablesOf(stale.eventId)).toEqual(['event', 'published']);
    });

    test('publishes an event that became DEAD meanwhile', async () => {
      const { stale, held } = await takenOver();
      await rig.transitions().failEvent(held, REFUSED, true);
      expect(await rig.tablesOf(held.eventId)).toEqual(['dead', 'event']);
      expect(await rig.transitions().markPublished([stale])).toEqual([]);
      expect(await rig.tablesOf(held.eventId)).toEqual(['event', 'published']);
    });

    test('of the same events at the same time ends, in whatever order they are given', async () => {
      await commit(...Array.from({ length: 50 }, (_, n) => n));
      const rows = await rig.transitions().claim(100);
      const marks = [rows, rows.toReversed(), rows, rows.toReversed()];
      for (const left of await Promise.all(marks.map((some) => rig.transitions().markPublished(some))))
        expect(left).toEqual([]);
      expect(await rig.queue()).toEqual([]);
    });
  });

  describe('a failure', () => {
    test('counts an attempt and waits longer each time, until the event is DEAD', async () => {
      await commit(1);
      for (const attempts of [1, 2]) {
        await rig.makeDue();
        const relay = rig.transitions();
        await relay.failEvent(only(await relay.claim(1)), REFUSED, false);
        const [row] = await rig.queue();
        expect(row).toMatchObject({ isHeld: false, attempts, lastError: 'Detail is malformed' });
        expect(row?.dueInMs).toBeGreaterThan(0);
      }
      await rig.makeDue();
      const last = only(await rig.transitions().claim(1));
      await rig.transitions().failEvent(last, REFUSED, false);
      expect(await rig.tablesOf(last.eventId)).toEqual(['dead', 'event']);
    });

    test('of a relay whose lease has passed changes nothing', async () => {
      const { stale } = await takenOver();
      const relay = rig.transitions();
      await relay.failEvent(stale, REFUSED, true);
      await relay.failEvent(stale, REFUSED, false);
      await relay.release([stale], 0, new Error('bus is down'));
      expect(await relay.renew(stale)).toBeUndefined();
      expect(await rig.queue()).toMatchObject([{ isHeld: true, attempts: 0, lastError: null }]);
    });
  });

  test('a release counts no attempt, keeps the last error, and spreads events over the second half of its time', async () => {
    await commit(...Array.from({ length: 20 }, (_, n) => n));
    const relay = rig.transitions();
    await relay.release(await relay.claim(20), 600_000, new Error('bus is down'));
    const rows = await rig.queue();
    expect(rows).toHaveLength(20);
    for (const row of rows) {
      expect(row).toMatchObject({ isHeld: false, attempts: 0, lastError: 'bus is down' });
      expect(row.dueInMs).toBeGreaterThan(200_000);
      expect(row.dueInMs).toBeLessThanOrEqual(600_000);
    }
    expect(new Set(rows.map(({ dueInMs }) => Math.round(dueInMs / 1_000))).size).toBeGreaterThan(5);
    await rig.makeDue();
    await relay.release(await relay.claim(20), 0);
    expect((await rig.queue()).every(({ lastError }) => lastError === 'bus is down')).toBe(true);
  });

  test('a renewed lease begins again', async () => {
    await commit(1);
    const relay = rig.transitions();
    const held = only(await relay.claim(1));
    await rig.makeDue();
    const renewed = await relay.renew(held);
    expect(renewed?.leaseUntil).toBeGreaterThanOrEqual(held.leaseUntil);
    expect(await rig.transitions().claim(1)).toEqual([]);
  });

  describe('a cancellation', () => {
    test('of a scheduled event keeps it from ever being published', async () => {
      const eventId = await schedule(Date.now() + 60_000);
      expect(await cancel(eventId)).toBe('cancelled');
      expect(await cancel(eventId)).toBe('cancelled');
      expect(await rig.tablesOf(eventId)).toEqual(['cancelled', 'event']);
      expect(await rig.queue()).toEqual([]);
    });

    test('that is rolled back cancels nothing', async () => {
      const eventId = await schedule(Date.now() + 60_000);
      const failed = rig.transaction(async (tx) => {
        await outbox.cancel(tx, eventId);
        throw new Error('no');
      });
      await expect(failed).rejects.toThrow('no');
      expect(await rig.tablesOf(eventId)).toEqual(['event', 'pending']);
    });

    test('of an ordinary, a released and an unknown event, and of one of another service, is too late', async () => {
      const [ordinary = ''] = await commit(1);
      expect(await cancel(ordinary)).toBe('too-late');
      expect(await cancel('01a1fba6-4458-7a41-9c37-3f5d2b8e1103')).toBe('too-late');
      const eventId = await schedule(Date.now() + 60_000);
      expect(await cancel(eventId, 'payments')).toBe('too-late');
      await cancel(eventId);
      expect(await cancel(eventId, 'payments')).toBe('too-late');
      const relay = rig.transitions();
      const taken = await schedule(Date.now() + 10);
      const rows = await poll(60_000, async () => {
        const claimed = await relay.claim(10);
        return claimed.some((row) => row.eventId === taken) ? claimed : undefined;
      });
      expect(await cancel(taken)).toBe('too-late');
      await relay.release(rows ?? [], 60_000);
      expect(await cancel(taken)).toBe('too-late');
    });

    test('and a claim at the same time: one of them takes the event', async () => {
      const deliverAt = Date.now() + 200;
      const ids = await Promise.all(Array.from({ length: 30 }, () => schedule(deliverAt)));
      await poll(60_000, async () => (await rig.queue()).every(({ dueInMs }) => dueInMs < 0) || undefined);
      const relay = rig.transitions();
      const claims = async () => {
        const claimed: ClaimedEvent[] = [];
        for (let n = 0; n < ids.length; n += 1) claimed.push(...(await relay.claim(1)));
        return claimed;
      };
      const [answers, ...claimed] = await Promise.all([
        Promise.all(ids.map((id) => cancel(id))),
        claims(),
        claims(),
      ]);
      claimed.push(await relay.claim(100));
      const cancelled = ids.filter((_, n) => answers[n] === 'cancelled');
      expect([...idsOf(claimed.flat()), ...cancelled].toSorted()).toEqual(ids.toSorted());
    });
  });

  describe('a relay', () => {
    test('publishes and marks every event that is due', async () => {
      const ids = await commit(...Array.from({ length: 250 }, (_, n) => n));
      const bus = memoryBus();
      expect(await rig.relay(bus).pass()).toEqual({ claimed: 250, published: 250, failed: false });
      expect(
        bus
          .published()
          .map(({ detail }) => JSON.parse(detail).eventId)
          .toSorted(),
      ).toEqual(ids.toSorted());
      expect(await rig.queue()).toEqual([]);
    });

    test('releases what the bus did not accept, and makes DEAD what it refuses', async () => {
      await commit(1, 2);
      const down = memoryBus({ failCall: () => ({ error: new Error('bus is down') }) });
      expect(await rig.relay(down).pass()).toMatchObject({ claimed: 2, published: 0 });
      expect(await rig.queue()).toMatchObject(
        [1, 2].map(() => ({ isHeld: false, attempts: 0, lastError: 'bus is down' })),
      );
      await rig.makeDue();
      const refusing = memoryBus({
        failEntry: ({ detail }) =>
          JSON.parse(detail).data.n === 1
            ? { code: 'MalformedDetail', message: 'Detail is malformed.' }
            : undefined,
      });
      expect(await rig.relay(refusing).pass()).toMatchObject({ claimed: 2, published: 1 });
      const [dead] = refusing.published();
      expect(dead).toBeDefined();
    });

    test('leaves events of undeclared sources in the queue', async () => {
      const [id = ''] = await commit(1);
      const bus = memoryBus();
      expect(await rig.relay(bus, { sources: ['payments'] }).pass()).toMatchObject({
        claimed: 1,
        published: 0,
      });
      expect(bus.published()).toEqual([]);
      expect(await rig.tablesOf(id)).toEqual(['event', 'pending']);
    });
  });

  describe('the care of the tables', () => {
    test('deletes events after their retention, unless they wait', async () => {
      const [published = '', recent = ''] = await commit(1, 2);
      const relay = rig.transitions();
      const rows = await relay.claim(10);
      await relay.markPublished(rows.filter(({ eventId }) => eventId === published));
      await rig.age('published', 8);
      await relay.markPublished(rows.filter(({ eventId }) => eventId === recent));
      const cancelled = await schedule(Date.now() + 60_000);
      await cancel(cancelled);
      await rig.age('cancelled', 8);
      expect((await rig.care()).lines()).toEqual([]);
      expect(await Promise.all([published, recent, cancelled].map(rig.tablesOf))).toEqual([
        [],
        ['event', 'published'],
        [],
      ]);
    });

    test('counts the events that wait, those of undeclared sources, and those that are DEAD', async () => {
      await schedule(Date.now() + 3_600_000);
      await commit(1, 2, 3);
      const relay = rig.transitions();
      await relay.failEvent(only(await relay.claim(1)), REFUSED, true);
      const telemetry = await rig.care();
      expect(
        ['PendingEvents', 'UndeclaredEvents', 'DeadEvents'].map((name) =>
          telemetry.counted(name as MetricName),
        ),
      ).toEqual([2, 0, 1]);
      expect((await rig.care({ sources: ['payments'] })).counted('UndeclaredEvents')).toBe(2);
    });
  });
}
