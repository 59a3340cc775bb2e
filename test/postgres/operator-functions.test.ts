import { Client, type Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { changeEvents } from '../../cli/deployment/postgres-outbox-changes.ts';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { careForTables } from '../../lambdas/runtime/postgres/postgres-care.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { jsonOf } from '../support/operated-mailroom.ts';
import {
  deadEvent,
  logOf,
  mailroomWith,
  type Operated,
  publishedEvent,
  relayPartsOf,
  startOperated,
  statesOf,
} from './support/operated.ts';
import { type Change, withoutClause } from './support/without-clause.ts';

let operated: Operated;
let pool: Pool;

beforeAll(async () => {
  operated = await startOperated('operator-functions');
  pool = operated.pool;
});
beforeEach(() => operated.clear());
afterAll(() => operated.close());

const APPLY = ['--apply', '--reason', 'fixed'];

describe('a lost answer', () => {
  const LOST = () => new Error('Connection terminated unexpectedly');

  /** The database, which loses the answer to a change, or the change itself, this many times. */
  const losing = (times: number, where: 'before' | 'after'): Sql => {
    let left = times;
    return {
      query: async (text, values) => {
        const isLost = text.includes('FROM mailroom.') && left-- > 0;
        if (isLost && where === 'before') throw LOST();
        const result = await operated.postgres.database.query(text, values);
        if (isLost) throw LOST();
        return result;
      },
    };
  };

  test.each([
    ['before', 1],
    ['before', 4],
    ['after', 1],
    ['after', 4],
  ] as const)(
    '%s the server, %d times, does not change what is reported, nor is it changed twice',
    async (where, times) => {
      const dead = await deadEvent(operated);
      const other = await deadEvent(operated);
      const published = await publishedEvent(operated);
      const on = async () =>
        (await mailroomWith(operated, [], async () => {}, losing(times, where))).outboxChanges;
      const note = { by: 'ada', reason: 'fixed' };
      expect(await (await on()).requeue(dead, note)).toBe(true);
      expect(await (await on()).discard(other, note)).toBe(true);
      const sentAt = Date.now();
      expect(await (await on()).publishAgain(published, sentAt, note)).toBe('queued');
      expect(await statesOf(operated, dead)).toEqual(['pending']);
      expect(await statesOf(operated, other)).toEqual(['discarded']);
      expect(await statesOf(operated, published)).toEqual(['pending', 'published']);
      expect(await logOf(operated)).toHaveLength(3);
    },
  );

  test('that stays lost is reported as unknown, and a repeated command reports what is so', async () => {
    const eventId = await deadEvent(operated);
    const lost = await mailroomWith(operated, [], async () => {}, losing(9, 'after'));
    await expect(jsonOf(lost, 'dlq', 'discard', 'dead', eventId, ...APPLY)).rejects.toThrow('COMMIT_UNKNOWN');
    expect(await statesOf(operated, eventId)).toEqual(['discarded']);
    expect(await jsonOf(await mailroomWith(operated), 'why', eventId)).toMatchObject({
      verdict: { state: 'discarded' },
    });
  });

  test('of a change that the database refuses is an error of the database', async () => {
    const eventId = await deadEvent(operated);
    const refusing: Sql = {
      query: async () => Promise.reject(Object.assign(new Error('no'), { code: '42501' })),
    };
    const refused = changeEvents({ database: refusing }, 'requeue', [eventId], 'fixed');
    await expect(refused).rejects.toMatchObject({ code: '42501' });
  });
});

/** Two sessions, of which the second waits for the first. */
async function sessions() {
  const clients = [new Client(operated.server.url), new Client(operated.server.url)] as const;
  for (const client of clients) await client.connect();
  const [first, second] = clients;
  const { rows } = await second.query('SELECT pg_backend_pid() AS pid');
  return {
    first,
    second,
    /** Resolves once the second session waits for a lock. */
    waits: async () => {
      for (;;) {
        const { rowCount } = await pool.query(
          "SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'",
          [rows[0].pid],
        );
        if (rowCount === 1) return;
        await systemClock.sleep(5);
      }
    },
    end: () => Promise.all(clients.map((client) => client.end())),
  };
}

const without = <T>(name: string, changes: readonly Change[], check: () => Promise<T>) =>
  withoutClause(pool, name, changes, check);

const TOKEN = '11111111-2222-4333-8444-555555555555';

/** A try whose answer was lost commits while the next one waits for it. @returns the answer of the next one */
async function repeatedMeanwhile(): Promise<readonly unknown[]> {
  const eventId = await deadEvent(operated);
  const { first, second, waits, end } = await sessions();
  const call = `SELECT mailroom.discard('{${eventId}}', 'fixed', '${TOKEN}')::text AS id`;
  await first.query('BEGIN');
  await first.query(call);
  const repeated = second.query(call);
  await waits();
  await first.query('COMMIT');
  const { rows } = await repeated;
  await end();
  return rows.map(({ id }) => id === eventId);
}

/** Two operators who have read the same publish an event again at once. @returns how often it is queued */
async function publishedAgainTwice(): Promise<number> {
  const eventId = await publishedEvent(operated);
  const { rows } = await pool.query('SELECT published_at::text AS at FROM mailroom.published');
  const { first, second, waits, end } = await sessions();
  const call = (token: string) =>
    `SELECT mailroom.republish('{${eventId}}', 'fixed', '${token}', '${rows[0].at}') AS id`;
  await first.query('BEGIN');
  const queued = [await first.query(call(TOKEN))];
  const other = second.query(call(mintEventId(1, 1)));
  await waits();
  await first.query('COMMIT');
  queued.push(await other);
  await end();
  return queued.filter(({ rowCount }) => rowCount === 1).length;
}

/** A relay deletes an event as expired while an operator publishes it again. @returns true if what waits has its event */
async function expiresMeanwhile(operatorFirst: boolean): Promise<boolean> {
  const at = Date.now() - 30 * 24 * HOUR_MS;
  const eventId = await publishedEvent(operated, at);
  const { first, second, waits, end } = await sessions();
  const again = (client: Client) => client.query(`SELECT mailroom.republish('{${eventId}}', 'fixed') AS id`);
  const care = (client: Client) =>
    careForTables({
      ...relayPartsOf(operated),
      database: nodePostgres({ query: (...args: [string, unknown[]]) => client.query(...args) } as never),
    });
  await first.query('BEGIN');
  await (operatorFirst ? again : care)(first);
  const other = (operatorFirst ? care : again)(second);
  await waits();
  await first.query('COMMIT');
  await other;
  await end();
  const { rows } = await pool.query(
    'SELECT e.event_id FROM mailroom.pending p LEFT JOIN mailroom.event e USING (event_id)',
  );
  return rows.every(({ event_id }) => event_id !== null) && rows.length === (operatorFirst ? 1 : 0);
}

describe('an operator function', () => {
  test('returns to a repeated call what the call before has changed, also if that commits meanwhile', async () => {
    expect(await repeatedMeanwhile()).toEqual([true]);
  });

  test('hole: the answer of a call that reads only its own changes lacks those of the lost one', async () => {
    const own = 'o.xmin = pg_current_xact_id()::xid AND o.at >';
    expect(await without('discard', [['o.at >', own]], repeatedMeanwhile)).toEqual([]);
  });

  test('queues an event once for operators who have read the same', async () => {
    expect(await publishedAgainTwice()).toBe(1);
  });

  test('hole: without the time of the last sending, it is published a third time', async () => {
    const rule = 'coalesce(p.resent_at, p.published_at) <= $4';
    expect(await without('republish', [[rule, 'true']], publishedAgainTwice)).toBe(2);
  });

  test('queues no event that expires, and keeps one that it queues', async () => {
    expect(await expiresMeanwhile(false)).toBe(true);
    expect(await expiresMeanwhile(true)).toBe(true);
  });

  test('hole: a select in place of the update queues an event that is deleted', async () => {
    const update = 'UPDATE mailroom.published p SET resent_at = clock_timestamp() WHERE p.event_id';
    const select = 'SELECT p.event_id FROM mailroom.published p WHERE p.event_id';
    const changes = [
      [update, select],
      ['\n    RETURNING p.event_id', ''],
    ] as const;
    expect(await without('republish', changes, () => expiresUnlocked())).toBe(false);
  });
});

/** As {@link expiresMeanwhile}, without a lock on which the second session waits. */
async function expiresUnlocked(): Promise<boolean> {
  const eventId = await publishedEvent(operated, Date.now() - 30 * 24 * HOUR_MS);
  const { first, second, end } = await sessions();
  await first.query('BEGIN');
  await first.query(`SELECT mailroom.republish('{${eventId}}', 'fixed') AS id`);
  await careForTables({ ...relayPartsOf(operated), database: nodePostgres(second as never) });
  await first.query('COMMIT');
  await end();
  const { rows } = await pool.query(
    'SELECT e.event_id FROM mailroom.pending p LEFT JOIN mailroom.event e USING (event_id)',
  );
  return rows.every(({ event_id }) => event_id !== null);
}

test('a discarded event is kept for 35 days, and one that was published before longer than that', async () => {
  const [old, young, published] = [
    await deadEvent(operated),
    await deadEvent(operated),
    await publishedEvent(operated, Date.now() - 30 * 24 * HOUR_MS),
  ];
  await pool.query('DELETE FROM mailroom.dead');
  await pool.query(
    `INSERT INTO mailroom.discarded SELECT id, clock_timestamp() - days * interval '1 day', 'ada', 'x' FROM unnest($1::uuid[], ARRAY[36, 34, 34]) AS t (id, days)`,
    [[old, young, published]],
  );
  await careForTables(relayPartsOf(operated));
  const { rows } = await pool.query('SELECT event_id::text AS id FROM mailroom.event ORDER BY 1');
  expect(rows.map(({ id }) => id)).toEqual([young, published].toSorted());
  expect(await statesOf(operated, old)).toEqual([]);
});
