import knexOf from 'knex';
import type { PoolOptions } from 'mysql2';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { RetryLater } from '../../lambdas/runtime/base/errors.ts';
import { createMysqlInboxProcessor } from '../../lambdas/runtime/mysql/mysql-consumer.ts';
import { mysqlHandlers } from '../../lambdas/runtime/mysql/mysql-handlers.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { createMysqlRelay } from '../../lambdas/runtime/mysql/mysql-relay.ts';
import { knex } from '../../lambdas/runtime/mysql/orm-databases.ts';
import { mysqlErrno } from '../../lambdas/runtime/store/mysql/mysql-error.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import { consumerConfig } from '../../testing/default-config.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { Placed, PRODUCER, placed } from '../postgres/support/rig.ts';
import { LAYERS, type Layer } from './layers.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-databases');
  await rig.pool.query('CREATE DATABASE shop');
  await rig.pool.query('CREATE TABLE shop.street_place (id INT PRIMARY KEY, note TEXT) ENGINE=InnoDB');
});
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('DELETE FROM shop.street_place');
});
afterAll(() => rig.close());

const optionsOf = (more: PoolOptions = {}): PoolOptions => ({
  host: '127.0.0.1',
  port: rig.server.port,
  user: 'root',
  ...more,
});

const places = async () =>
  (await rig.rows('SELECT id FROM shop.street_place ORDER BY id')).map(({ id }) => id);

const queued = async () => (await rig.rows('SELECT 1 FROM mailroom.pending')).length;

const outboxOn = (database: Database<unknown>) =>
  createMysqlOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });

/** One pass of a relay. */
async function relayed(database: Database<unknown>) {
  const [bus, telemetry] = [memoryBus(), memoryTelemetry()];
  const pass = await createMysqlRelay({ config: relayConfig(), database, bus, telemetry }).pass();
  return { pass, published: bus.published(), lines: telemetry.lines() };
}

const FAILED = { claimed: 0, published: 0, failed: true };
const BAD_ROW = [{ extra: { error: { code: 'BAD_ROW' } } }];

