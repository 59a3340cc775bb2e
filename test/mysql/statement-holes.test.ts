import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { careForTables } from '../../lambdas/runtime/mysql/mysql-care.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import type { ClaimedEvent } from '../../lambdas/runtime/relay/database-transitions.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { wasCommitted } from '../../lambdas/runtime/store/mysql/commit-outcome.ts';
import { mysqlTransitions } from '../../lambdas/runtime/store/mysql/relay-transitions.ts';
import type { ClaimMode } from '../../lambdas/runtime/store/mysql/server-check.ts';
import type { Database, Sql } from '../../lambdas/runtime/store/sql/database.ts';
import { manualClock } from '../../testing/index.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { eventually, PRODUCER, placed } from '../postgres/support/rig.ts';
import { type Rig, startRig, WAITING } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-holes', { 'innodb-lock-wait-timeout': '2' });
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

type MysqlDatabase = Database<PoolConnection>;

/** A clause of a statement, and its replacement without the rule. */
type Change = readonly [clause: string, replacement: string];

/** A database whose statements lack some clauses. @returns also the clauses that were found */
function without(changes: readonly Change[]) {
  const found = new Set<string>();
  const changed = ({ query }: Sql): Sql => ({
    query: (text, values) => {
      let changedText = text;
      for (const [clause, replacement] of changes) {
        if (text.includes(clause)) found.add(clause);
        changedText = changedText.replaceAll(clause, replacement);
      }
      return query(changedText, values);
    },
  });
  const database: MysqlDatabase = {
    ...changed(rig.database),
    in: (tx) => changed(rig.database.in(tx)),
    transaction: rig.database.transaction,
  };
  return { database, found };
}

const parts = () => ({
  config: relayConfig(),
  clock: systemClock,
  random: systemRandomBytes,
  telemetry: memoryTelemetry(),
});
const relayOn = (database: MysqlDatabase, claim?: ClaimMode) =>
  mysqlTransitions({ ...parts(), database, claim });
const outboxOn = (database: MysqlDatabase, service = PRODUCER.service) =>
  createMysqlOutbox({ config: { ...PRODUCER, service }, database, telemetry: memoryTelemetry() });

async function commit(...ns: number[]): Promise<string[]> {
  const events = await outboxOn(rig.database).commit(async () => ns.map((n) => placed(n)));
  return events.map(({ eventId }) => eventId);
}

const FAILURE = new MailroomError('MalformedDetail', 'Detail is malformed');

const count = async (table: string, where = 'TRUE') =>
  Number((await rig.rows(`SELECT COUNT(*) AS n FROM mailroom.${table} WHERE ${where}`))[0]?.n);

/** Claims one event, lets the lease pass, and lets another relay claim it. */
async function takenOver(): Promise<{ stale: ClaimedEvent; held: ClaimedEvent }> {
  await commit(1);
  const relay = relayOn(rig.database);
  const [stale] = await relay.claim(1);
  await rig.pool.query('UPDATE mailroom.pending SET due_at = UTC_TIMESTAMP(6)');
  const [held] = await relay.claim(1);
  if (stale === undefined || held === undefined) throw new Error('The event was not claimed twice.');
  return { stale, held };
}

const isHeld = async ({ fence }: ClaimedEvent) =>
  (await count('pending', `fence = UNHEX('${fence.replaceAll('-', '')}')`)) === 1;

/** Runs while a producer has written an event and not committed it. */
async function besideAnOpenProducer(run: () => Promise<boolean>): Promise<boolean> {
  const producer = await rig.pool.getConnection();
  await producer.query('START TRANSACTION');
  await outboxOn(rig.database).write(producer, [placed(9)]);
  try {
    return await run();
  } finally {
    await producer.query('ROLLBACK');
    producer.release();
  }
}

/** An event that was published 8 days ago, beyond its retention. */
async function publishedLongAgo(): Promise<string> {
  const [eventId = ''] = await commit(1);
  await rig.pool.query('DELETE FROM mailroom.pending');
  await rig.pool.query(
    'INSERT INTO mailroom.published (event_id, published_at) VALUES (UNHEX(?), UTC_TIMESTAMP(6) - INTERVAL 8 DAY)',
    [eventId.replaceAll('-', '')],
  );
  return eventId.replaceAll('-', '');
}

