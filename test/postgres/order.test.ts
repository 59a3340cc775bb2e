import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { strict } from '../../lambdas/runtime/base/order.ts';
import type {
  DatabaseHandler,
  DatabaseHandlerOptions,
} from '../../lambdas/runtime/database/database-handlers.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresConsumer } from '../../lambdas/runtime/postgres/postgres-consumer.ts';
import { postgresHandlers } from '../../lambdas/runtime/postgres/postgres-handlers.ts';
import { seedPostgresOrder } from '../../lambdas/runtime/postgres/postgres-order-seed.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import { postgresInboxChanges } from '../../lambdas/runtime/store/postgres/inbox-operator.ts';
import { readLastSequence } from '../../lambdas/runtime/store/postgres/last-sequence.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import type { Database } from '../../lambdas/runtime/store/postgres/sql.ts';
import { lambdaContext, memoryTelemetry } from '../../testing/index.ts';
import { hurriedClock, losingCommits, vanishing } from '../support/lost-answers.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { newEventId } from './consumer-parts.ts';
import { LEASE_MS, migratedPostgres, testOutbox } from './inbox-rig.ts';

const Counted = defineEvent({
  source: 'things',
  type: 'Counted',
  version: 1,
  aggregateType: 'Thing',
  schema: ThingHappened.schema,
  sequence: true,
});
const happened = ThingHappened.create({ aggregateId: 'thing-2', data: { n: 2 } });

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;
let logins: Readonly<Record<'worker' | 'stranger' | 'ada', Pool>>;

beforeAll(async () => {
  postgres = await migratedPostgres('order');
  const { database, server } = postgres;
  const login = (user: string) =>
    new Pool({ connectionString: `postgresql://${user}@127.0.0.1:${server.port}/postgres` });
  for (const name of ['worker', 'stranger', 'ada']) await database.query(`CREATE ROLE ${name} LOGIN`);
  for (const name of ['worker', 'stranger'])
    await grantPostgresRole(database, {
      login: name,
      role: 'mailroom_consumer',
      service: 'things',
      consumers: [name],
    });
  await grantPostgresRole(database, { login: 'ada', role: 'mailroom_operator' });
  await database.query('GRANT ALL ON payment TO worker; GRANT ALL ON SEQUENCE payment_id_seq TO worker');
  logins = { worker: login('worker'), stranger: login('stranger'), ada: login('ada') };
});
afterAll(async () => {
  for (const pool of Object.values(logins)) await pool.end();
  await postgres.close();
});
beforeEach(() =>
  postgres.database.query(
    'TRUNCATE mailroom.inbox, mailroom.effect, mailroom.event, mailroom.last_sequence, mailroom.operation, payment',
  ),
);

const KEY = lastKey({
  consumer: 'worker',
  source: 'things',
  group: 'strict',
  aggregateType: 'Thing',
  aggregateId: 'thing-1',
}).PK;
const last = () => readLastSequence(postgres.database, KEY);
const notes = async () =>
  (await postgres.database.query('SELECT note FROM payment ORDER BY id')).rows.map(({ note }) => note);
const rows = async (text: string) => (await postgres.database.query(text)).rows;

const pay = (tx: PgClient, note: string) =>
  tx.query("INSERT INTO payment (event_id, note) VALUES ('paid', $1)", [note]);

/** A strict consumer, as its own login reaches the database. */
function counting(
  handlers: (make: ReturnType<typeof postgresHandlers<PgClient>>) => readonly DatabaseHandler<PgClient>[],
  database: Database<PgClient> = nodePostgres(logins.worker),
  clock: Clock = systemClock,
) {
  const telemetry = memoryTelemetry();
  const handle = createPostgresConsumer({
    config: { ...consumerConfig, leaseMs: LEASE_MS, order: strict(), maxReceives: 5 },
    database,
    clock,
    outbox: testOutbox,
    queue: { changeVisibility: async () => {} },
    handlers: handlers(postgresHandlers(database)),
    telemetry,
  });
  const invoke = (event: object) =>
    handle(event as never, lambdaContext({ clock: { now: Date.now }, timeoutMs: LEASE_MS } as never));
  const bodyOf = (sequence: number, eventId: string) => {
    const { source, type, version } = Counted;
    const known = { eventId, type, version, aggregateType: 'Thing', aggregateId: 'thing-1', sequence };
    const detail = { ...known, correlationId: 'chain', occurredAt: Date.now(), data: { n: sequence } };
    return JSON.stringify({ source, 'detail-type': type, detail });
  };
  return {
    telemetry,
    /** @returns the code of its failure, if it failed */
    deliver: async (sequence: number, eventId = newEventId(), receives = 1, messageId = 'first') => {
      const attributes = { ApproximateReceiveCount: String(receives), SentTimestamp: String(Date.now()) };
      const body = bodyOf(sequence, eventId);
      const { batchItemFailures } = await invoke({
        Records: [{ messageId, receiptHandle: messageId, body, attributes }],
      });
      return batchItemFailures.map(
        (failure) => (Reflect.get(failure, 'error') as { code?: string }).code ?? 'none',
      );
    },
    reject: async (sequence: number, eventId: string) => {
      const request = { by: 'ada', reason: 'the customer left', body: bodyOf(sequence, eventId) };
      return Reflect.get(await invoke({ mailroomReject: request }), 'settled');
    },
  };
}

