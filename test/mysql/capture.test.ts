import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { lastIdOf } from '../../lambdas/runtime/store/event-id.ts';
import { captureProblems } from '../../lambdas/runtime/store/mysql/capture-check.ts';
import { DELETE_CAPTURED } from '../../lambdas/runtime/store/mysql/capture-schema.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { PRODUCER, placed } from '../postgres/support/rig.ts';
import { runNamed } from '../support/named-command.ts';
import { type Rig, startRig } from './support/rig.ts';

const DAY_MS = 24 * 3_600_000;

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-capture', { 'log-bin': 'binlog', 'binlog-format': 'ROW', 'server-id': '1' });
});
beforeEach(async () => {
  await rig.clear();
  for (const text of GOOD) await rig.pool.query(text);
});
afterAll(() => rig.close());

const GOOD = [
  'SET GLOBAL binlog_format = ROW',
  'SET GLOBAL binlog_row_image = FULL',
  'SET GLOBAL binlog_expire_logs_seconds = 864000',
];

const outboxOf = (now?: number, database = rig.database) =>
  createMysqlOutbox<PoolConnection>({
    config: PRODUCER,
    database,
    relay: 'cdc',
    telemetry: memoryTelemetry(),
    ...(now !== undefined && { clock: { now: () => now, sleep: async () => {} } }),
  });

async function commit(n: number, ageDays = 0): Promise<string> {
  const [event] = await outboxOf(Date.now() - ageDays * DAY_MS).commit(async () => [placed(n)]);
  return event?.eventId ?? '';
}

const ids = async () =>
  (await rig.rows('SELECT event_id FROM mailroom.captured')).map(({ event_id }) => event_id);

const beat = (days = 2, connector = 'mailroom') =>
  rig.pool.query('CALL mailroom.delete_captured(?, ?)', [connector, days]);

/** Lets time pass since all heartbeats. */
const pass = (hours: number, column: 'since' | 'beat_at' = 'since') =>
  rig.pool.query(`UPDATE mailroom.capture SET ${column} = ${column} - INTERVAL ? HOUR`, [hours]);

/** A connector that has beaten without a gap for 30 days. */
async function oldConnector(days?: number, connector?: string): Promise<void> {
  await beat(days, connector);
  await pass(720);
}