/** Resolves a lost COMMIT by the event's row. */
const outcome = (database: MysqlDatabase, id: string, clock: Clock = systemClock) =>
  wasCommitted({ database, clock, random: systemRandomBytes }, { table: 'event', id }, new Error('lost'));

/** A clock that is a minute later whenever it is read. */
function minutes(): () => number {
  let now = Date.now();
  return () => {
    now += 60_000;
    return now;
  };
}

const FENCE = ' AND p.fence = UNHEX(?)';
const ANY_FENCE = ' AND UNHEX(?) IS NOT NULL';

/** A rule, its clause, and a situation. @returns true if the rule is broken in it */
interface Hole {
  readonly rule: string;
  readonly changes: readonly Change[];
  readonly isBroken: (database: MysqlDatabase) => Promise<boolean>;
}

const HOLES: readonly Hole[] = [
  {
    rule: 'a claim does not wait for rows that others have locked',
    changes: [['SKIP LOCKED', '']],
    isBroken: async (database) => {
      await commit(1);
      const other = await rig.pool.getConnection();
      await other.query('START TRANSACTION');
      await other.query('SELECT 1 FROM mailroom.pending FOR UPDATE');
      const claimed = await relayOn(database)
        .claim(1)
        .then(
          () => false,
          () => true,
        );
      await other.query('ROLLBACK');
      other.release();
      return claimed;
    },
  },
  {
    rule: 'an event is not claimed before it is due',
    changes: [['due_at <= UTC_TIMESTAMP(6)', 'TRUE']],
    isBroken: async (database) => {
      await outboxOn(rig.database).commit(async () => [placed(1, { deliverAt: Date.now() + 3_600_000 })]);
      return (await relayOn(database).claim(1)).length > 0;
    },
  },
  {
    rule: 'by token, an event that another relay has claimed since it was read is not claimed',
    changes: [['fence = UNHEX(?) WHERE due_at <= UTC_TIMESTAMP(6)', 'fence = UNHEX(?)']],
    isBroken: async (database) => {
      await commit(1);
      let other: readonly ClaimedEvent[] = [];
      const between: MysqlDatabase = {
        ...database,
        in: (tx) => ({
          query: async (text, values) => {
            const answer = await database.in(tx).query(text, values);
            if (text.includes('pending_due_at')) other = await relayOn(rig.database).claim(1);
            return answer;
          },
        }),
      };
      const claimed = await relayOn(between, 'token').claim(1);
      return claimed.length + other.length > 1;
    },
  },
  {
    rule: 'a mark does not wait for events that a producer has not committed',
    changes: [
      [
        'STRAIGHT_JOIN mailroom.pending FORCE INDEX (PRIMARY) ON event_id = w.id',
        'JOIN mailroom.pending IGNORE INDEX (PRIMARY) ON event_id = w.id',
      ],
    ],
    isBroken: async (database) => {
      await commit(1);
      const rows = await relayOn(rig.database).claim(1);
      return besideAnOpenProducer(async () => {
        const relay = mysqlTransitions({
          ...parts(),
          clock: { ...systemClock, sleep: async () => {} },
          database,
        });
        return (await relay.markPublished(rows)).length > 0;
      });
    },
  },
  ...[true, false].map(
    (refused): Hole => ({
      rule: `a relay whose lease has passed ${refused ? 'makes no event DEAD' : 'records no failure'}`,
      changes: [[FENCE, ANY_FENCE]],
      isBroken: async (database) => {
        const { stale, held } = await takenOver();
        await relayOn(database).failEvent(stale, FAILURE, refused);
        return !(await isHeld(held));
      },
    }),
  ),
  {
    rule: 'a relay whose lease has passed releases no event',
    changes: [[' WHERE fence = UNHEX(?) FOR UPDATE', ' WHERE UNHEX(?) IS NOT NULL FOR UPDATE']],
    isBroken: async (database) => {
      const { stale, held } = await takenOver();
      await relayOn(database).release([stale], 0);
      return !(await isHeld(held));
    },
  },
  {
    rule: 'a relay whose lease has passed renews no lease',
    changes: [[FENCE, ANY_FENCE]],
    isBroken: async (database) => {
      const { stale } = await takenOver();
      return (await relayOn(database).renew(stale)) !== undefined;
    },
  },
  {
    rule: 'an event that was published after it became DEAD is published',
    changes: [
      [
        'STRAIGHT_JOIN mailroom.dead FORCE INDEX (PRIMARY) ON event_id = w.id',
        'STRAIGHT_JOIN mailroom.dead FORCE INDEX (PRIMARY) ON FALSE',
      ],
    ],
    isBroken: async (database) => {
      const { stale, held } = await takenOver();
      await relayOn(rig.database).failEvent(held, FAILURE, true);
      await relayOn(database).markPublished([stale]);
      return (await count('dead')) > 0;
    },
  },
  {
    rule: 'an event that a relay has had is not cancelled',
    changes: [
      ["AND p.due_at = TIMESTAMP('1970-01-01 00:00:00') + INTERVAL ROUND(? * 1000) MICROSECOND", 'AND ? > 0'],
    ],
    isBroken: async (database) => {
      const deliverAt = Date.now() + 10;
      const [event] = await outboxOn(rig.database).commit(async () => [placed(1, { deliverAt })]);
      const relay = relayOn(rig.database);
      await expect.poll(() => count('pending', 'due_at <= UTC_TIMESTAMP(6)'), { timeout: 60_000 }).toBe(1);
      await relay.release(await relay.claim(1), 60_000);
      const cancel = database.transaction((tx) => outboxOn(database).cancel(tx, event?.eventId ?? ''));
      return (await cancel) === 'cancelled';
    },
  },
  {
    rule: 'only its own service cancels an event',
    changes: [[' AND CAST(e.source AS BINARY) = FROM_BASE64(?)', ' AND FROM_BASE64(?) IS NOT NULL']],
    isBroken: async (database) => {
      const [event] = await outboxOn(rig.database).commit(async () => [
        placed(1, { deliverAt: Date.now() + 60_000 }),
      ]);
      await database.transaction((tx) => outboxOn(database, 'payments').cancel(tx, event?.eventId ?? ''));
      return (await count('pending')) === 0;
    },
  },
  {
    rule: 'an event is not stored without its place in the queue, also if its caller goes on after the error',
    changes: [['ROLLBACK TO SAVEPOINT mailroom', 'DO 0']],
    isBroken: async (database) => {
      const failing: MysqlDatabase = {
        ...database,
        in: (tx) => ({
          query: (text, values) =>
            database
              .in(tx)
              .query(text.replace('INSERT INTO mailroom.pending', 'INSERT INTO mailroom.missing'), values),
        }),
      };
      await rig.database.transaction(async (tx) => {
        await outboxOn(failing)
          .write(tx, [placed(1)])
          .catch(() => {});
      });
      return (await count('event')) > 0;
    },
  },
  {
    rule: 'no event is written without a transaction',
    changes: [['RELEASE SAVEPOINT mailroom', 'DO 0']],
    isBroken: async (database) => {
      const connection = await rig.pool.getConnection();
      const written = await outboxOn(database)
        .write(connection, [placed(1)])
        .catch((error: unknown) => error);
      connection.release();
      if (Array.isArray(written)) return true;
      expect(written).toMatchObject({ code: 'NO_TRANSACTION' });
      return false;
    },
  },
  {
    rule: 'no event is cancelled without a transaction',
    changes: [['RELEASE SAVEPOINT mailroom', 'DO 0']],
    isBroken: async (database) => {
      const deliverAt = Date.now() + 60_000;
      const [event] = await outboxOn(rig.database).commit(async () => [placed(1, { deliverAt })]);
      const connection = await rig.pool.getConnection();
      const cancel = outboxOn(database).cancel(connection, event?.eventId ?? '');
      const code = await cancel.catch((error: unknown) => Object(error).code);
      connection.release();
      return code !== 'NO_TRANSACTION';
    },
  },
  {
    rule: 'a commit whose function has begun another transaction fails',
    changes: [['RELEASE SAVEPOINT mailroom_outbox', 'DO 0']],
    isBroken: async (database) => {
      const committed = outboxOn(database).commit(async (tx) => {
        await tx.query('START TRANSACTION');
        return [placed(1)];
      });
      return (await committed.catch((error: unknown) => Object(error).code)) !== 'TRANSACTION_ENDED';
    },
  },
  {
    rule: 'a function that has committed a part of its work is not repeated if it throws',
    changes: [['RELEASE SAVEPOINT mailroom_outbox', 'DO 0']],
    isBroken: async (database) => {
      let runs = 0;
      const committed = outboxOn(database).commit(async (tx) => {
        runs += 1;
        await tx.query('COMMIT');
        throw Object.assign(new Error('Lock wait timeout exceeded'), { errno: 1205 });
      });
      await committed.catch(() => {});
      return runs > 1;
    },
  },
  {
    rule: 'a transaction that still runs on the server is not taken for one that was rolled back',
    changes: [[' LOCK IN SHARE MODE', '']],
    isBroken: async (database) => {
      const producer = await rig.pool.getConnection();
      await producer.query('START TRANSACTION');
      const [event] = await outboxOn(rig.database).write(producer, [placed(1)]);
      let isAnswered = false;
      const asked = outcome(database, event?.eventId ?? '').finally(() => {
        isAnswered = true;
      });
      await eventually(async () => isAnswered || (await rig.rows(WAITING)).length > 0 || undefined);
      await producer.query('COMMIT');
      producer.release();
      return (await asked) === false;
    },
  },
  {
    rule: 'a replica, which may lag behind, proves no rollback',
    changes: [
      [
        "CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF') OR CAST(@@global.innodb_read_only AS CHAR) NOT IN ('0', 'OFF')",
        'FALSE',
      ],
    ],
    isBroken: async (database) => {
      await rig.pool.query('SET GLOBAL read_only = 1');
      const asked = outcome(database, mintEventId(Date.now(), 256), { ...manualClock(), now: minutes() });
      const answer = await asked.catch((error: unknown) => Object(error).code);
      await rig.pool.query('SET GLOBAL read_only = 0');
      return answer !== 'COMMIT_UNKNOWN';
    },
  },
  ...['pending', 'dead'].map(
    (table): Hole => ({
      rule: `an event that is ${table} again is not deleted with an old publication`,
      changes: [
        [`NOT EXISTS (SELECT 1 FROM mailroom.${table} o WHERE o.event_id = mailroom.event.event_id)`, 'TRUE'],
      ],
      isBroken: async (database) => {
        const id = await publishedLongAgo();
        const row =
          table === 'dead'
            ? "dead_at, attempts, last_error, fingerprint) VALUES (UNHEX(?), UTC_TIMESTAMP(6), 1, 'e', 'f')"
            : 'due_at) VALUES (UNHEX(?), UTC_TIMESTAMP(6))';
        await rig.pool.query(`INSERT INTO mailroom.${table} (event_id, ${row}`, [id]);
        await careForTables({ ...parts(), database });
        return (await count('event')) === 0;
      },
    }),
  ),
];

