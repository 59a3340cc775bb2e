import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openPostgres } from '../../cli/deployment/postgres-database.ts';
import { postgresRows } from '../../cli/deployment/postgres-rows.ts';
import { runMailroom } from '../../cli/program.ts';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { careForTables } from '../../lambdas/runtime/postgres/postgres-care.ts';
import { postgresHandlers } from '../../lambdas/runtime/postgres/postgres-handlers.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { grantPostgresRole, migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { wholeView } from '../../lambdas/runtime/store/postgres/whole-view.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { capturedIo } from '../support/captured-io.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { newEventId, postgresConsumer } from './consumer-parts.ts';
import { relayConfig } from './support/relay-config.ts';
import { PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;
const pools: Pool[] = [];

function login(user: string, database = 'postgres'): Pool {
  const pool = new Pool({
    connectionString: `postgresql://${user}@127.0.0.1:${rig.server.port}/${database}`,
  });
  pools.push(pool);
  return pool;
}

let orders: Pool;
let stock: Pool;
let payments: Pool;
let relay: Pool;
let ada: Pool;

beforeAll(async () => {
  rig = await startRig('row-access');
  await rig.pool.query(
    ['orders', 'stock', 'payments', 'relay', 'ada', 'elsewhere']
      .map((name) => `CREATE ROLE ${name} LOGIN`)
      .join(';'),
  );
  const { database } = rig;
  await grantPostgresRole(database, { login: 'orders', role: 'mailroom_producer', service: 'orders' });
  await grantPostgresRole(database, { login: 'stock', role: 'mailroom_producer', service: 'stock' });
  await grantPostgresRole(database, {
    login: 'payments',
    role: 'mailroom_consumer',
    service: 'things',
    consumers: ['worker'],
  });
  await grantPostgresRole(database, { login: 'relay', role: 'mailroom_relay' });
  await grantPostgresRole(database, { login: 'ada', role: 'mailroom_operator' });
  await rig.pool.query('CREATE DATABASE other');
  const other = login('postgres', 'other');
  await migratePostgres(nodePostgres(other));
  for (const role of ['mailroom_relay', 'mailroom_operator'] as const)
    await grantPostgresRole(nodePostgres(other), { login: 'elsewhere', role });
  await grantPostgresRole(nodePostgres(other), {
    login: 'elsewhere',
    role: 'mailroom_producer',
    service: 'orders',
  });
  await grantPostgresRole(nodePostgres(other), {
    login: 'elsewhere',
    role: 'mailroom_consumer',
    service: 'orders',
    consumers: ['worker', 'bank'],
  });
  [orders, stock, payments, relay, ada] = ['orders', 'stock', 'payments', 'relay', 'ada'].map((name) =>
    login(name),
  ) as [Pool, Pool, Pool, Pool, Pool];
});
beforeEach(() => rig.clear());
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  await rig.close();
});

const REFUSED = { code: '42501' };

/** The changes of an operator, of every event. */
const CHANGES = ['requeue', 'discard', 'republish', 'mark_resent'].map(
  (name) => `SELECT mailroom.${name}(ARRAY(SELECT event_id FROM mailroom.event), 'x')`,
);

const envelope = '{"eventId":"x"}';

const insertEvent = (pool: Pool, source: string, id = mintEventId(Date.now(), 256)) =>
  pool.query('INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1, $2, $3, $4)', [
    id,
    source,
    'Placed',
    envelope,
  ]);

const inboxRow = (consumer: string, eventId: string, status = 'PROCESSED') =>
  rig.pool.query('INSERT INTO mailroom.inbox (consumer, event_id, type, status) VALUES ($1, $2, $3, $4)', [
    consumer,
    eventId,
    'Placed',
    status,
  ]);