const booking = (
  make: ReturnType<typeof postgresHandlers<PgClient>>,
  options?: DatabaseHandlerOptions<typeof Counted, PgClient>,
) =>
  make.transactional(
    Counted,
    async ({ data }, { tx }) => {
      if (data.n === 13) throw new PoisonMessage('unlucky');
      await pay(tx, String(data.n));
      return { events: [happened] };
    },
    options,
  );

describe('a strict consumer', () => {
  test('applies each event after its predecessor, and absorbs what was applied', async () => {
    const { deliver, telemetry } = counting((make) => [booking(make)]);
    const [first, second] = [newEventId(), newEventId()];
    expect(await deliver(2, second)).toEqual(['OUT_OF_ORDER']);
    expect(await deliver(1, first)).toEqual([]);
    expect(await deliver(2, second, 2)).toEqual([]);
    expect(await deliver(1, first, 2)).toEqual([]);
    expect(await deliver(2, newEventId())).toEqual(['SEQUENCE_REPEATED']);
    expect(await notes()).toEqual(['1', '2']);
    expect(await last()).toMatchObject({ last: 2, eventId: second });
    expect(telemetry.counted('MessagesOutOfOrder')).toBe(1);
  });

  test('runs a leased handler again whose event was overtaken between its reads and its commit', async () => {
    let overtake = async () => {};
    const { deliver } = counting((make) => [
      make.leased(Counted, async ({ data }, ctx) => {
        await overtake();
        await ctx.commit(async (tx) => {
          await pay(tx, String(data.n));
          return {};
        });
      }),
    ]);
    overtake = async () => {
      overtake = async () => {};
      await deliver(1, newEventId());
    };
    // Both are number 1: the one that is overtaken is refused, because its number was applied by another event.
    expect(await deliver(1, newEventId())).toEqual(['OUT_OF_ORDER']);
    expect(await notes()).toEqual(['1']);
  });

  test('waits for an event of the aggregate that is being applied, and is then superseded by it', async () => {
    const { database } = postgres;
    const eventId = newEventId();
    const { deliver } = counting((make) => [booking(make)]);
    const holder = await postgres.pool.connect();
    await holder.query('BEGIN');
    const place = KEY.slice('LAST#worker#'.length);
    await holder.query(
      "INSERT INTO mailroom.last_sequence (consumer, place, last, event_id) VALUES ('worker', $1, 1, 'other')",
      [place],
    );
    const delivered = deliver(1, eventId);
    await vi.waitFor(async () => {
      const blocked = 'SELECT 1 FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0';
      expect((await database.query(blocked)).rows).toHaveLength(1);
    }, 60_000);
    await holder.query('COMMIT');
    holder.release();
    expect(await delivered).toEqual(['SEQUENCE_REPEATED']);
    expect(await notes()).toEqual([]);
  });
});