describe.each(HOLES)('$rule', ({ changes, isBroken }) => {
  test('with its clause', async () => {
    expect(await isBroken(rig.database)).toBe(false);
  });

  test('not without its clause', async () => {
    const { database, found } = without(changes);
    expect(await isBroken(database)).toBe(true);
    expect(found.size).toBe(changes.length);
  });
});

test('a relay that claims with tokens sends no statement that an older server does not know', async () => {
  await publishedLongAgo();
  const sent: string[] = [];
  const older = ({ query }: Sql): Sql => ({
    query: (text, values) => {
      sent.push(text);
      // Such a server has a syntax error at SKIP LOCKED.
      return query(text.replace('SKIP LOCKED', 'SKIP THE LOCKED'), values);
    },
  });
  const database: MysqlDatabase = {
    ...older(rig.database),
    in: (tx) => older(rig.database.in(tx)),
    transaction: rig.database.transaction,
  };
  const failuresOf = async (claim: ClaimMode) => {
    const telemetry = memoryTelemetry();
    await careForTables({ ...parts(), telemetry, database, claim });
    return telemetry.counted('SweepFailures');
  };
  expect(await failuresOf('token')).toBe(0);
  expect(await count('event')).toBe(0);
  expect(sent.filter((text) => text.includes('SKIP LOCKED'))).toEqual([]);
  expect(await failuresOf('skip-locked')).toBe(1);
});
