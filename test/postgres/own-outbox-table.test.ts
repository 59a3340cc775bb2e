import type { Pool } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nodePostgres, type PgClient, type PgPool } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox, type PostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { codeOf } from '../docs/page-module.ts';
import { crashSchedules, type Turn } from '../support/crash-schedules.ts';
import { PRODUCER, type Rig, startRig } from './support/rig.ts';

const page = 'docs/recipes/own-outbox-table.md';
type Claim = (pool: Pick<Pool, 'query'>) => Promise<{ id: string }[]>;
const { claimOldRows } = await codeOf<{ claimOldRows: Claim }>(page, 'src/claim-old-rows.ts');
const { moveOldRows } = await codeOf<{
  moveOldRows(outbox: PostgresOutbox<PgClient>, since: Date): Promise<number>;
}>(page, 'src/move-old-rows-postgres.ts');

const SINCE = new Date('2026-01-01T00:00:00Z');
let rig: Rig;

beforeAll(async () => {
  rig = await startRig('own-outbox-table');
  await rig.pool.query(
    'CREATE TABLE outbox (id int PRIMARY KEY, order_id text, total_cents int, created_at timestamptz, sent_at timestamptz)',
  );
  await rig.pool.query('ALTER TABLE outbox ADD COLUMN publisher text');
});
afterAll(() => rig.close());

/** An empty Mailroom, and these old rows. */
async function fill(...rows: [id: number, createdAt: Date][]): Promise<void> {
  await rig.pool.query(
    'DELETE FROM outbox; DELETE FROM mailroom.pending; DELETE FROM mailroom.event; DELETE FROM mailroom.commit',
  );
  for (const [id, at] of rows) await rig.pool.query("INSERT INTO outbox VALUES ($1, '7', 42, $2)", [id, at]);
}

/** It passes over a row that is locked, so that a program never waits for another one that waits for its turn. */
const MARK =
  'UPDATE outbox SET sent_at = now() WHERE id IN (SELECT id FROM outbox WHERE id = $1 FOR UPDATE SKIP LOCKED)';

/** One poll of the old publisher, which publishes with no transaction open. */
async function publishOld(claim: Claim, published: string[], turn: Turn = (call) => call()): Promise<void> {
  for (const { id } of await turn(() => claim(rig.pool))) {
    await turn(async () => published.push(id));
    await turn(() => rig.pool.query(MARK, [id]));
  }
}

/** The statements that decide. A crash at another one in between leaves the same as one before the COMMIT. */
const STEP = /^(UPDATE|COMMIT)/;

/** Moves the rows, with a turn before each step. A crash ends the connection. */
async function move(turn: Turn = (call) => call(), onCrash: (act: () => void) => void = () => {}) {
  const pool: PgPool = {
    query: (text, values) => rig.pool.query(text, values),
    connect: async () => {
      const client = await rig.pool.connect();
      onCrash(() => client.release(true));
      return {
        query: (text, values) =>
          STEP.test(text) ? turn(() => client.query(text, values)) : client.query(text, values),
        release: (error) => client.release(error),
        on: (event, listener) => client.on(event, listener),
        off: (event, listener) => client.off(event, listener),
      };
    },
  };
  const config = { ...PRODUCER, publishes: ['OrderPlaced'] };
  const outbox = createPostgresOutbox({ config, database: nodePostgres(pool), telemetry: memoryTelemetry() });
  return moveOldRows(outbox, SINCE);
}

async function events(): Promise<number[]> {
  const rows = await rig.rows('SELECT envelope FROM mailroom.event ORDER BY event_id');
  return rows.map(({ envelope }) => JSON.parse(String(envelope)).occurredAt);
}

/** Every order of two programs: a row is published by one of them. */
function race(claim: Claim): Promise<number> {
  return crashSchedules(async () => {
    await fill([1, SINCE]);
    const published: string[] = [];
    return {
      programs: [
        (turn) => publishOld(claim, published, turn),
        async (turn, onCrash) => void (await move(turn, onCrash)),
      ],
      check: async () => {
        await publishOld(claim, published);
        await move();
        const [old, moved] = [new Set(published).size, (await events()).length];
        if (old + moved !== 1) throw new Error(`${old} by the old, ${moved} by Mailroom`);
      },
    };
  }, 1);
}

test('an old row is published by the old publisher or by Mailroom, in every order of their statements, whatever crashes', async () => {
  expect(await race(claimOldRows)).toBeGreaterThan(50);
});

test('a claim that is rolled back with the publish leaves the row to both', async () => {
  const unclaimed: Claim = async (pool) =>
    (await pool.query('SELECT id FROM outbox WHERE sent_at IS NULL')).rows;
  await expect(race(unclaimed)).rejects.toThrow('1 by the old, 1 by Mailroom');
});

test('rows from before the claims stay with the old publisher, and a moved event has the time of its row', async () => {
  const [before, after] = [new Date(SINCE.getTime() - 1), new Date(SINCE.getTime() + 1)];
  await fill([1, before], [2, SINCE], [3, after]);
  expect(await move()).toBe(2);
  expect(await move()).toBe(0);
  const rows = await rig.rows('SELECT publisher FROM outbox ORDER BY id');
  expect(rows.map(({ publisher }) => publisher)).toEqual([null, 'mailroom', 'mailroom']);
  expect((await events()).toSorted()).toEqual([SINCE.getTime(), after.getTime()]);
});
