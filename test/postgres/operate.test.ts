import type { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type OpenPostgres, openPostgres } from '../../cli/deployment/postgres-database.ts';
import { runMailroom } from '../../cli/program.ts';
import { runChecks } from '../../cli/reports/checks/check.ts';
import { postgresChecks } from '../../cli/reports/checks/postgres-checks.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { eventIdTime, mintEventId, minuteOf, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { capturedIo } from '../support/captured-io.ts';
import { jsonOf } from '../support/operated-mailroom.ts';
import {
  deadEvent as deadEventOf,
  storedEvent as eventOf,
  mailroomWith,
  type Operated,
  startOperated,
} from './support/operated.ts';

let operated: Operated;
let pool: Pool;
let postgres: OpenPostgres;

beforeAll(async () => {
  operated = await startOperated('operate');
  pool = operated.pool;
  postgres = await openPostgres(operated.server.url);
});

afterAll(async () => {
  await postgres.end();
  await operated.close();
});

beforeEach(() => operated.clear());

const mailroom = (...items: readonly Item[]) => mailroomWith(operated, items);

const storedEvent = (at: number, aggregateId?: string) => eventOf(operated, at, aggregateId);

const deadEvent = () => deadEventOf(operated);

/** The row of a message in the inbox in DynamoDB. */
function processed(eventId: string): Item {
  const { PK, SK } = inboxKey('worker', eventId);
  const type = 'ThingHappened';
  return { PK, SK, schema: SCHEMA, type, status: 'PROCESSED', attempts: 1, processedAt: Date.now() };
}

const json = async (...argv: string[]) => jsonOf(await mailroom(), ...argv);

test('status counts the events that wait, also old ones, and those that are dead', async () => {
  const old = await storedEvent(Date.now() - 86_400_000);
  await pool.query(`INSERT INTO mailroom.pending (event_id) VALUES ($1)`, [old]);
  await deadEvent();
  const { outbox } = await json('status');
  expect(outbox).toMatchObject({ pending: 1, dead: 1, unreadable: 0 });
  expect(outbox.inDatabase).toMatchObject({ pending: 1, oldest: old });
  expect(outbox.inDatabase.oldestPendingMs).toBeGreaterThanOrEqual(86_400_000);
  // No sweep publishes it.
  expect(outbox).toMatchObject({ oldestPendingMs: 0, oldestCommittedMs: 0 });
});

test('events list shows the published, the pending and the dead', async () => {
  const published = await storedEvent(Date.now() - 60_000);
  await pool.query('INSERT INTO mailroom.published VALUES ($1, clock_timestamp())', [published]);
  const pending = await storedEvent(Date.now() - 60_000);
  await pool.query(`INSERT INTO mailroom.pending (event_id, attempts, last_error) VALUES ($1, 2, 'no bus')`, [
    pending,
  ]);
  const dead = await deadEvent();
  const unpublished = await json('events', 'list');
  const shown = JSON.stringify(unpublished);
  expect(shown).toContain(pending);
  expect(shown).toContain('no bus');
  expect(shown).toContain(dead);
  expect(shown).not.toContain(published);
});

test('an event is listed under the status that it is shown with, and under no other', async () => {
  const dead = await deadEvent();
  await pool.query('INSERT INTO mailroom.published VALUES ($1, clock_timestamp())', [dead]);
  const cancelled = await storedEvent(Date.now() - 60_000);
  await pool.query('INSERT INTO mailroom.cancelled VALUES ($1, clock_timestamp())', [cancelled]);
  const { stored } = await mailroom();
  const listed: Record<string, string[]> = {};
  for (const status of ['PENDING', 'DEAD', 'PUBLISHED', 'CANCELLED'] as const) {
    listed[status] = [];
    for (const id of [dead, cancelled])
      for await (const { items } of stored.outbox.inMinute(
        minuteOf(eventIdTime(id)),
        0,
        { status },
        ({ SK }) => SK,
      ))
        for (const key of items)
          if (key.endsWith(id) && !listed[status].includes(id)) listed[status].push(id);
  }
  expect(listed).toEqual({ PENDING: [], DEAD: [dead], PUBLISHED: [], CANCELLED: [cancelled] });
});