test('every table with rows of services has row-level security, and only the owner registers logins', async () => {
  const open = await rig.rows(
    `SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'mailroom'::regnamespace AND relkind IN ('r', 'p') AND NOT relrowsecurity ORDER BY 1`,
  );
  expect(open).toEqual([{ name: 'login' }, { name: 'migration' }]);
  for (const pool of [orders, payments, relay, ada])
    for (const statement of [
      "INSERT INTO mailroom.login (login, role, scope) VALUES (CURRENT_USER, 'producer', 'bank')",
      "UPDATE mailroom.login SET scope = 'bank'",
      'DELETE FROM mailroom.login',
      'ALTER TABLE mailroom.event DISABLE ROW LEVEL SECURITY',
      'TRUNCATE mailroom.pending',
    ])
      await expect(pool.query(statement)).rejects.toMatchObject(REFUSED);
});

describe('a producer', () => {
  test('writes, proves and cancels events of its own service', async () => {
    const outbox = createPostgresOutbox({
      config: PRODUCER,
      database: nodePostgres(orders),
      telemetry: memoryTelemetry(),
    });
    const [event] = await outbox.commit(async () => [
      placed(1, { deliverAt: Date.now() + 60_000 }),
      placed(2),
    ]);
    await outbox.commit(async () => []);
    const cancel = () => nodePostgres(orders).transaction((tx) => outbox.cancel(tx, event?.eventId ?? ''));
    expect(await cancel()).toBe('cancelled');
    expect(await cancel()).toBe('cancelled');
    expect(await rig.rows('SELECT 1 FROM mailroom.pending')).toHaveLength(1);
    const own = await orders.query('SELECT event_id FROM mailroom.event WHERE event_id = $1', [
      event?.eventId,
    ]);
    expect(own.rows).toHaveLength(1);
  });

  test('inserts no event of another service, and cannot see one', async () => {
    await expect(insertEvent(orders, 'stock')).rejects.toMatchObject(REFUSED);
    await insertEvent(stock, 'stock');
    expect((await orders.query('SELECT event_id, source FROM mailroom.event')).rows).toEqual([]);
    await expect(orders.query('SELECT envelope FROM mailroom.event')).rejects.toMatchObject(REFUSED);
  });

  test('neither deletes nor cancels an event of another service', async () => {
    const [eventId = ''] = await rig.commit(1);
    expect((await stock.query('DELETE FROM mailroom.pending')).rowCount).toBe(0);
    expect((await stock.query('DELETE FROM mailroom.pending WHERE event_id = $1', [eventId])).rowCount).toBe(
      0,
    );
    expect((await stock.query('SELECT 1 FROM mailroom.pending')).rows).toEqual([]);
    await expect(
      stock.query('INSERT INTO mailroom.cancelled VALUES ($1, clock_timestamp())', [eventId]),
    ).rejects.toMatchObject(REFUSED);
    expect(await rig.rows('SELECT event_id::text AS id FROM mailroom.pending')).toEqual([{ id: eventId }]);
  });

  test.each(['-infinity', '4713-01-01 BC', '1969-12-31 23:59:59Z', 'infinity'])(
    'queues nothing that is due at %s, which would stop or slow the relay for every service',
    async (dueAt) => {
      await expect(
        orders.query('INSERT INTO mailroom.pending (event_id, due_at) VALUES ($1, $2)', [
          mintEventId(Date.now(), 256),
          dueAt,
        ]),
      ).rejects.toMatchObject({ code: '23514' });
    },
  );

  test('inserts only new rows into the queue', async () => {
    for (const [column, value] of [
      ['attempts', 1],
      ['fence', mintEventId(1, 1)],
      ['last_error', 'x'],
    ])
      await expect(
        orders.query(`INSERT INTO mailroom.pending (event_id, ${column}) VALUES ($1, $2)`, [
          mintEventId(Date.now(), 256),
          value,
        ]),
      ).rejects.toMatchObject(REFUSED);
  });

  test('reads and changes no inbox, no dead event and no operation', async () => {
    for (const statement of [
      'SELECT 1 FROM mailroom.inbox',
      "UPDATE mailroom.inbox SET status = 'PROCESSED'",
      'DELETE FROM mailroom.dead',
      'SELECT * FROM mailroom.operation',
      ...CHANGES,
      'DELETE FROM mailroom.discarded',
      'UPDATE mailroom.published SET resent_at = NULL',
      'SELECT * FROM mailroom.oldest_snapshot()',
    ])
      await expect(orders.query(statement)).rejects.toMatchObject(REFUSED);
  });
});

