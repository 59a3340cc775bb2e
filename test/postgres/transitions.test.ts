import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { careForTables } from '../../lambdas/runtime/postgres/postgres-care.ts';
import type { ClaimedEvent, DatabaseTransitions } from '../../lambdas/runtime/relay/database-transitions.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../lambdas/runtime/store/postgres/relay-transitions.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { type MemoryTelemetry, memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';
import { eventually, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let telemetry: MemoryTelemetry;

beforeAll(async () => {
  rig = await startRig('transitions');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

function transitionsOf(settings = {}, database: Sql = rig.database): DatabaseTransitions {
  telemetry = memoryTelemetry();
  const config = relayConfig(settings);
  return postgresTransitions({ config, database, clock: systemClock, random: systemRandomBytes, telemetry });
}

const queue = () =>
  rig.rows(
    'SELECT event_id::text AS id, fence::text, attempts, last_error, due_at <= clock_timestamp() AS due, (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS in_ms FROM mailroom.pending ORDER BY event_id',
  );
const idsIn = async (table: string) =>
  (await rig.rows(`SELECT event_id::text AS id FROM mailroom.${table} ORDER BY event_id`)).map(
    ({ id }) => id,
  );
const only = ([row]: readonly ClaimedEvent[]) => row as ClaimedEvent;

describe('a claim', () => {
  test('holds the events that have been due the longest, under its fence and lease, with their envelopes', async () => {
    const [first, second] = [await rig.commit(1), await rig.commit(2)];
    const before = Date.now();
    const claimed = await transitionsOf().claim(1);
    expect(claimed.map(({ eventId }) => eventId)).toEqual(first);
    const { fence, leaseUntil, entry, attempts } = only(claimed);
    expect(leaseUntil).toBeGreaterThanOrEqual(before + 30_000);
    expect(JSON.parse(entry.detail)).toMatchObject({ eventId: first[0], data: { n: 1 } });
    expect([entry.source, entry.detailType, attempts]).toEqual(['orders', 'Placed', 0]);
    const rows = await queue();
    expect(rows).toMatchObject([
      { id: first[0], fence, due: false },
      { id: second[0], fence: null, due: true },
    ]);
    // On the database's clock, the lease ends no earlier than the relay believes.
    expect(Number(rows[0]?.in_ms) + Date.now()).toBeGreaterThanOrEqual(leaseUntil - 50);
  });

  test('leaves events alone that are leased or scheduled, and takes over those whose lease has ended', async () => {
    await rig.outbox.commit(async () => [placed(1, { deliverAt: Date.now() + 3_600_000 })]);
    const [id] = await rig.commit(2);
    const relay = transitionsOf({ claimLeaseMs: 1 });
    const held = only(await relay.claim(10));
    expect(held.eventId).toBe(id);
    const again = await eventually(async () => {
      const [row] = await relay.claim(10);
      return row;
    });
    expect(again?.eventId).toBe(id);
    expect(again?.fence).not.toBe(held.fence);
    expect((await queue()).filter(({ due }) => !due)).not.toEqual([]);
    expect(await transitionsOf().claim(0)).toEqual([]);
  });

  test('finds an event that was committed after others were published, whatever its id', async () => {
    const client = await rig.pool.connect();
    await client.query('BEGIN');
    const [late] = await rig.outbox.write(client, [placed(1)]);
    await rig.commit(2, 3);
    const relay = transitionsOf();
    const early = await relay.claim(10);
    expect(early).toHaveLength(2);
    await relay.markPublished(early);
    // A reader that follows the ids has passed this one.
    expect(early.every(({ eventId }) => eventId > String(late?.eventId))).toBe(true);
    await client.query('COMMIT');
    client.release();
    expect((await relay.claim(10)).map(({ eventId }) => eventId)).toEqual([late?.eventId]);
  });

  test('never waits for rows that another session holds', async () => {
    const [held, free] = [await rig.commit(1), await rig.commit(2)];
    const client = await rig.pool.connect();
    await client.query('BEGIN');
    await client.query('SELECT FROM mailroom.pending WHERE event_id = $1 FOR UPDATE', held);
    // The lock is released only after the claim has returned.
    expect((await transitionsOf().claim(10)).map(({ eventId }) => eventId)).toEqual(free);
    await client.query('ROLLBACK');
    client.release();
  });

  test('claims exactly its limit, also under the plan in which IN (… LIMIT … SKIP LOCKED) does not', async () => {
    await rig.pool.query(
      'INSERT INTO mailroom.pending (event_id) SELECT gen_random_uuid() FROM generate_series(1, 200)',
    );
    const client = await rig.pool.connect();
    for (const plan of ['hashjoin', 'mergejoin', 'hashagg', 'sort', 'material', 'memoize'])
      await client.query(`SET enable_${plan} = off`);
    await client.query('BEGIN');
    const naive = await client.query(`UPDATE mailroom.pending SET attempts = 1 WHERE event_id IN (
      SELECT event_id FROM mailroom.pending ORDER BY due_at LIMIT 5 FOR UPDATE SKIP LOCKED)`);
    expect(naive.rowCount).toBeGreaterThan(5);
    await client.query('ROLLBACK');
    const forced: Sql = {
      query: async (text, values = []) => {
        const { rows } = await client.query(text, [...values]);
        return { rows };
      },
    };
    expect(await transitionsOf({}, forced).claim(5)).toHaveLength(5);
    expect((await queue()).filter(({ fence }) => fence !== null)).toHaveLength(5);
    client.release(true);
  });

  test('reads only the due part of the index, with 100,000 events', async () => {
    await rig.pool.query(
      `INSERT INTO mailroom.pending (event_id, due_at) SELECT gen_random_uuid(), clock_timestamp() + n * interval '1 s' FROM generate_series(-50, 100000) n`,
    );
    await rig.pool.query('ANALYZE mailroom.pending');
    const plans: string[] = [];
    const explained: Sql = {
      query: async (text, values = []) => {
        const { rows } = await rig.pool.query(`EXPLAIN ${text}`, [...values]);
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
        return { rows: [] };
      },
    };
    await transitionsOf({}, explained).claim(100);
    expect(plans[0]).toMatch(
      /Index Scan using pending_due_at[^\n]*\n\s*Index Cond: \(\(due_at >= '-infinity'[^\n]* AND \(due_at <= statement_timestamp\(\)\)\)/,
    );
    const { rows } = await rig.pool.query(
      'EXPLAIN SELECT FROM mailroom.pending WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT 100',
    );
    expect(JSON.stringify(rows)).not.toContain('Index Cond');
  });
});

describe('a claim beside a snapshot that is held open', () => {
  /** The blocks of the queue and its index that a claim reads, without its effect. */
  async function blocksRead(text: string, values: readonly unknown[]): Promise<number> {
    const client = await rig.pool.connect();
    await client.query('BEGIN');
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS) ${text}`, [...values]);
    await client.query('ROLLBACK');
    client.release();
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    return Number(/Index Scan using pending_due_at[\s\S]*?shared hit=(\d+)/.exec(plan)?.[1]);
  }

  test('does not read the entries of events that were published before', async () => {
    const holder = await rig.pool.connect();
    // Its transaction ends with its connection, before the tables are cleared.
    onTestFinished(() => holder.release(true));
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await holder.query('SELECT count(*) FROM mailroom.pending');
    await rig.pool.query(
      "INSERT INTO mailroom.pending (event_id, due_at) SELECT overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid, clock_timestamp() - interval '1 hour' + n * interval '1 ms' FROM generate_series(1, 10000) n",
    );
    await rig.pool.query('ANALYZE mailroom.pending');
    const claims: (readonly [text: string, values: readonly unknown[]])[] = [];
    const watched: Sql = {
      query: (text, values = []) => {
        if (text.includes('SKIP LOCKED')) claims.push([text, values]);
        return rig.database.query(text, values);
      },
    };
    const relay = transitionsOf({}, watched);
    for (let n = 0; n < 90; n += 1) await relay.markPublished(await relay.claim(100));
    const bounded = claims.filter(([, values]) => values[3] !== '-infinity');
    const [text, values] = bounded.at(-1) ?? ['', []];
    const read = await blocksRead(text, values);
    const readFully = await blocksRead(text, [...values.slice(0, 3), '-infinity']);
    expect(bounded.length).toBeGreaterThan(45);
    expect(read).toBeGreaterThan(0);
    expect(readFully).toBeGreaterThan(8 * read);
  });
});

test('an event that commits later than a second after its insert waits for a full reading, a second later', async () => {
  let now = Date.now();
  const relay = postgresTransitions({
    config: relayConfig(),
    database: rig.database,
    clock: { ...systemClock, now: () => now },
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
  });
  expect(await relay.claim(10)).toEqual([]);
  const ids = await rig.commit(1);
  await rig.pool.query("UPDATE mailroom.pending SET due_at = due_at - interval '10 minutes'");
  expect(await relay.claim(10)).toEqual([]);
  now += 1_000;
  expect((await relay.claim(10)).map(({ eventId }) => eventId)).toEqual(ids);
});

describe('a mark', () => {
  test('moves events from the queue to the published ones, under any lease', async () => {
    const ids = await rig.commit(1, 2);
    const relay = transitionsOf({ claimLeaseMs: 1 });
    const held = await relay.claim(10);
    await eventually(async () => ((await relay.claim(10)).length > 0 ? true : undefined));
    expect(await relay.markPublished(held)).toEqual([]);
    expect(await queue()).toEqual([]);
    expect(await idsIn('published')).toEqual(ids.toSorted());
    expect(await relay.markPublished(held)).toEqual([]);
    expect(await idsIn('published')).toHaveLength(2);
    expect(telemetry.counted('EventsPublished')).toBe(4);
  });

  test('moves a DEAD event that was published after all', async () => {
    const ids = await rig.commit(1);
    const relay = transitionsOf();
    const held = await relay.claim(10);
    await relay.failEvent(only(held), new MailroomError('REFUSED', 'no'), true);
    expect(await idsIn('dead')).toEqual(ids);
    expect(await relay.markPublished(held)).toEqual([]);
    expect(await idsIn('dead')).toEqual([]);
    expect(await idsIn('published')).toEqual(ids);
  });

  test('waits for a concurrent claim of the same event, and removes it', async () => {
    const [id] = await rig.commit(1);
    const relay = transitionsOf();
    const held = await relay.claim(1);
    const client = await rig.pool.connect();
    await client.query('BEGIN');
    await client.query(
      'UPDATE mailroom.pending SET fence = gen_random_uuid(), due_at = clock_timestamp() WHERE event_id = $1',
      [id],
    );
    const marked = relay.markPublished(held);
    await eventually(async () =>
      (await rig.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length > 0
        ? true
        : undefined,
    );
    await client.query('COMMIT');
    client.release();
    expect(await marked).toEqual([]);
    expect(await queue()).toEqual([]);
    expect(await idsIn('published')).toEqual([id]);
  });

  test('returns events that it could not mark, and logs them', async () => {
    await rig.commit(1);
    const held = await transitionsOf().claim(1);
    const failing: Sql = {
      query: async () => {
        throw Object.assign(new Error('permission denied'), { code: '42501' });
      },
    };
    expect(await transitionsOf({}, failing).markPublished(held)).toEqual(held);
    expect(telemetry.lines()).toMatchObject([
      { level: 'error', message: expect.stringContaining('published but not marked') },
    ]);
    expect(await queue()).toHaveLength(1);
  });

  test('is tried again after a deadlock and a lost connection', async () => {
    const ids = await rig.commit(1);
    const held = await transitionsOf().claim(1);
    const errors = [Object.assign(new Error('deadlock'), { code: '40P01' }), new Error('connection lost')];
    const flaky: Sql = {
      query: async (text, values) => {
        const error = errors.shift();
        if (error !== undefined) throw error;
        return rig.database.query(text, values);
      },
    };
    expect(await transitionsOf({}, flaky).markPublished(held)).toEqual([]);
    expect(await idsIn('published')).toEqual(ids);
  });

  test('never deadlocks with a mark that finds the same events in another order', async () => {
    expect(await deadlocksOf(10)).toBe(0);
  });
});

test('two sessions that delete the same events in opposite orders deadlock', async () => {
  const ids = await rig.commit(1, 2);
  const clients = [await rig.pool.connect(), await rig.pool.connect()];
  const remove = 'DELETE FROM mailroom.pending WHERE event_id = $1';
  for (const [n, client] of clients.entries()) {
    await client.query('BEGIN');
    await client.query(remove, [ids[n]]);
  }
  const errors = await Promise.all(
    clients.map((client, n) =>
      client
        .query(remove, [ids[1 - n]])
        .then(
          () => undefined,
          (error: { code: string }) => error.code,
        )
        .finally(() => client.query('ROLLBACK')),
    ),
  );
  for (const client of clients) client.release();
  expect(errors).toContain('40P01');
});

/** Marks the same events in two sessions, in the order of the index and of the table, for some rounds. */
async function deadlocksOf(rounds: number): Promise<number> {
  let found = 0;
  const clients = [await rig.pool.connect(), await rig.pool.connect()];
  await clients[0]?.query('SET enable_seqscan = off');
  for (const plan of ['indexscan', 'bitmapscan', 'indexonlyscan'])
    await clients[1]?.query(`SET enable_${plan} = off`);
  const relays = clients.map((client) =>
    transitionsOf(
      {},
      {
        query: async (text, values = []) => {
          const result = await client.query(text, [...values]).catch((error: { code: string }) => {
            if (error.code === '40P01') found += 1;
            throw error;
          });
          return { rows: result.rows };
        },
      },
    ),
  );
  for (let round = 0; round < rounds && found === 0; round += 1) {
    await rig.clear();
    await rig.pool.query(
      "INSERT INTO mailroom.pending (event_id) SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid FROM generate_series(300, 1, -1) n",
    );
    const held = await transitionsOf().claim(300);
    await Promise.all(relays.map((relay) => relay.markPublished(held)));
    expect(await queue()).toEqual([]);
    expect(await idsIn('published')).toHaveLength(300);
  }
  for (const client of clients) client.release(true);
  return found;
}

describe('a failure', () => {
  test('counts an attempt and waits for its backoff, under the fence of the relay only', async () => {
    const [id] = await rig.commit(1);
    const relay = transitionsOf();
    const held = only(await relay.claim(1));
    await relay.failEvent({ ...held, fence: crypto.randomUUID() }, new MailroomError('X', 'other'), false);
    expect(await queue()).toMatchObject([{ id, fence: held.fence, attempts: 0, last_error: null }]);
    await relay.failEvent(held, new MailroomError('X', 'odd \u0000 text'), false);
    const [row] = await queue();
    expect(row).toMatchObject({ id, fence: null, attempts: 1, last_error: 'odd  text', due: false });
    expect(Number(row?.in_ms)).toBeLessThanOrEqual(5_000);
  });

  test.each([3_600_000, -3_600_000])(
    'waits for its backoff also if the clock of the relay is set by %i ms meanwhile',
    async (step) => {
      await rig.commit(1);
      let set = 0;
      const clock = { ...systemClock, now: () => Date.now() + set };
      telemetry = memoryTelemetry();
      const error = () => {
        set = step;
      };
      const log = { ...telemetry.log, error };
      const relay = postgresTransitions({
        config: relayConfig(),
        database: rig.database,
        clock,
        random: systemRandomBytes,
        telemetry: { ...telemetry, log },
      });
      await relay.failEvent(only(await relay.claim(1)), new MailroomError('X', 'x'), false);
      expect(set).toBe(step);
      const [row] = await queue();
      expect(row).toMatchObject({ fence: null, attempts: 1, due: false });
      expect(Number(row?.in_ms)).toBeLessThanOrEqual(5_000);
    },
  );

  test('of an event that its owner has queued although it is DEAD leaves it DEAD, as it was', async () => {
    const [id] = await rig.commit(1);
    const relay = transitionsOf();
    await relay.failEvent(only(await relay.claim(1)), new MailroomError('X', 'first'), true);
    await rig.pool.query('INSERT INTO mailroom.pending (event_id) VALUES ($1)', [id]);
    await relay.failEvent(only(await relay.claim(1, true)), new MailroomError('X', 'second'), true);
    expect(await queue()).toEqual([]);
    expect(await rig.rows('SELECT last_error FROM mailroom.dead')).toEqual([{ last_error: 'first' }]);
  });

  test('makes an event DEAD that is refused or whose attempts are exhausted, under the fence of the relay only', async () => {
    const ids = await rig.commit(1, 2);
    const relay = transitionsOf();
    const [refused, exhausted] = (await relay.claim(2)) as [ClaimedEvent, ClaimedEvent];
    await relay.failEvent({ ...refused, fence: crypto.randomUUID() }, new MailroomError('X', 'x'), true);
    expect(await idsIn('dead')).toEqual([]);
    await relay.failEvent(refused, new MailroomError('X', 'refused'), true);
    await relay.failEvent({ ...exhausted, attempts: 2 }, new MailroomError('X', 'failed 3'), false);
    expect(await queue()).toEqual([]);
    expect(await idsIn('dead')).toEqual(ids.toSorted());
    expect(
      await rig.rows('SELECT attempts, last_error, fingerprint FROM mailroom.dead ORDER BY attempts'),
    ).toEqual([
      { attempts: 1, last_error: 'refused', fingerprint: 'relay X: refused' },
      { attempts: 3, last_error: 'failed 3', fingerprint: 'relay X: failed #' },
    ]);
    expect(telemetry.counted('EventsDead')).toBe(2);
    expect(telemetry.counted('EventsRefused')).toBe(2);
  });
});

test('a renewal begins the lease again, and the relay still holds the event', async () => {
  const [id] = await rig.commit(1);
  const relay = transitionsOf();
  const held = only(await relay.claim(1));
  await rig.pool.query('UPDATE mailroom.pending SET due_at = statement_timestamp()');
  const renewed = await relay.renew(held);
  const [row] = await queue();
  expect(row).toMatchObject({ id, fence: held.fence });
  expect(Number(row?.in_ms)).toBeGreaterThan(20_000);
  await relay.failEvent(renewed as ClaimedEvent, new MailroomError('X', 'x'), false);
  expect(await queue()).toMatchObject([{ id, fence: null, attempts: 1 }]);
});

test('a release makes events due again, and counts no attempt, under the fence of the relay only', async () => {
  await rig.commit(1, 2);
  const relay = transitionsOf();
  const held = await relay.claim(2);
  await relay.release(
    held.map((row) => ({ ...row, fence: crypto.randomUUID() })),
    0,
  );
  expect((await queue()).map(({ due }) => due)).toEqual([false, false]);
  await relay.release(held.slice(0, 1), 0, 'throttled');
  await relay.release(held.slice(1), 60_000);
  const released = (await queue()).toSorted((a, b) => Number(a.in_ms) - Number(b.in_ms));
  expect(released).toMatchObject([
    { due: true, fence: null, attempts: 0, last_error: 'throttled' },
    { due: false, fence: null, attempts: 0, last_error: null },
  ]);
  expect(Number(released[1]?.in_ms)).toBeGreaterThan(20_000);
});

test('a release without an error keeps the last one', async () => {
  await rig.commit(1);
  const relay = transitionsOf();
  await relay.release(await relay.claim(1), 0, 'throttled');
  await relay.release(await relay.claim(1, true), 0);
  expect(await queue()).toMatchObject([{ fence: null, last_error: 'throttled' }]);
});

test('a release stores its error without NUL, which PostgreSQL refuses, and cut like that of a failure', async () => {
  await rig.commit(1);
  const relay = transitionsOf();
  const held = await relay.claim(1);
  await relay.release(held, 0, new MailroomError('Odd', `a\u0000b${'c'.repeat(2_000)}`));
  const [released] = await queue();
  expect(released).toMatchObject({ due: true, fence: null, attempts: 0 });
  expect(released?.last_error).toBe(`ab${'c'.repeat(997)}`);
});

describe('care', () => {
  const care = async (settings = {}) => {
    telemetry = memoryTelemetry();
    const config = relayConfig(settings);
    await careForTables({
      config,
      database: rig.database,
      clock: systemClock,
      random: systemRandomBytes,
      telemetry,
    });
  };

  test('deletes events that were published longer ago than their retention, and no others', async () => {
    const [old, fresh, again, waiting] = (await rig.commit(1, 2, 3, 4)) as [string, string, string, string];
    const relay = transitionsOf();
    await relay.markPublished((await relay.claim(10)).filter(({ eventId }) => eventId !== waiting));
    await rig.pool.query(
      "UPDATE mailroom.published SET published_at = published_at - interval '8 days' WHERE event_id <> $1",
      [fresh],
    );
    await rig.pool.query('INSERT INTO mailroom.published VALUES ($1, clock_timestamp())', [again]);
    await care();
    expect(await idsIn('event')).toEqual([fresh, again, waiting].toSorted());
    expect(await idsIn('published')).toEqual([fresh, again].toSorted());
    expect(await idsIn('event')).not.toContain(old);
  });

  test('measures the queue, the oldest snapshot and the slowest slot', async () => {
    await rig.commit(1);
    await care();
    expect(telemetry.durations('OldestSnapshotAge')).toEqual([0]);
    expect(telemetry.counted('SlotLagBytes')).toBe(0);
    const holder = await rig.pool.connect();
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await holder.query('SELECT 1');
    await rig.pool.query("SELECT pg_create_physical_replication_slot('slow', true)");
    const relay = transitionsOf();
    await relay.markPublished(await relay.claim(10));
    // A session reports its deleted rows to the statistics a little later.
    await eventually(async () => {
      await care();
      return telemetry.counted('DeletedQueueRows') > 0 ? true : undefined;
    });
    expect(telemetry.durations('OldestSnapshotAge')[0]).toBeGreaterThan(0);
    expect(telemetry.counted('QueueBytes')).toBeGreaterThan(0);
    expect(telemetry.counted('SlotLagBytes')).toBeGreaterThan(0);
    await holder.query('ROLLBACK');
    holder.release();
    await rig.pool.query("SELECT pg_drop_replication_slot('slow')");
  });

  test('deletes in batches until nothing old is left', async () => {
    await rig.pool.query(
      "INSERT INTO mailroom.published SELECT gen_random_uuid(), clock_timestamp() - interval '9 days' FROM generate_series(1, 2500)",
    );
    await care();
    expect(await idsIn('published')).toEqual([]);
  });

  test('deletes settled inbox rows and their effects after their retention only', async () => {
    const row =
      "INSERT INTO mailroom.inbox (consumer, event_id, type, status, expires_at) VALUES ('c', $1, 'T', $2, clock_timestamp() + $3 * interval '1 day')";
    for (const [id, status, days] of [
      ['old', 'PROCESSED', -1],
      ['new', 'PROCESSED', 1],
      ['trying', 'FAILED', null],
    ])
      await rig.pool.query(row, [id, status, days]);
    await rig.pool.query(
      "INSERT INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by) SELECT 'c', event_id, 'pay', 'COMPLETED', 'f', 1, clock_timestamp(), clock_timestamp() FROM mailroom.inbox",
    );
    await care();
    expect(await idsOfInbox('inbox')).toEqual(['new', 'trying']);
    expect(await idsOfInbox('effect')).toEqual(['new', 'trying']);
    await rig.pool.query('TRUNCATE mailroom.inbox, mailroom.effect');
  });

  test('measures the queue without scheduled events', async () => {
    await rig.outbox.commit(async () => [placed(1, { deliverAt: Date.now() + 3_600_000 })]);
    await rig.commit(2, 3);
    await care({ sources: [] });
    expect(telemetry.counted('PendingEvents')).toBe(2);
    expect(telemetry.counted('UndeclaredEvents')).toBe(2);
    expect(telemetry.durations('OldestPendingAge')).toEqual([0]);
    await care();
    expect(telemetry.counted('UndeclaredEvents')).toBe(0);
    expect(telemetry.durations('OldestPendingAge')[0]).toBeGreaterThan(0);
    expect(telemetry.durations('OldestLeaseAge')[0]).toBeGreaterThan(0);
    expect(telemetry.counted('SweepFailures')).toBe(0);
  });
});

const idsOfInbox = async (table: string) =>
  (await rig.rows(`SELECT event_id FROM mailroom.${table} ORDER BY event_id`)).map(
    ({ event_id }) => event_id,
  );