test('why finds an event by its id, the beginning of it, and its aggregate', async () => {
  const eventId = await storedEvent(Date.now() - 60_000, 'order-7');
  await pool.query('INSERT INTO mailroom.published VALUES ($1, clock_timestamp())', [eventId]);
  await pool.query(
    `INSERT INTO mailroom.inbox (consumer, event_id, type, status, fence, attempts, retry_at, last_error, fingerprint, past_attempts)
      VALUES ('worker', $1, 'ThingHappened', 'FAILED', 'f', 1, clock_timestamp() + interval '1 min', 'the bank is closed', 'worker Error', '[]')`,
    [eventId],
  );
  await pool.query(
    `INSERT INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by, ended_at, error)
      VALUES ('worker', $1, 'charge', 'RELEASED', 'f', 1, clock_timestamp(), clock_timestamp(), clock_timestamp(), 'no answer')`,
    [eventId],
  );
  for (const id of [eventId, eventId.slice(0, 18), 'order-7']) {
    const { verdict, events } = await json('why', id);
    expect(verdict).toMatchObject({ state: 'retrying', eventId, consumer: 'worker' });
    expect(JSON.stringify(events)).toContain('the bank is closed');
  }
  expect(JSON.stringify(await json('messages', 'list', '--failed'))).toContain(eventId);
});

test('dlq list shows the dead events', async () => {
  const eventId = await deadEvent();
  const listed = JSON.stringify(await json('dlq', 'list', 'dead'));
  expect(listed).toContain(eventId);
  expect(listed).toContain('Detail is not valid');
});

test('why says that an event is scheduled, and that it was cancelled', async () => {
  const dueAt = Date.now() + 3_600_000;
  const eventId = await storedEvent(dueAt);
  await pool.query(
    'INSERT INTO mailroom.pending (event_id, due_at) VALUES ($1, to_timestamp($2::float8 / 1000))',
    [eventId, dueAt],
  );
  expect(await json('why', eventId)).toMatchObject({ verdict: { state: 'scheduled' } });
  await pool.query('DELETE FROM mailroom.pending');
  await pool.query('INSERT INTO mailroom.cancelled VALUES ($1, clock_timestamp())', [eventId]);
  expect(await json('why', eventId)).toMatchObject({ verdict: { state: 'cancelled' } });
});

test('a rejected message is listed', async () => {
  const eventId = await storedEvent(Date.now() - 60_000);
  await pool.query(
    `INSERT INTO mailroom.inbox (consumer, event_id, type, status, fence, attempts, rejected_at, rejected_ids, reason, last_error, fingerprint)
      VALUES ('worker', $1, 'ThingHappened', 'REJECTED', 'f', 1, clock_timestamp(), '{m1}', 'POISON_MESSAGE', 'no such order', 'worker POISON')`,
    [eventId],
  );
  expect(JSON.stringify(await json('messages', 'list'))).toContain('no such order');
});

test('an event of PostgreSQL that a consumer has in DynamoDB is processed, for why and for the audit', async () => {
  const at = Date.now() - HOUR_MS;
  const [eventId, unreceived] = [await storedEvent(at), await storedEvent(at)];
  await pool.query('INSERT INTO mailroom.published VALUES ($1, $3), ($2, $3)', [
    eventId,
    unreceived,
    new Date(at),
  ]);
  const made = await mailroom(processed(eventId));
  expect(await jsonOf(made, 'why', eventId)).toMatchObject({ verdict: { state: 'processed' } });
  const audit = createAudit({ ...made, rules: { describe: async () => undefined } });
  const report = await audit.run({ since: at - HOUR_MS, until: Date.now() });
  expect(report).toMatchObject({ events: 2, published: 2, missing: [{ eventId: unreceived }] });
  expect(report.consumers.worker).toMatchObject({ expected: 2, processed: 1, missing: 1 });
});