describe("an outbox with relay: 'cdc'", () => {
  test('writes the event with its aggregate into the table of captured events, and no place in the queue', async () => {
    const id = await commit(1);
    expect(
      await rig.rows('SELECT event_id, source, type, aggregate_type, aggregate_id FROM mailroom.captured'),
    ).toEqual([
      expect.objectContaining({
        event_id: id,
        source: PRODUCER.service,
        type: 'Placed',
        aggregate_type: 'order',
      }),
    ]);
    expect(await rig.rows('SELECT * FROM mailroom.pending')).toEqual([]);
    expect(await rig.rows('SELECT * FROM mailroom.event')).toEqual([]);
  });

  test('refuses what change data capture cannot publish, before anything is sent', async () => {
    for (const draft of [{ deliverAt: Date.now() + 60_000 }, { aggregateId: 'x'.repeat(1_025) }])
      await expect(outboxOf().commit(async () => [{ ...placed(1), ...draft }])).rejects.toMatchObject({
        code: 'INVALID_EVENT',
      });
    expect(() =>
      createMysqlOutbox({ config: PRODUCER, database: rig.database, relay: 'kafka' as 'cdc' }),
    ).toThrow(/createMysqlOutbox: relay is "kafka"/);
  });

  test('the database refuses a row without a key, or with one that is too long', async () => {
    const insert = (type: string, id: string) =>
      rig.pool.query(
        "INSERT INTO mailroom.captured (event_id, source, type, envelope, aggregate_type, aggregate_id) VALUES ('019b76da-a800-7000-8000-000000000001', 'orders', 'Placed', '{}', ?, ?)",
        [type, id],
      );
    for (const [type, id] of [
      ['', 'a'],
      ['a', ''],
      ['a', '€'.repeat(342)],
    ] as const)
      await expect(insert(type, id)).rejects.toMatchObject({ errno: 4025 });
  });

  test('a lost answer to COMMIT is decided by the event', async () => {
    const lost = {
      ...rig.database,
      transaction: async <T>(run: (tx: PoolConnection) => Promise<T>) => {
        await rig.database.transaction(run);
        throw Object.assign(new Error('lost'), { code: 'PROTOCOL_CONNECTION_LOST' });
      },
    };
    await outboxOf(undefined, lost).commit(async () => [placed(1)]);
    expect(await ids()).toHaveLength(1);
  });

  test.each([
    ['SET SESSION binlog_format = MIXED', 'binlog_format'],
    ['SET SESSION binlog_row_image = MINIMAL', 'binlog_row_image'],
    ['SET SESSION sql_log_bin = OFF', 'sql_log_bin'],
    ['SET GLOBAL binlog_expire_logs_seconds = 3600', 'binlog_expire_logs_seconds'],
  ])('%s: its first event is refused, with the name of the setting', async (set, name) => {
    const pool = rig.poolOf({ connectionLimit: 1 });
    try {
      await pool.query(set);
      await expect(outboxOf(undefined, mysql2(pool)).commit(async () => [placed(1)])).rejects.toMatchObject({
        code: 'BAD_DATABASE',
        message: expect.stringContaining(name),
      });
      expect(await ids()).toEqual([]);
    } finally {
      await pool.end();
    }
  });
});

/** A rule, its clauses, and a situation. @returns true if the rule is broken in it */
interface Hole {
  readonly rule: string;
  readonly change: readonly [clause: string, replacement: string];
  readonly isBroken: () => Promise<boolean>;
}

const HOLES: readonly Hole[] = [
  {
    rule: 'an event stays for the retention',
    change: ['INTERVAL retention_days DAY', 'INTERVAL 0 DAY'],
    isBroken: async () => {
      await oldConnector();
      await commit(1, 1.9);
      await beat();
      return (await ids()).length === 0;
    },
  },
  {
    rule: 'a new connector deletes nothing for half of the retention: Kafka may not have its snapshot',
    change: ['since <= at - INTERVAL retention_days * 12 HOUR AND', ''],
    isBroken: async () => {
      await commit(1, 7);
      await beat();
      await pass(23);
      await beat();
      return (await ids()).length === 0;
    },
  },
  {
    rule: 'a connector that was away counts as new: it may have lost its position',
    change: ['beat_at < at - INTERVAL days * 12 HOUR OR', ''],
    isBroken: async () => {
      await oldConnector();
      await pass(25, 'beat_at');
      await commit(1, 7);
      await beat();
      return (await ids()).length === 0;
    },
  },
  {
    rule: 'a clock that was ahead holds back no deletion: since when a connector beats is not in the future',
    change: ['OR since > at', ''],
    isBroken: async () => {
      await oldConnector();
      await commit(1, 7);
      await pass(-60 * 24);
      await pass(-30 * 24, 'beat_at');
      await beat();
      expect(await ids()).toHaveLength(1);
      await pass(25);
      await beat();
      return (await ids()).length > 0;
    },
  },
  {
    rule: 'nothing is deleted while another connector is away: its snapshot reads the events',
    change: ['AND beat_at >= at - INTERVAL retention_days * 12 HOUR', ''],
    isBroken: async () => {
      await oldConnector(2, 'second');
      await pass(25, 'beat_at');
      await oldConnector();
      await commit(1, 7);
      await beat();
      return (await ids()).length === 0;
    },
  },
  {
    rule: 'the longest retention counts',
    change: ['MIN(beat_at - INTERVAL retention_days DAY)', 'MIN(beat_at - INTERVAL days DAY)'],
    isBroken: async () => {
      await oldConnector(10, 'second');
      await oldConnector();
      await commit(1, 7);
      await beat();
      return (await ids()).length === 0;
    },
  },
  {
    rule: 'a retention of less than a day is refused',
    change: ['days < 1', 'FALSE'],
    isBroken: () =>
      beat(0).then(
        () => true,
        () => false,
      ),
  },
];

