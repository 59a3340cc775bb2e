import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../lambdas/runtime/store/postgres/relay-transitions.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';
import { Placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('aggregate-order');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

const parts = () => ({
  config: { ...relayConfig(), orderBy: 'aggregate' as const },
  clock: systemClock,
  random: systemRandomBytes,
  telemetry: memoryTelemetry(),
});
const relayOn = (database: Sql = rig.database) => postgresTransitions({ ...parts(), database });

const of = (aggregateId: string, n: number, more: { readonly deliverAt?: number } = {}) =>
  Placed.create({ aggregateId, data: { n }, ...more });

/** Commits events of aggregates, each as `<aggregate><number>`. @returns their ids, by these names */
async function commit(...names: string[]): Promise<Record<string, string>> {
  const drafts = names.map((name) => of(name.charAt(0), Number(name.slice(1))));
  const written = await rig.outbox.commit(async () => drafts);
  return Object.fromEntries(names.map((name, index) => [name, written[index]?.eventId ?? '']));
}

/** The names of claimed events. */
const named = (rows: readonly { readonly entry: { readonly detail: string } }[]) =>
  rows
    .map(({ entry }) => {
      const { aggregateId, data } = JSON.parse(entry.detail);
      return `${aggregateId}${data.n}`;
    })
    .toSorted();

const REFUSED = new MailroomError('MalformedDetail', 'Detail is malformed');
const dueAgain = () =>
  rig.pool.query('UPDATE mailroom.pending SET due_at = clock_timestamp() WHERE fence IS NULL');
const operate = (name: 'requeue' | 'discard', eventId = '') =>
  rig.pool.query(`SELECT mailroom.${name}(ARRAY[$1::uuid], 'fixed')`, [eventId]);

describe('a claim in the order of aggregates', () => {
  test('takes the first event of each aggregate, and the next one once that is marked', async () => {
    const ids = await commit('a1', 'b1', 'a2', 'a3', 'b2');
    const relay = relayOn();
    const first = await relay.claim(10, true);
    expect(named(first)).toEqual(['a1', 'b1']);
    expect(named(await relay.claim(10, true))).toEqual([]);
    const waits =
      'SELECT event_id, waits_for FROM mailroom.pending WHERE waits_for IS NOT NULL ORDER BY waits_for';
    expect(await rig.rows(waits)).toHaveLength(3);
    expect(await rig.rows(waits)).toContainEqual({ event_id: ids.a3, waits_for: ids.a2 });
    await relay.markPublished(first.filter(({ eventId }) => eventId === ids.a1));
    const second = await relay.claim(10, true);
    expect(named(second)).toEqual(['a2']);
    await relay.markPublished([...first, ...second]);
    expect(named(await relay.claim(10, true))).toEqual(['a3', 'b2']);
    expect(await rig.rows(waits)).toEqual([]);
  });

  test('holds up an aggregate behind a DEAD event, until it is requeued and published, or discarded', async () => {
    const ids = await commit('a1', 'a2', 'b1', 'b2');
    const relay = relayOn();
    const first = await relay.claim(10, true);
    for (const row of first) await relay.failEvent({ ...row, attempts: 99 }, REFUSED, true);
    await dueAgain();
    expect(named(await relay.claim(10, true))).toEqual([]);
    await operate('requeue', ids.a1);
    await operate('discard', ids.b1);
    await dueAgain();
    const next = await relay.claim(10, true);
    expect(named(next)).toEqual(['a1', 'b2']);
    await relay.markPublished(next);
    expect(named(await relay.claim(10, true))).toEqual(['a2']);
  });

  test('leaves scheduled events out of the order', async () => {
    await rig.outbox.commit(async () => [of('a', 1, { deliverAt: Date.now() + 3_600_000 }), of('a', 2)]);
    expect(named(await relayOn().claim(10, true))).toEqual(['a2']);
  });

  test('publishes late what commits after a later event was claimed, and holds up nothing behind that one', async () => {
    const client = await rig.pool.connect();
    await client.query('BEGIN');
    await rig.outbox.write(client, [of('a', 1)]);
    await commit('a2');
    const relay = relayOn();
    const second = await relay.claim(10, true);
    await client.query('COMMIT');
    client.release();
    await commit('a3');
    await relay.markPublished(second);
    expect([named(second), named(await relay.claim(10, true))]).toEqual([['a2'], ['a1', 'a3']]);
  });

  test('takes what an earlier version of the outbox has written, which knows no aggregate', async () => {
    await commit('a1', 'a2');
    await rig.pool.query('UPDATE mailroom.event SET aggregate_type = NULL, aggregate_id = NULL');
    expect(named(await relayOn().claim(10, true))).toEqual(['a1', 'a2']);
  });

  test('finds the events of other aggregates behind those that it puts off', async () => {
    await commit(...Array.from({ length: 250 }, (_, n) => `a${n}`), 'b1');
    const relay = relayOn();
    expect(named(await relay.claim(1, true))).toEqual(['a0']);
    expect(named(await relay.claim(100, true))).toEqual(['b1']);
  });

  test('reads the event before by an index', async () => {
    await commit('a1');
    const client = await rig.pool.connect();
    await client.query('BEGIN; SET LOCAL enable_seqscan = off');
    const texts: string[] = [];
    const spy: Sql = {
      query: (text, values = []) => {
        texts.push(text);
        return client.query(text, [...values]);
      },
    };
    await relayOn(spy).claim(1, true);
    const plan = await client.query(`EXPLAIN ${texts[0]}`, [
      1,
      1_000,
      '00000000-0000-4000-8000-000000000000',
      '-infinity',
    ]);
    await client.query('ROLLBACK');
    client.release();
    expect(JSON.stringify(plan.rows)).toContain('event_in_aggregate');
  });
});

test('three relays publish each aggregate in the order in which transactions that run one after another wrote it', async () => {
  const published: string[] = [];
  const put = async (entries: readonly { readonly detail: string }[]) =>
    entries.map(({ detail }) => {
      const { aggregateId, data } = JSON.parse(detail);
      published.push(`${aggregateId}${data.n}`);
      return { ok: true as const, id: '1' };
    });
  const { config, telemetry } = parts();
  const relays = [1, 2, 3].map(() =>
    createPostgresRelay({ config, database: rig.database, telemetry, bus: { put } as never }),
  );
  const runs = relays.map((relay) => relay.run());
  const aggregates = ['a', 'b', 'c', 'd', 'e'];
  for (let n = 1; n <= 12; n += 1) await commit(...aggregates.map((id) => `${id}${n}`));
  await expect.poll(() => published.length, { timeout: 120_000 }).toBeGreaterThanOrEqual(60);
  await Promise.all(relays.map((relay) => relay.stop()));
  await Promise.all(runs);
  for (const id of aggregates) {
    const own = published.filter((name) => name.startsWith(id));
    expect(own).toEqual(Array.from({ length: 12 }, (_, n) => `${id}${n + 1}`));
  }
});

/** A database whose statements lack a clause. */
function without(clause: string, replacement: string) {
  let found = false;
  const database: Sql = {
    query: (text, values) => {
      if (text.includes(clause)) found = true;
      return rig.database.query(text.replaceAll(clause, replacement), values);
    },
  };
  return { database, wasFound: () => found };
}

describe('without a clause', () => {
  test.each<
    [rule: string, clause: string, replacement: string, isBroken: (database: Sql) => Promise<boolean>]
  >([
    [
      'an event waits while the one before it is in the queue',
      'EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = b.event_id)',
      'false',
      async (database) => {
        await commit('a1', 'a2');
        return (await relayOn(database).claim(10, true)).length > 1;
      },
    ],
    [
      'an event waits while the one before it is DEAD',
      'EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = b.event_id)',
      'false',
      async (database) => {
        await commit('a1', 'a2');
        const relay = relayOn(database);
        for (const row of await relay.claim(10, true))
          await relay.failEvent({ ...row, attempts: 99 }, REFUSED, true);
        await dueAgain();
        return (await relay.claim(10, true)).length > 0;
      },
    ],
    [
      'the event before is the last one before, not the first',
      'ORDER BY b.ordinal DESC',
      'ORDER BY b.ordinal',
      async (database) => {
        await commit('a1', 'a2', 'a3');
        const relay = relayOn(database);
        await relay.markPublished(await relay.claim(10, true));
        await dueAgain();
        return (await relay.claim(10, true)).length > 1;
      },
    ],
    [
      'only events that were written before hold an event up',
      'b.ordinal < e.ordinal',
      'b.ordinal <> e.ordinal',
      async (database) => {
        await commit('a1', 'a2');
        return (await relayOn(database).claim(10, true)).length === 0;
      },
    ],
    [
      'a publication wakes the next event of its aggregate',
      'SET due_at = clock_timestamp(), waits_for = NULL FROM following',
      'SET waits_for = p.waits_for FROM following',
      async (database) => {
        await commit('a1', 'a2');
        const relay = relayOn(database);
        const first = await relay.claim(10, true);
        await relay.claim(10, true);
        await relay.markPublished(first);
        return (await relay.claim(10, true)).length === 0;
      },
    ],
    [
      'a wake leaves an event that a relay holds',
      'AND p.fence IS NULL ORDER BY',
      'ORDER BY',
      async (database) => {
        await commit('a1', 'a2');
        const { database: both } = without('zz', 'zz');
        const relay = relayOn({
          query: (text, values) =>
            database.query(text.replace('f.event_id AND p.fence IS NULL', 'f.event_id'), values),
        });
        const first = await relay.claim(10, true);
        await relay.markPublished(first);
        await relayOn(both).claim(10, true);
        await relay.markPublished(first); // again, by a relay that has not seen it
        return (await relayOn(both).claim(10, true)).length > 0;
      },
    ],
  ])('%s', async (_rule, clause, replacement, isBroken) => {
    expect(await isBroken(rig.database)).toBe(false);
    await rig.clear();
    const { database, wasFound } = without(clause, replacement);
    expect(await isBroken(database)).toBe(true);
    expect(wasFound()).toBe(true);
  });
});