test('a page has the rows of both storages in their order, and goes on where the shorter one ends', async () => {
  const at = Date.now() - HOUR_MS;
  const ids: string[] = [];
  for (let n = 0; n < 6; n += 1) ids.push(n % 2 === 0 ? await storedEvent(at) : mintEventId(at, 1));
  const rows = ids.filter((_id, n) => n % 2 === 1).map((eventId) => ({ ...outboxKeyOf(eventId), eventId }));
  const { stored } = await mailroom(...rows);
  for (const pageSize of [1, 2, 5, undefined]) {
    const found: string[] = [];
    const shards = [0, 1].map((shard) =>
      stored.outbox.inMinute(minuteOf(at), shard, { pageSize }, ({ SK }) => SK),
    );
    let last: boolean | undefined;
    for await (const { items, more } of shards[0] ?? []) {
      found.push(...items);
      last = more;
    }
    expect(found).toEqual(ids.toSorted().map((id) => `EVENT#${id}`));
    expect(last).toBe(false);
    for await (const { items } of shards[1] ?? []) expect(items).toEqual([]);
  }
});

test('a write of a row in DynamoDB is made, and of an inbox row in PostgreSQL refused', async () => {
  const eventId = await deadEvent();
  await pool.query(`INSERT INTO mailroom.inbox_retention (consumer, days) VALUES ('moved', 14)`);
  const { table, dynamo } = await mailroom();
  await recordOperation({ table }, { by: 'ada', reason: 'known', command: 'ack', subject: 'x' });
  const own = processed(mintEventId(Date.now(), 1));
  await table.transact([{ Put: { Item: own } }]);
  expect(dynamo.items()).toContainEqual(own);
  const refused = { code: 'NOT_IN_DATABASE' };
  const key = inboxKey('moved', eventId);
  const Item = { PK: key.PK, SK: key.SK };
  // It has no row yet, but its consumer's inbox is there.
  await expect(table.updateEach([{ key, set: { a: 1 }, when: {} }])).rejects.toMatchObject(refused);
  await expect(table.write({ Put: { Item } })).rejects.toMatchObject(refused);
  await expect(table.transact([{ Put: { Item: own } }, { Put: { Item } }])).rejects.toMatchObject(refused);
});

test('requeues dead events, and says who did it', async () => {
  const eventId = await deadEvent();
  const other = mintEventId(Date.now(), 256);
  const { io, written } = capturedIo();
  const argv = ['postgres', 'requeue', eventId, other, '--reason', 'the bus is back'];
  await runMailroom([...argv, '--database', operated.server.url, '--json'], io);
  expect(JSON.parse(written.out)).toMatchObject({ requeued: [eventId], notDead: [other] });
  expect((await json('status')).outbox).toMatchObject({ pending: 1, dead: 0 });
  const { operations } = await json('operations');
  expect(operations).toMatchObject([{ command: 'postgres requeue', subject: eventId, by: 'postgres' }]);
});

test('doctor finds a stuck event, a slot without a limit, a login without timeouts or that does not exist, and a table that is open', async () => {
  const eventId = await storedEvent(Date.now() - 900_000);
  await pool.query(
    `INSERT INTO mailroom.pending (event_id, due_at) VALUES ($1, clock_timestamp() - interval '10 min')`,
    [eventId],
  );
  await pool.query(
    `CREATE ROLE careless LOGIN; INSERT INTO mailroom.login VALUES ('careless', 'producer', 'things'), ('gone', 'relay', '');
      ALTER TABLE mailroom.inbox DISABLE ROW LEVEL SECURITY`,
  );
  await pool.query(`SELECT pg_create_physical_replication_slot('cdc', true)`);
  const found = await runChecks(postgresChecks(postgres, () => Date.now()));
  expect(found.problems.map(({ problem }) => problem)).toEqual([
    'pending-stuck',
    'slot-unlimited',
    'login-timeouts',
    'login-absent',
    'row-security',
  ]);
  const [, , login, absent, open] = found.problems;
  expect(login?.fix).toEqual([
    'npx',
    'cdk-mailroom',
    'postgres',
    'grant',
    'careless',
    '--role',
    'producer',
    '--service',
    'things',
  ]);
  for (const fix of [absent?.fix, open?.fix]) await pool.query(fix?.at(-1) ?? '');
  await pool.query(
    `SELECT pg_drop_replication_slot('cdc'); DROP ROLE careless; DELETE FROM mailroom.login WHERE login <> 'ada'; TRUNCATE mailroom.pending`,
  );
  expect((await runChecks(postgresChecks(postgres, () => Date.now()))).problems).toEqual([]);
});