describe('a consumer', () => {
  test('handles messages in its own inbox, with events of its own service', async () => {
    const database = nodePostgres(payments);
    const { leased, transactional } = postgresHandlers(database);
    const done: string[] = [];
    const handlers = [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', async () => ({ id: 1 }));
        await ctx.commit({ events: [ThingHappened.create({ aggregateId: 'a', data: { n: 2 } })] });
        done.push('leased');
      }),
      transactional(ThingHappened, async () => {
        done.push('transactional');
        return { events: [ThingHappened.create({ aggregateId: 'a', data: { n: 2 } })] };
      }),
    ];
    for (const handler of handlers)
      expect(await postgresConsumer(database, [handler]).deliver(newEventId())).toEqual([]);
    const failing = leased(ThingHappened, async () => {
      throw new Error('the bank is closed');
    });
    const eventId = newEventId();
    await postgresConsumer(database, [failing]).deliver(eventId);
    expect(done).toEqual(['leased', 'transactional']);
    expect(
      await rig.rows('SELECT status, count(*)::int AS n FROM mailroom.inbox GROUP BY 1 ORDER BY 1'),
    ).toEqual([
      { status: 'FAILED', n: 1 },
      { status: 'PROCESSED', n: 2 },
    ]);
  });

  test("neither reads nor changes another consumer's inbox", async () => {
    const eventId = newEventId();
    await inboxRow('bank', eventId);
    expect((await payments.query("SELECT 1 FROM mailroom.inbox WHERE consumer = 'bank'")).rows).toEqual([]);
    const failed = "UPDATE mailroom.inbox SET status = 'FAILED'";
    await payments.query(failed);
    await expect(
      payments.query(
        "INSERT INTO mailroom.inbox (consumer, event_id, type, status) VALUES ('bank', 'x', 'Placed', 'PROCESSED')",
      ),
    ).rejects.toMatchObject(REFUSED);
    await expect(
      payments.query(
        `INSERT INTO mailroom.inbox (consumer, event_id, type, status) VALUES ('bank', $1, 'Placed', 'PROCESSED') ON CONFLICT (consumer, event_id) DO UPDATE SET status = 'FAILED'`,
        [eventId],
      ),
    ).rejects.toMatchObject(REFUSED);
    await inboxRow('worker', eventId);
    await expect(
      payments.query("UPDATE mailroom.inbox SET consumer = 'bank' WHERE event_id = $1", [eventId]),
    ).rejects.toMatchObject(REFUSED);
    await expect(
      payments.query("INSERT INTO mailroom.inbox_retention (consumer, days) VALUES ('bank', 1)"),
    ).rejects.toMatchObject(REFUSED);
    await expect(insertEvent(payments, 'orders')).rejects.toMatchObject(REFUSED);
    expect(await rig.rows("SELECT status FROM mailroom.inbox WHERE consumer = 'bank'")).toEqual([
      { status: 'PROCESSED' },
    ]);
  });
});

