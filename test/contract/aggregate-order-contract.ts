import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import type { ClaimedEvent } from '../../lambdas/runtime/relay/database-transitions.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import type { QueueRig } from './database-queue-contract.ts';

const Placed = defineEvent({
  source: 'orders',
  type: 'Placed',
  version: 1,
  aggregateType: 'order',
  schema: z.object({ n: z.number() }),
});

/** The events of these names, each `<aggregate><number>`. */
export function eventsNamed(names: readonly string[], more: { readonly deliverAt?: number } = {}) {
  return names.map((name) =>
    Placed.create({ aggregateId: name.charAt(0), data: { n: Number(name.slice(1)) }, ...more }),
  );
}

/** The name of an event, from its envelope. */
export function nameIn(detail: string): string {
  const { aggregateId, data } = JSON.parse(detail);
  return `${aggregateId}${data.n}`;
}

/** The names of claimed events, sorted. */
export function namesOf(rows: readonly Pick<ClaimedEvent, 'entry'>[]): string[] {
  return rows.map(({ entry }) => nameIn(entry.detail)).toSorted();
}

const REFUSED = new MailroomError('MalformedDetail', 'Detail is malformed');

const ORDERED = { orderBy: 'aggregate' } as const;

/** The rules of a relay with `orderBy: 'aggregate'`, which every database must keep. */
export function aggregateOrderContract(start: () => Promise<QueueRig>): void {
  let rig: QueueRig;

  beforeAll(async () => {
    rig = await start();
  });
  beforeEach(() => rig.clear());
  afterAll(() => rig.close());

  const outbox = () => rig.outboxOf('orders');
  const relay = () => rig.transitions(ORDERED);
  const claimed = () => relay().claim(10, true);

  /** @returns the ids of events, by their names */
  async function commit(...names: string[]): Promise<Record<string, string>> {
    const written = await outbox().commit(async () => eventsNamed(names));
    return Object.fromEntries(names.map((name, n) => [name, written[n]?.eventId ?? '']));
  }

  const die = async (rows: readonly ClaimedEvent[]) => {
    for (const row of rows) await relay().failEvent({ ...row, attempts: 99 }, REFUSED, true);
  };

  describe('a claim in the order of aggregates', () => {
    test('takes the first event of each aggregate, and the next one once that is marked', async () => {
      const ids = await commit('a1', 'b1', 'a2', 'a3', 'b2');
      const first = await claimed();
      expect(namesOf(first)).toEqual(['a1', 'b1']);
      expect(namesOf(await claimed())).toEqual([]);
      expect(await rig.waiting()).toEqual({
        [String(ids.a2)]: ids.a1,
        [String(ids.a3)]: ids.a2,
        [String(ids.b2)]: ids.b1,
      });
      await relay().markPublished(first.filter(({ eventId }) => eventId === ids.a1));
      const second = await claimed();
      expect(namesOf(second)).toEqual(['a2']);
      await relay().markPublished([...first, ...second]);
      expect(namesOf(await claimed())).toEqual(['a3', 'b2']);
      expect(await rig.waiting()).toEqual({});
    });

    test('leaves an event behind one that is released, or whose lease has passed', async () => {
      await commit('a1', 'a2');
      await relay().release(await claimed(), 600_000, new Error('the bus is down'));
      expect(namesOf(await claimed())).toEqual([]);
      await rig.makeDue();
      expect(namesOf(await claimed())).toEqual(['a1']);
      await rig.makeDue();
      expect(namesOf(await claimed())).toEqual(['a1']);
    });

    test('holds up an aggregate behind a DEAD event, and no other one, until it is requeued and published', async () => {
      const ids = await commit('a1', 'a2', 'b1', 'b2');
      const first = await claimed();
      await die(first.filter(({ eventId }) => eventId === ids.a1));
      await relay().markPublished(first.filter(({ eventId }) => eventId === ids.b1));
      await rig.makeDue();
      expect(namesOf(await claimed())).toEqual(['b2']);
      expect(await rig.waiting()).toEqual({ [String(ids.a2)]: ids.a1 });
      await rig.operate('requeue', String(ids.a1));
      await rig.makeDue();
      const requeued = (await claimed()).filter(({ eventId }) => eventId === ids.a1);
      expect(namesOf(requeued)).toEqual(['a1']);
      await relay().markPublished(requeued);
      expect(namesOf(await claimed())).toEqual(['a2']);
    });

    test('takes the event behind a DEAD one that was discarded, or whose publication was seen late', async () => {
      const ids = await commit('a1', 'a2', 'b1', 'b2');
      const first = await claimed();
      await die(first);
      await rig.makeDue();
      expect(namesOf(await claimed())).toEqual([]);
      await rig.operate('discard', String(ids.a1));
      await relay().markPublished(first.filter(({ eventId }) => eventId === ids.b1));
      await rig.makeDue();
      expect(namesOf(await claimed())).toEqual(['a2', 'b2']);
    });

    test('leaves scheduled events out of the order', async () => {
      const scheduled = eventsNamed(['a1'], { deliverAt: Date.now() + 3_600_000 });
      const [event] = await outbox().commit(async () => [...scheduled, ...eventsNamed(['a2'])]);
      expect(namesOf(await claimed())).toEqual(['a2']);
      await commit('a3');
      await rig.transaction((tx) => outbox().cancel(tx, event?.eventId ?? ''));
      await rig.makeDue();
      expect(namesOf(await claimed())).toEqual(['a2']);
    });

    test('publishes late what commits after a later event was claimed, and holds up nothing permanently', async () => {
      let second: ClaimedEvent[] = [];
      await rig.transaction(async (tx) => {
        await outbox().write(tx, eventsNamed(['a1']));
        await commit('a2');
        second = await claimed();
      });
      await commit('a3');
      await relay().markPublished(second);
      const late = await claimed();
      await relay().markPublished(late);
      expect(namesOf(second)).toEqual(['a2']);
      expect(namesOf(late)).toContain('a1');
      expect(namesOf([...late, ...(await claimed())])).toEqual(['a1', 'a3']);
    });

    test('finds the events of other aggregates behind those that it puts off', async () => {
      await commit('a0');
      await commit(...Array.from({ length: 250 }, (_, n) => `a${n + 1}`), 'b1');
      expect(namesOf(await relay().claim(1, true))).toEqual(['a0']);
      expect(namesOf(await relay().claim(100, true))).toEqual(['b1']);
    });
  });

  test('three relays publish each aggregate in the order in which transactions that run one after another wrote it', async () => {
    const bus = memoryBus();
    const relays = [1, 2, 3].map(() => rig.relay(bus, ORDERED));
    const runs = relays.map((one) => one.run());
    const aggregates = ['a', 'b', 'c', 'd', 'e'];
    for (let n = 1; n <= 12; n += 1) await commit(...aggregates.map((id) => `${id}${n}`));
    await expect.poll(() => bus.published().length, { timeout: 120_000 }).toBeGreaterThanOrEqual(60);
    await Promise.all(relays.map((one) => one.stop()));
    await Promise.all(runs);
    const published = bus.published().map(({ detail }) => nameIn(detail));
    for (const id of aggregates) {
      const own = [...new Set(published.filter((name) => name.startsWith(id)))];
      expect(own).toEqual(Array.from({ length: 12 }, (_, n) => `${id}${n + 1}`));
    }
  });
}