async function withProcedure<T>(text: string, check: () => Promise<T>): Promise<T> {
  const replace = async (procedure: string) => {
    await rig.pool.query('DROP PROCEDURE mailroom.delete_captured');
    await rig.pool.query(procedure);
  };
  await replace(text);
  try {
    return await check();
  } finally {
    await replace(DELETE_CAPTURED);
  }
}

describe('the retention of captured events', () => {
  test.each(HOLES)('$rule; without its clause, it is broken', async ({ change, isBroken }) => {
    expect(await isBroken()).toBe(false);
    await rig.clear();
    expect(DELETE_CAPTURED).toContain(change[0]);
    expect(await withProcedure(DELETE_CAPTURED.replace(...change), isBroken)).toBe(true);
  });

  test('deletes an event after that time, and no younger one', async () => {
    await oldConnector();
    await commit(1, 2.1);
    const young = await commit(2, 1.9);
    await beat();
    expect(await ids()).toEqual([young]);
  });

  test('reads the ids of the table as times', async () => {
    await oldConnector();
    const at = Date.now() - 2 * DAY_MS;
    const insert = (id: string) =>
      rig.pool.query(
        "INSERT INTO mailroom.captured (event_id, source, type, envelope, aggregate_type, aggregate_id) VALUES (?, 'orders', 'Placed', '{}', 'a', 'b')",
        [id],
      );
    await insert(lastIdOf(at - 60_000));
    await insert(lastIdOf(at + 60_000));
    await beat();
    expect(await ids()).toEqual([lastIdOf(at + 60_000)]);
  });
});

