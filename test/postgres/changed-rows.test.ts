import { CamelCasePlugin, CompiledQuery, Kysely, ParseJSONResultsPlugin, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { kysely } from '../../lambdas/runtime/database/orm-databases.ts';
import type { PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import type { Database, Sql, SqlRow } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { newEventId, postgresConsumer, postgresHandlers } from './consumer-parts.ts';
import { relayConfig } from './support/relay-config.ts';
import { PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('changed-rows');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

type Change = (name: string, value: unknown) => readonly [string, unknown];

const CHANGES: Readonly<Record<string, Change>> = {
  'renames columns': (name, value) => [name.replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase()), value],
  'parses JSON': (name, value) => [
    name,
    typeof value === 'string' && value.startsWith('{') ? JSON.parse(value) : value,
  ],
  'parses every value': (name, value) => [name, { value }],
};

/** A database whose adapter changes the rows that it returns. */
function changed(database: Database<PgClient>, change: Change): Database<PgClient> {
  const of = (sql: Sql): Sql => ({
    query: async (text, values) => {
      const { rows } = await sql.query(text, values);
      const entries = (row: SqlRow) => Object.entries(row).map(([name, value]) => change(name, value));
      return { rows: rows.map((row) => Object.fromEntries(entries(row))) };
    },
  });
  return { ...of(database), in: (tx) => of(database.in(tx)), transaction: database.transaction };
}

const attempts = (table: string) => rig.rows(`SELECT attempts FROM mailroom.${table}`);

describe.each(Object.entries(CHANGES))('an adapter that %s', (_name, change) => {
  test('publishes nothing, counts no attempt and kills no event', async () => {
    await rig.commit(1, 2);
    const [bus, telemetry] = [memoryBus(), memoryTelemetry()];
    const database = changed(rig.database, change);
    const relay = createPostgresRelay({ config: relayConfig(), database, bus, telemetry });
    for (const _pass of [1, 2, 3, 4]) {
      expect(await relay.pass()).toEqual({ claimed: 0, published: 0, failed: true });
      await rig.rows('UPDATE mailroom.pending SET due_at = clock_timestamp()');
    }
    expect(bus.published()).toEqual([]);
    expect(await attempts('pending')).toEqual([{ attempts: 0 }, { attempts: 0 }]);
    expect(await attempts('dead')).toEqual([]);
    expect(telemetry.lines()[0]?.extra).toMatchObject({ error: { code: 'BAD_ROW' } });
  });

  test('runs no handler, and counts no attempt of a message', async () => {
    const database = changed(rig.database, change);
    const ran: string[] = [];
    const handler = postgresHandlers(database).leased(ThingHappened, async ({ eventId }, ctx) => {
      ran.push(eventId);
      await ctx.commit({});
    });
    const { deliver } = postgresConsumer(database, [handler]);
    const eventId = newEventId();
    for (const receives of [1, 2, 3, 4]) expect(await deliver(eventId, receives)).toEqual(['BAD_ROW']);
    expect(ran).toEqual([]);
    expect(await rig.rows('SELECT 1 FROM mailroom.inbox WHERE event_id = $1', eventId)).toEqual([]);
    const repaired = postgresConsumer(rig.database, [handler]);
    expect(await repaired.deliver(eventId, 5)).toEqual([]);
  });
});

test('an adapter that parses every value lets no event be committed', async () => {
  const database = changed(rig.database, (name, value) => [name, { value }]);
  const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
  await expect(outbox.commit(async () => [placed(1)])).rejects.toMatchObject({ code: 'BAD_ROW' });
  expect(await rig.rows('SELECT 1 FROM mailroom.event')).toEqual([]);
});

test('Kysely with plugins publishes an event once, and your transaction keeps its plugins', async () => {
  const plugins = [new CamelCasePlugin(), new ParseJSONResultsPlugin()];
  const pool = new Pool({ connectionString: rig.server.url });
  const db = new Kysely<{ place: { streetName: string } }>({
    dialect: new PostgresDialect({ pool }),
    plugins,
  });
  const database = kysely(db, CompiledQuery.raw);
  await database.query('CREATE TABLE place (street_name text)');
  const [bus, telemetry] = [memoryBus(), memoryTelemetry()];
  const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry });
  await outbox.commit(async (tx) => {
    await tx.insertInto('place').values({ streetName: 'Elm' }).execute();
    expect(await tx.selectFrom('place').selectAll().execute()).toEqual([{ streetName: 'Elm' }]);
    return [placed(1)];
  });
  const relay = createPostgresRelay({ config: relayConfig(), database, bus, telemetry });
  expect(await relay.pass()).toEqual({ claimed: 1, published: 1, failed: false });
  expect(await rig.rows('SELECT 1 FROM mailroom.pending')).toEqual([]);
  await db.destroy();
});