describe.each(Object.entries(LAYERS))('%s', (name, open) => {
  let layer: Layer;

  beforeAll(async () => {
    layer = await open(optionsOf());
  });
  afterAll(() => layer.end());

  test('passes parameters and returns rows, in a READ COMMITTED transaction', async () => {
    const { database } = layer;
    await database.transaction(async (tx) => {
      const { query } = database.in(tx);
      await query('INSERT INTO shop.street_place (id, note) VALUES (?, ?), (?, ?)', [
        1,
        "it's ? $1 \\",
        2,
        null,
      ]);
      const { rows } = await query(
        'SELECT note, CAST(id AS CHAR) AS the_id FROM shop.street_place ORDER BY id',
      );
      expect(rows.map((row) => ({ ...row }))).toEqual([
        { note: "it's ? $1 \\", the_id: '1' },
        { note: null, the_id: '2' },
      ]);
      expect((await query('DELETE FROM shop.street_place WHERE id = ?', [2])).rows).toEqual([]);
      const level =
        'SELECT trx_isolation_level AS l FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = CONNECTION_ID()';
      expect((await query(level)).rows).toMatchObject([{ l: 'READ COMMITTED' }]);
    });
    expect(await places()).toEqual([1]);
  });

  test('rolls back, and has the number of the error', async () => {
    const failed = layer.database.transaction(async (tx) => {
      await layer.insert(tx, 3);
      await layer.insert(tx, 3);
    });
    expect(mysqlErrno(await failed.catch((error: unknown) => error))).toBe(1062);
    expect(await places()).toEqual([]);
  });

  test('commits your statements with the events that commit publishes', async () => {
    const outbox = outboxOn(layer.database);
    const [event] = await outbox.commit(async (tx) => {
      await layer.insert(tx, 4);
      return [placed(4)];
    });
    const { pass, published, lines } = await relayed(layer.database);
    expect(lines).toEqual([]);
    expect(pass).toEqual({ claimed: 1, published: 1, failed: false });
    expect(JSON.parse(published[0]?.detail ?? '')).toEqual(event);
    expect([await places(), await queued()]).toEqual([[4], 0]);
  });

  test('commits or rolls back the events that write adds to the transaction of the layer', async () => {
    const outbox = outboxOn(layer.database);
    const write = (id: number) => async (tx: unknown) => {
      await layer.insert(tx, id);
      await outbox.write(tx, [placed(id)]);
      if (id === 6) throw new Error('rolled back');
    };
    await layer.own(write(5));
    await expect(layer.own(write(6))).rejects.toThrow('rolled back');
    expect([await places(), await queued()]).toEqual([[5], 1]);
  });

  test('is refused outside a transaction', async () => {
    const written = outboxOn(layer.database).write(layer.outside, [placed(1)]);
    const code = name === 'TypeORM' ? 'BAD_ARGUMENT' : 'NO_TRANSACTION';
    await expect(written).rejects.toMatchObject({ code });
    expect(await queued()).toBe(0);
  });

  test('repeats a commit after a deadlock, and fails if its error is swallowed', async () => {
    const outbox = outboxOn(layer.database);
    let runs = 0;
    await outbox.commit(async (tx) => {
      runs += 1;
      await layer.insert(tx, runs);
      if (runs === 1)
        await layer.database
          .in(tx)
          .query("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'");
      return [placed(runs)];
    });
    const swallowed = outbox.commit(async (tx) => {
      await layer.database.in(tx).query('ROLLBACK');
      return [placed(9)];
    });
    await expect(swallowed).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect([await places(), await queued()]).toEqual([[2], 1]);
  });

  test.each(['transactional', 'leased'] as const)('runs a %s handler once', async (kind) => {
    const { database } = layer;
    const outbox = outboxOn(database);
    const config = consumerConfig({ service: 'orders', consumer: `worker-${kind}`, publishes: ['Placed'] });
    const inbox = createMysqlInboxProcessor({ config, database, outbox, telemetry: memoryTelemetry() });
    const handlers = mysqlHandlers(database);
    const work = async (tx: unknown) => {
      await layer.insert(tx, 7);
      return { events: [placed(7)] };
    };
    const handler = {
      transactional: () => handlers.transactional(Placed, (_event, { tx }) => work(tx)),
      leased: () =>
        handlers.leased(Placed, async (_event, ctx) => {
          expect(await ctx.once('charge', async () => ({ attempt: ctx.attempt }))).toEqual({ attempt: 1 });
          if (ctx.attempt === 1) throw new RetryLater(0);
          await ctx.commit(work);
        }),
    }[kind]();
    const [event] = await outbox.commit(async () => [placed(1)]);
    const body = JSON.stringify({ source: 'orders', 'detail-type': 'Placed', detail: event });
    const answers = [];
    for (const receives of [1, 2, 3])
      answers.push((await inbox.process({ id: `${name}/${kind}`, body, receives }, handler)).kind);
    const expected = {
      transactional: ['done', 'duplicate', 'duplicate'],
      leased: ['retry', 'done', 'duplicate'],
    };
    expect(answers).toEqual(expected[kind]);
    expect([await places(), await queued()]).toEqual([[7], 2]);
  });

  test.each<[string, PoolOptions]>([
    [
      'dates as text, big numbers as text, another time zone and character set',
      {
        dateStrings: true,
        timezone: '+09:00',
        supportBigNumbers: true,
        bigNumberStrings: true,
        charset: 'LATIN1_SWEDISH_CI',
      },
    ],
    ['decimals as numbers, and named placeholders', { decimalNumbers: true, namedPlaceholders: true }],
  ])('publishes on connections that return %s', async (_settings, options) => {
    const hostile = await open(optionsOf(options));
    await outboxOn(hostile.database).commit(async () => [placed(1)]);
    const { pass, lines } = await relayed(hostile.database);
    await hostile.end();
    expect(lines).toEqual([]);
    expect(pass).toEqual({ claimed: 1, published: 1, failed: false });
  });

  test('publishes nothing, or exactly what was committed, on connections that make numbers of text', async () => {
    const toNumbers: PoolOptions['typeCast'] = (field, next) => {
      if (field.type !== 'VAR_STRING') return next();
      const text = field.string();
      return text !== null && /^\d+$/.test(text) ? Number(text) : text;
    };
    const hostile = await open(optionsOf({ typeCast: toNumbers }));
    await outboxOn(hostile.database).commit(async () => [placed(1)]);
    const { pass, lines } = await relayed(hostile.database);
    await hostile.end();
    if (name === 'mysql2' || name === 'Drizzle') {
      expect(pass).toEqual({ claimed: 1, published: 1, failed: false });
      return;
    }
    expect(pass).toEqual(FAILED);
    expect(lines).toMatchObject(BAD_ROW);
    expect(await rig.rows('SELECT attempts, fence FROM mailroom.pending')).toEqual([
      { attempts: 0, fence: null },
    ]);
    expect(await relayed(layer.database)).toMatchObject({ pass: { published: 1 } });
  });
});

describe('Knex with a function for results', () => {
  const camel = (row: object) =>
    Object.fromEntries(
      Object.entries(row).map(([key, value]) => [
        key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()),
        value,
      ]),
    );
  test.each<[string, (result: unknown) => unknown]>([
    [
      'renames columns',
      (result) =>
        Array.isArray(result) ? [(result[0] as object[]).map?.(camel) ?? result[0], result[1]] : result,
    ],
    ['leaves only the rows', (result) => (Array.isArray(result) ? result[0] : result)],
    ['leaves nothing', () => undefined],
  ])('that %s publishes nothing after that, and counts no attempt', async (_how, change) => {
    let isHostile = false;
    const db = knexOf({
      client: 'mysql2',
      connection: optionsOf() as never,
      postProcessResponse: (result) => (isHostile ? change(result) : result),
    });
    const [bus, telemetry] = [memoryBus(), memoryTelemetry()];
    const relay = createMysqlRelay({ config: relayConfig(), database: knex(db), bus, telemetry });
    expect(await relay.pass()).toEqual({ claimed: 0, published: 0, failed: false });
    await outboxOn(rig.database as Database<unknown>).commit(async () => [placed(1)]);
    isHostile = true;
    expect(await relay.pass()).toEqual(FAILED);
    isHostile = false;
    expect(telemetry.lines()).toMatchObject(BAD_ROW);
    expect(bus.published()).toEqual([]);
    expect(await rig.rows('SELECT attempts, fence FROM mailroom.pending')).toEqual([
      { attempts: 0, fence: null },
    ]);
    expect(await relay.pass()).toEqual({ claimed: 1, published: 1, failed: false });
    await db.destroy();
  });
});