describe('the filters of the binlog', () => {
  /** A server with these options. */
  async function onServer(options: Readonly<Record<string, string>>, check: (server: Rig) => Promise<void>) {
    const name = `mysql-${Object.keys(options).join('-')}`;
    const server = await startRig(name, {
      'log-bin': 'binlog',
      'binlog-format': 'ROW',
      'server-id': '1',
      ...options,
    });
    try {
      await check(server);
    } finally {
      await server.close();
    }
  }
  const settingsOf = async ({ database }: Rig) =>
    (await captureProblems(database)).flatMap(({ kind, subject }) => (kind === 'setting' ? subject : []));
  const INSERT =
    "INSERT INTO mailroom.captured (event_id, source, type, envelope, aggregate_type, aggregate_id) VALUES ('019b76da-a800-7000-8000-000000000001', 'orders', 'Placed', '{}', 'a', 'b')";
  /** Returns true if rows of the table of captured events are in the binlog. */
  const isLogged = async ({ rows }: Rig) =>
    (await rows('SHOW BINLOG EVENTS')).some(
      ({ Event_type, Info }) => Event_type === 'Table_map' && String(Info).includes('mailroom.captured'),
    );

  test.each([
    ['binlog-do-db', 'shop', 'binlog_do_db'],
    ['binlog-ignore-db', 'mailroom', 'binlog_ignore_db'],
  ])('%s = %s leaves out its events: they are refused, and found', async (option, value, subject) => {
    await onServer({ [option]: value }, async (server) => {
      const committed = outboxOf(undefined, server.database).commit(async () => [placed(1)]);
      await expect(committed).rejects.toMatchObject({
        code: 'BAD_DATABASE',
        message: expect.stringContaining(subject),
      });
      expect(await server.rows('SELECT 1 FROM mailroom.captured')).toEqual([]);
      await server.pool.query(INSERT);
      expect(await isLogged(server)).toBe(false);
      expect(await settingsOf(server)).toEqual([subject]);
    });
  });

  test('do not count those to ignore if they name the database', async () => {
    await onServer({ 'binlog-do-db': 'mailroom', 'binlog-ignore-db': 'mailroom' }, async (server) => {
      await outboxOf(undefined, server.database).commit(async () => [placed(1)]);
      expect(await isLogged(server)).toBe(true);
      expect(await settingsOf(server)).toEqual([]);
    });
  });

  test('need a right, which the refusal names', async () => {
    await rig.pool.query("CREATE USER 'orders'@'%'");
    await rig.pool.query("GRANT SELECT, INSERT, UPDATE, DELETE ON mailroom.* TO 'orders'@'%'");
    const commits = async () => {
      const pool = rig.poolOf({ user: 'orders' });
      const committed = outboxOf(undefined, mysql2(pool)).commit(async () => [placed(1)]);
      return committed.finally(() => pool.end());
    };
    await expect(commits()).rejects.toMatchObject({
      code: 'BAD_DATABASE',
      message: expect.stringContaining('GRANT REPLICATION CLIENT ON *.*'),
    });
    await rig.pool.query("GRANT REPLICATION CLIENT ON *.* TO 'orders'@'%'");
    await commits();
    expect(await ids()).toHaveLength(1);
  });

  test('are read on MySQL 8.4, which does not know SHOW MASTER STATUS', async () => {
    const asked: string[] = [];
    const { query } = rig.database;
    const newer = (text: string, values?: readonly unknown[]) => {
      if (!text.startsWith('SHOW MASTER') && !text.startsWith('SHOW BINARY')) return query(text, values);
      asked.push(text);
      if (text === 'SHOW MASTER STATUS') return query('SHOW MASTERS STATUS');
      return query("SELECT 'shop,billing' AS Binlog_Do_DB, '' AS Binlog_Ignore_DB");
    };
    await commit(1);
    expect(await settingsOf({ ...rig, database: { ...rig.database, query: newer } })).toEqual([
      'binlog_do_db',
    ]);
    expect(asked).toEqual(['SHOW MASTER STATUS', 'SHOW BINARY LOG STATUS']);
  });
});

describe('the findings of change data capture', () => {
  const found = async () => (await captureProblems(rig.database)).map(({ text }) => text);

  test('are none without captured events, nor while the connector beats', async () => {
    expect(await found()).toEqual([]);
    await commit(1, 1);
    await beat();
    expect(await found()).toEqual([]);
  });

  test('name the absent connector, and the one that is silent, with the way to remove it', async () => {
    await commit(1, 1);
    const [absent, ...others] = await found();
    expect(absent).toContain('no connector has sent a heartbeat');
    expect(others).toEqual([]);
    expect(await runNamed(absent)).toEqual([0]);
    await beat();
    await pass(3, 'beat_at');
    const [silent] = await found();
    expect(silent).toContain('no heartbeat for 180 minutes');
    expect(silent).toContain("DELETE FROM mailroom.capture WHERE connector = 'mailroom'");
    expect(silent).not.toContain('its position is lost');
  });

  test('name a connector that is silent since a clock was set back', async () => {
    await beat();
    await pass(-3, 'beat_at');
    const [silent] = await found();
    expect(silent).toContain('is 179 minutes ahead of it');
    await beat();
    expect(await found()).toEqual([]);
  });

  test('tell that a connector has lost its position', async () => {
    await beat();
    await pass(11 * 24, 'beat_at');
    expect((await found())[0]).toContain('its position is lost: stop it, delete its offsets');
  });

  test('name a setting of the server', async () => {
    await beat();
    await rig.pool.query('SET GLOBAL binlog_expire_logs_seconds = 3600');
    expect(await found()).toEqual([expect.stringContaining('binlog_expire_logs_seconds')]);
  });
});