describe('a rejected function', () => {
  const announces: DatabaseHandlerOptions<typeof Counted, PgClient> = {
    rejected: async ({ data }, { tx, by, cause }) => {
      await pay(tx, `refused ${data.n} by ${by}: ${cause?.code}`);
      return { events: [happened] };
    },
  };

  test('commits its writes and events with DISCARDED, and the later events go on', async () => {
    const { deliver, reject } = counting((make) => [booking(make, announces)]);
    await postgres.database.query("INSERT INTO mailroom.last_sequence VALUES ('worker', $1, 12)", [
      KEY.slice('LAST#worker#'.length),
    ]);
    const [bad, next] = [newEventId(), newEventId()];
    expect(await deliver(13, bad)).toEqual(['POISON_MESSAGE']);
    expect(await deliver(14, next)).toEqual(['OUT_OF_ORDER']);
    expect(await reject(13, bad)).toEqual({ status: 'discarded' });
    expect(await reject(13, bad)).toEqual({ status: 'discarded' }); // the same request, whose answer was lost
    expect(await notes()).toEqual(['refused 13 by ada: POISON_MESSAGE']);
    expect(await rows('SELECT type FROM mailroom.event')).toEqual([{ type: 'ThingHappened' }]);
    expect(await rows('SELECT operator, command FROM mailroom.operation')).toEqual([
      { operator: 'worker', command: 'postgres discard' },
    ]);
    expect(await last()).toMatchObject({ last: 13, eventId: undefined });
    expect(await deliver(14, next, 2)).toEqual([]);
  });

  test('whose COMMIT has no answer is not reported as one that changed nothing', async () => {
    const losing = vanishing(nodePostgres(logins.worker));
    const { deliver } = counting((make) => [booking(make, announces)]);
    const { reject } = counting((make) => [booking(make, announces)], losing, hurriedClock());
    await postgres.database.query("INSERT INTO mailroom.last_sequence VALUES ('worker', $1, 12)", [
      KEY.slice('LAST#worker#'.length),
    ]);
    const bad = newEventId();
    await deliver(13, bad);
    await expect(reject(13, bad)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
    losing.comeBack();
    expect(await reject(13, bad)).toEqual({ status: 'discarded' });
    expect(await notes()).toEqual(['refused 13 by ada: POISON_MESSAGE']);
  });

  test.each<[string, DatabaseHandlerOptions<typeof Counted, PgClient>, object]>([
    [
      'that throws',
      {
        rejected: async (_event, { tx }) => {
          await pay(tx, 'no');
          throw new PoisonMessage('not like this');
        },
      },
      { status: 'refused', code: 'POISON_MESSAGE' },
    ],
    [
      'whose statement failed, which it has caught',
      {
        rejected: async (_event, { tx }) => {
          await pay(tx, 'no');
          await tx.query('SELECT 1 / 0').catch(() => {});
          return {};
        },
      },
      { status: 'refused', message: expect.stringContaining('aborted') },
    ],
    ['that does not exist', {}, { status: 'refused', code: 'NO_REJECTED_FUNCTION' }],
  ])('%s leaves the message as it is', async (_text, options, answer) => {
    const { deliver, reject } = counting((make) => [booking(make, options)]);
    await postgres.database.query("INSERT INTO mailroom.last_sequence VALUES ('worker', $1, 12)", [
      KEY.slice('LAST#worker#'.length),
    ]);
    const eventId = newEventId();
    await deliver(13, eventId);
    expect(await reject(13, eventId)).toMatchObject(answer);
    expect([await notes(), (await last()).last]).toEqual([[], 12]);
    expect(await rows('SELECT status FROM mailroom.inbox')).toEqual([{ status: 'REJECTED' }]);
  });
});

test('a backfill begins a sequence in its own transaction, once', async () => {
  const database = nodePostgres(logins.worker);
  const seed = {
    consumer: 'worker',
    source: 'things',
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    last: 7,
  };
  const backfill = () =>
    database.transaction(async (tx) => {
      await pay(tx, 'state');
      await seedPostgresOrder(database, tx, seed);
    });
  await backfill();
  await expect(backfill()).rejects.toMatchObject({ code: 'OUT_OF_ORDER' });
  expect([await notes(), (await last()).last]).toEqual([['state'], 7]);
  expect(await counting((make) => [booking(make)]).deliver(8)).toEqual([]);
});

describe('the last applied sequence', () => {
  const REFUSED = { code: '42501' };
  const begin = (pool: Pool, consumer: string) =>
    pool.query("INSERT INTO mailroom.last_sequence VALUES ($1, 'things#strict#Thing#9', 4)", [consumer]);
  const raise = (pool: Pool, ...values: readonly unknown[]) =>
    pool.query('SELECT mailroom.raise_last($1, $2, $3, $4, $5) AS raised', [...values]);

  test('belongs to the login of its consumer', async () => {
    const { worker, stranger, ada } = logins;
    await begin(worker, 'worker');
    await expect(begin(stranger, 'worker')).rejects.toMatchObject(REFUSED);
    expect((await stranger.query('SELECT * FROM mailroom.last_sequence')).rows).toEqual([]);
    expect((await stranger.query('UPDATE mailroom.last_sequence SET last = 9')).rowCount).toBe(0);
    await expect(worker.query('DELETE FROM mailroom.last_sequence')).rejects.toMatchObject(REFUSED);
    await expect(ada.query('UPDATE mailroom.last_sequence SET last = 9')).rejects.toMatchObject(REFUSED);
    expect((await ada.query('SELECT consumer, last::int FROM mailroom.last_sequence')).rows).toEqual([
      { consumer: 'worker', last: 4 },
    ]);
  });

  test('is raised by an operator only from the number that was read, with an entry in the log', async () => {
    const { worker, ada } = logins;
    await begin(worker, 'worker');
    const place = 'things#strict#Thing#9';
    const raised = async (...values: readonly unknown[]) =>
      (await raise(ada, 'worker', place, ...values, 'lost')).rows[0].raised;
    expect(await raised(null, 5)).toBe(false);
    expect(await raised(3, 5)).toBe(false);
    expect(await raised(4, 4)).toBe(false);
    expect(await raised(4, 7)).toBe(true);
    expect(await rows('SELECT operator, command, subject, reason FROM mailroom.operation')).toEqual([
      { operator: 'ada', command: 'postgres order', subject: `worker ${place} 7`, reason: 'lost' },
    ]);
    await expect(raise(worker, 'worker', place, 7, 8, 'no')).rejects.toMatchObject(REFUSED);
  });

  test('is left to a worker that is about to change it', async () => {
    const { worker, ada } = logins;
    await begin(worker, 'worker');
    const database = nodePostgres(ada);
    const changes = postgresInboxChanges({ database, whole: database, clock: systemClock });
    const raise = { key: 'LAST#worker#things#strict#Thing#9', sequence: 5, seen: { last: 4, exists: true } };
    await nodePostgres(worker).transaction(async (tx) => {
      await tx.query('UPDATE mailroom.last_sequence SET last = 5');
      expect(await changes.raise(raise, { by: 'ada', reason: 'lost' })).toBe(false);
    });
    expect(await rows('SELECT command FROM mailroom.operation')).toEqual([]);
  });

  describe('whose raise has no answer', () => {
    const seen = { last: 4, exists: true };
    const raiseIn = (database: Database<PgClient>) =>
      postgresInboxChanges({ database, whole: database, clock: hurriedClock() }).raise(
        { key: 'LAST#worker#things#strict#Thing#9', sequence: 5, seen },
        { by: 'ada', reason: 'lost' },
      );
    const stored = () =>
      rows(
        'SELECT last::int, (SELECT count(*)::int FROM mailroom.operation) AS entries FROM mailroom.last_sequence',
      );
    beforeEach(() => begin(logins.worker, 'worker'));

    test('is raised, if the log has its entry', async () => {
      expect(await raiseIn(losingCommits(nodePostgres(logins.ada)))).toBe(true);
      expect(await stored()).toEqual([{ last: 5, entries: 1 }]);
    });

    test('is raised also if its event has been applied since, and another operator has raised it', async () => {
      const database = nodePostgres(logins.ada);
      const passing: Database<PgClient> = {
        ...database,
        transaction: async (run) => {
          await losingCommits(database)
            .transaction(run)
            .catch(() => {});
          await raise(logins.ada, 'worker', 'things#strict#Thing#9', 5, 8, 'more');
          throw new Error('The connection was lost.');
        },
      };
      expect(await raiseIn(passing)).toBe(true);
    });

    test('is unknown while the database is away', async () => {
      const database = vanishing(nodePostgres(logins.ada));
      await expect(raiseIn(database)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
    });

    test('stands as it was if the transaction was rolled back', async () => {
      const database = nodePostgres(logins.ada);
      const aborted = new Error('The connection was lost.');
      const rolledBack: Database<PgClient> = {
        ...database,
        transaction: (run) =>
          database.transaction(async (tx) => {
            await run(tx);
            throw aborted;
          }),
      };
      await expect(raiseIn(rolledBack)).rejects.toBe(aborted);
      expect(await stored()).toEqual([{ last: 4, entries: 0 }]);
    });
  });
});