describe('an operator', () => {
  const dead = async () => {
    const [eventId = ''] = await rig.commit(1);
    await rig.pool.query('DELETE FROM mailroom.pending');
    await rig.pool.query("INSERT INTO mailroom.dead VALUES ($1, clock_timestamp(), 5, 'no', 'relay')", [
      eventId,
    ]);
    return eventId;
  };

  test('requeues a DEAD event with an entry in the log that has its name, and changes nothing otherwise', async () => {
    const eventId = await dead();
    for (const statement of [
      'DELETE FROM mailroom.dead',
      `INSERT INTO mailroom.discarded VALUES ('${eventId}', clock_timestamp(), 'bob', 'x')`,
      'UPDATE mailroom.published SET resent_at = clock_timestamp()',
      `INSERT INTO mailroom.pending (event_id) VALUES ('${eventId}')`,
      'UPDATE mailroom.pending SET due_at = clock_timestamp()',
      "INSERT INTO mailroom.operation VALUES (clock_timestamp(), 'x', 'bob', 'x', 'x', 'x')",
      'DELETE FROM mailroom.operation',
    ])
      await expect(ada.query(statement)).rejects.toMatchObject(REFUSED);
    const { io, written } = capturedIo();
    const url = `postgresql://ada@127.0.0.1:${rig.server.port}/postgres`;
    await runMailroom(
      ['postgres', 'requeue', '--reason', 'the bus is back', '--database', url, '--json'],
      io,
    );
    expect(JSON.parse(written.out)).toMatchObject({ requeued: [eventId] });
    expect((await ada.query('SELECT operator, subject FROM mailroom.operation')).rows).toEqual([
      { operator: 'ada', subject: eventId },
    ]);
  });

  const END =
    "status = 'DISCARDED', fence = 'f', discarded_by = 'ada', discarded_reason = 'known', expires_at = now() + interval '3651 days'";
  const ALLOW = "run_anyway = true, allowed_by = 'ada', allowed_reason = 'known'";

  test('ends a message that is not final, or allows one that is too old, and changes nothing else of an inbox', async () => {
    const [open, tooOld, final, absent] = [newEventId(), newEventId(), newEventId(), newEventId()];
    await inboxRow('worker', open, 'FAILED');
    await inboxRow('worker', tooOld, 'REJECTED');
    await rig.pool.query("UPDATE mailroom.inbox SET reason = 'EVENT_TOO_OLD' WHERE event_id = $1", [tooOld]);
    await inboxRow('worker', final);
    const refused: readonly (readonly [text: string, eventId: string])[] = [
      ["UPDATE mailroom.inbox SET status = 'FAILED' WHERE event_id = $1", open],
      [`UPDATE mailroom.inbox SET ${END.replace(", discarded_by = 'ada'", '')} WHERE event_id = $1`, open],
      [`UPDATE mailroom.inbox SET ${END.replace("fence = 'f', ", '')} WHERE event_id = $1`, open],
      [`UPDATE mailroom.inbox SET ${END.replace('3651', '35')} WHERE event_id = $1`, open],
      [`UPDATE mailroom.inbox SET ${ALLOW}, resolved_by = 'ada' WHERE event_id = $1`, tooOld],
      ['UPDATE mailroom.inbox SET run_anyway = true WHERE event_id = $1', open],
      ["UPDATE mailroom.inbox SET rejected_ids = '{}' WHERE event_id = $1", tooOld],
      ['UPDATE mailroom.inbox SET attempts = 0 WHERE event_id = $1', open],
      ["UPDATE mailroom.inbox SET consumer = 'bank' WHERE event_id = $1", open],
      ['DELETE FROM mailroom.inbox WHERE event_id = $1', open],
      [
        "INSERT INTO mailroom.inbox (consumer, event_id, type, status) VALUES ('worker', $1, 'x', 'FAILED')",
        absent,
      ],
      ["UPDATE mailroom.effect SET status = 'RELEASED' WHERE event_id = $1", open],
      ['INSERT INTO mailroom.inbox_retention (consumer, days) VALUES ($1, 1)', 'worker'],
    ];
    for (const [text, value] of refused)
      expect([
        text,
        await ada.query(text, [value]).then(
          () => undefined,
          ({ code }) => code,
        ),
      ]).toEqual([text, '42501']);
    const update = (set: string, id: string) =>
      ada
        .query(`UPDATE mailroom.inbox SET ${set} WHERE event_id = $1`, [id])
        .then(({ rowCount }) => rowCount);
    expect(await update(END, final)).toBe(0);
    expect(await update(ALLOW, tooOld)).toBe(1);
    expect(await update(END, open)).toBe(1);
    expect(await update(END, open)).toBe(0);
    const log = await ada.query(
      'SELECT operator, command, subject, reason FROM mailroom.operation WHERE subject LIKE $1',
      ['worker %'],
    );
    expect(log.rows).toEqual([
      { operator: 'ada', command: 'postgres allow', subject: `worker ${tooOld}`, reason: 'known' },
      { operator: 'ada', command: 'postgres discard', subject: `worker ${open}`, reason: 'known' },
    ]);
  });

  test("sees the oldest snapshot and not the other logins' statements", async () => {
    const holder = await orders.connect();
    await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'a secret'");
    const { rows } = await ada.query('SELECT login, age_ms FROM mailroom.oldest_snapshot()');
    expect(rows).toEqual([{ login: 'orders', age_ms: expect.any(Number) }]);
    const seen = await ada.query("SELECT query FROM pg_stat_activity WHERE usename = 'orders'");
    expect(JSON.stringify(seen.rows)).not.toContain('secret');
    await holder.query('ROLLBACK');
    holder.release();
  });
});

test('a claim of the login of a relay reads only the due part of the index', async () => {
  await rig.pool.query(
    `INSERT INTO mailroom.pending (event_id, due_at) SELECT gen_random_uuid(), clock_timestamp() + n * interval '1 s' FROM generate_series(1, 20000) n`,
  );
  await rig.pool.query('ANALYZE mailroom.pending');
  const { rows } = await relay.query(
    `EXPLAIN WITH due AS MATERIALIZED (SELECT event_id FROM mailroom.pending WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT 10
      FOR UPDATE SKIP LOCKED) UPDATE mailroom.pending p SET attempts = 1 FROM due WHERE p.event_id = due.event_id RETURNING p.event_id`,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toContain('Index Cond: (due_at <= statement_timestamp())');
  expect(plan).toContain('Index Cond: (event_id = due.event_id)');
});

test('a login with every role in another database of the cluster can do nothing in this one', async () => {
  const [eventId = ''] = await rig.commit(1);
  await inboxRow('worker', eventId);
  const elsewhere = login('elsewhere');
  for (const table of ['event', 'pending', 'inbox', 'operation'])
    expect((await elsewhere.query(`SELECT 1 FROM mailroom.${table}`)).rows).toEqual([]);
  for (const statement of [
    'DELETE FROM mailroom.pending',
    'DELETE FROM mailroom.event',
    "UPDATE mailroom.inbox SET status = 'FAILED'",
  ])
    expect((await elsewhere.query(statement)).rowCount).toBe(0);
  await expect(insertEvent(elsewhere, 'orders')).rejects.toMatchObject(REFUSED);
  await expect(
    elsewhere.query('INSERT INTO mailroom.pending (event_id) VALUES ($1)', [mintEventId(Date.now(), 256)]),
  ).rejects.toMatchObject(REFUSED);
  for (const change of CHANGES) await expect(elsewhere.query(change)).rejects.toMatchObject(REFUSED);
  const own = login('elsewhere', 'other');
  await insertEvent(own, 'orders');
});

test('each of these attacks succeeds without row-level security', async () => {
  const [eventId = ''] = await rig.commit(1);
  await inboxRow('bank', eventId);
  const attacks = [
    ['event', () => insertEvent(stock, 'orders')],
    [
      'inbox',
      () => payments.query("UPDATE mailroom.inbox SET status = 'FAILED' WHERE event_id = $1", [eventId]),
    ],
    [
      'cancelled',
      () => stock.query('INSERT INTO mailroom.cancelled VALUES ($1, clock_timestamp())', [eventId]),
    ],
    ['pending', () => stock.query('DELETE FROM mailroom.pending')],
  ] as const;
  for (const [table, attack] of attacks) {
    const changed = () =>
      attack().then(
        ({ rowCount }) => rowCount,
        () => 0,
      );
    expect([table, await changed()]).toEqual([table, 0]);
    await rig.pool.query(`ALTER TABLE mailroom.${table} DISABLE ROW LEVEL SECURITY`);
    expect([table, await changed()]).toEqual([table, 1]);
    await rig.pool.query(`ALTER TABLE mailroom.${table} ENABLE ROW LEVEL SECURITY`);
  }
});

test('a relay and a report fail for a login that was granted their role by hand, to a group or elsewhere, and call nothing empty', async () => {
  await rig.pool.query(
    'CREATE ROLE by_hand LOGIN; GRANT mailroom_relay, mailroom_operator TO by_hand; CREATE ROLE team; CREATE ROLE member LOGIN; GRANT team TO member',
  );
  for (const role of ['mailroom_relay', 'mailroom_operator'] as const)
    await grantPostgresRole(rig.database, { login: 'team', role });
  await rig.commit(1);
  const refused = /no role relay in this database/;
  for (const name of ['by_hand', 'member', 'elsewhere']) {
    const telemetry = memoryTelemetry();
    const parts = { config: relayConfig(), database: nodePostgres(login(name)), telemetry };
    const bus = memoryBus();
    expect(await createPostgresRelay({ ...parts, bus }).pass()).toMatchObject({ claimed: 0, failed: true });
    await careForTables({ ...parts, clock: systemClock, random: systemRandomBytes });
    const errors = telemetry.lines().filter(({ level }) => level === 'error');
    expect(errors.map(({ extra }) => String(Object(extra).error?.message))).toEqual([
      expect.stringMatching(refused),
      expect.stringMatching(refused),
    ]);
    expect(telemetry.counted('SweepFailures')).toBe(1);
    const open = await openPostgres(`postgresql://${name}@127.0.0.1:${rig.server.port}/postgres`);
    for (const read of [
      () => open.read('SELECT event_id FROM mailroom.pending'),
      () => postgresRows(open.whole).deadLetters.dead([0], 1),
    ])
      await expect(read()).rejects.toMatchObject({ code: 'ACCESS_DENIED' });
    await open.end();
  }
  for (const pool of [ada, relay, rig.pool])
    expect((await wholeView(nodePostgres(pool)).query('SELECT 1 FROM mailroom.pending')).rows).toHaveLength(
      1,
    );
});

test('a report asks again for its rights after the database did not answer', async () => {
  const database = nodePostgres(ada);
  let fails = true;
  const view = wholeView({
    query: (text, values) => (fails ? Promise.reject(new Error('timeout')) : database.query(text, values)),
  });
  await expect(view.query('SELECT 1')).rejects.toThrow('timeout');
  fails = false;
  expect((await view.query('SELECT 1')).rows).toHaveLength(1);
});

describe('the database refuses, also past the library,', () => {
  const insert = (change: object) => {
    const row = {
      event_id: mintEventId(Date.now(), 256),
      source: 'orders',
      type: 'Placed',
      trace_id: null,
      envelope,
      ...change,
    };
    return rig.pool.query(
      `INSERT INTO mailroom.event (event_id, source, type, trace_id, envelope) VALUES ($1, $2, $3, $4, $5)`,
      [row.event_id, row.source, row.type, row.trace_id, row.envelope],
    );
  };

  test.each([
    ['an event without a source', { source: '' }],
    ['a source of 257 characters', { source: 's'.repeat(257) }],
    ['a type of 129 characters', { type: 't'.repeat(129) }],
    ['an id that has no time', { event_id: crypto.randomUUID() }],
    ['an envelope that is not an object', { envelope: '[]' }],
    [
      'an event of 1,000,000 bytes as an entry',
      { envelope: `{"a":"${'x'.repeat(1_000_000 - 14 - 12 - 8)}"}` },
    ],
  ])('%s', async (_name, change) => {
    await expect(insert(change)).rejects.toMatchObject({ code: '23514' });
  });

  test('an envelope of 400 MB', async () => {
    await expect(
      rig.pool.query(
        `INSERT INTO mailroom.event (event_id, source, type, envelope) SELECT $1, 'orders', 'Placed', '{' || repeat('x', 400000000) || '}'`,
        [mintEventId(Date.now(), 256)],
      ),
    ).rejects.toMatchObject({ code: '23514' });
  });

  test('and accepts the largest event that the bus does', async () => {
    await insert({ envelope: `{"a":"${'x'.repeat(1_000_000 - 14 - 12 - 8 - 1)}"}` });
    expect(await rig.rows('SELECT 1 FROM mailroom.event')).toHaveLength(1);
  });
});
