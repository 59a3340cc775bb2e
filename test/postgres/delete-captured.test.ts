import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { type CaptureRig, startCapture } from './support/capture-rig.ts';
import { PRODUCER, placed } from './support/rig.ts';
import { type Change, withoutClause } from './support/without-clause.ts';

let capture: CaptureRig;

beforeAll(async () => {
  capture = await startCapture('delete-captured');
  await capture.rig.pool.query('CREATE ROLE stranger LOGIN; GRANT mailroom_connector TO stranger');
});
beforeEach(() => capture.clear());
afterAll(() => capture.close());

/** Older than the retention, which is a day, but younger than that before the last confirmation of an old slot. */
const expired = () => Date.now() - 30 * 3_600_000;

/** A slot of 30 days, which has confirmed the log of until 11 hours ago. */
async function oldSlot(slot?: string, retention?: string): Promise<void> {
  await capture.createSlot(slot);
  await confirmed(retention, slot);
  await capture.retain(retention, slot);
  await capture.age(slot);
}

/** A reading that the slot confirms. @returns the number of deleted events */
async function confirmed(retention?: string, slot?: string): Promise<number> {
  const first = await capture.retain(retention, slot);
  await capture.confirm(slot);
  return first + (await capture.retain(retention, slot));
}

/** Lets the slot have confirmed nothing for a time. */
const capturedBefore = (age: string) =>
  capture.rig.pool.query('UPDATE mailroom.capture SET captured_until = captured_until - $1::interval', [age]);

/** Calls the retention as another login. @returns true if it ran */
async function runsAs(login: string, retention: string): Promise<boolean> {
  const client = new Client(capture.rig.server.url.replace('postgres@', `${login}@`));
  await client.connect();
  const call = client.query("SELECT mailroom.delete_captured('mailroom', $1::interval)", [retention]);
  const ran = await call.then(
    () => true,
    ({ code }) => !['42501', '22023'].includes(code),
  );
  await client.end();
  return ran;
}

/** A rule, its clauses, and a situation. @returns true if the rule is broken in it */
interface Hole {
  readonly rule: string;
  readonly changes: readonly Change[];
  readonly isBroken: () => Promise<boolean>;
}

const LAGGED = '(c.captured_until BETWEEN excluded.lsn_at - $2 / 2 AND excluded.lsn_at) IS NOT TRUE';

const HOLES: readonly Hole[] = [
  {
    rule: 'an event is deleted only if a later position was confirmed',
    changes: [['confirmed >= c.lsn', 'true']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      return (await capture.retain()) + (await capture.retain()) > 0;
    },
  },
  {
    rule: 'a new slot deletes nothing for half of the retention: Kafka may not have its snapshot',
    changes: [['c.captured_until - c.retention / 2 >= c.since', 'c.captured_until >= c.since']],
    isBroken: async () => {
      await capture.commit(1, expired());
      await capture.createSlot();
      return (await confirmed()) + (await confirmed()) > 0;
    },
  },
  {
    rule: 'a slot that was away may be another one, which counts as new',
    changes: [[LAGGED, 'false']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      await capturedBefore('13 hours');
      await capture.dropSlot();
      await capture.createSlot();
      return (await confirmed()) + (await confirmed()) > 0;
    },
  },
  {
    rule: 'a slot whose last reading is younger than its lag counts as new, too: another one may have taken its place since',
    changes: [[LAGGED, 'c.lsn_at < excluded.lsn_at - $2 / 2']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      await capturedBefore('13 hours');
      return (await confirmed()) > 0;
    },
  },
  {
    rule: 'a slot counts as new if the clock was ahead when it last confirmed something',
    changes: [[LAGGED, 'c.captured_until < excluded.lsn_at - $2 / 2']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      await capturedBefore('-13 hours');
      await capture.dropSlot();
      await capture.createSlot();
      return (await capture.retain()) > 0;
    },
  },
  {
    rule: 'it does so also after a heartbeat that has read nothing',
    changes: [[LAGGED, LAGGED.replace('IS NOT TRUE', 'IS FALSE')]],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      await capturedBefore('-13 hours');
      await capture.retain();
      await capture.dropSlot();
      await capture.createSlot();
      return (await capture.retain()) > 0;
    },
  },
  {
    rule: 'a slot with a shorter retention counts as new: its snapshot may have begun under the longer one',
    changes: [['OR $2 < c.retention', '']],
    isBroken: async () => {
      await oldSlot(undefined, '30 days');
      await capture.commit(1, expired());
      await capturedBefore('10 days');
      await capture.dropSlot();
      await capture.createSlot();
      await confirmed('30 days');
      return (await confirmed()) > 0;
    },
  },
  {
    rule: 'nothing is deleted while the slot of another connector does not exist: its snapshot reads the events',
    changes: [
      [
        'FROM mailroom.capture c;',
        'FROM mailroom.capture c JOIN pg_replication_slots s ON s.slot_name = c.slot;',
      ],
    ],
    isBroken: async () => {
      await oldSlot();
      await oldSlot('second');
      await capture.commit(1, expired());
      await capture.dropSlot('second');
      return (await confirmed()) + (await confirmed()) > 0;
    },
  },
  {
    rule: 'nothing is deleted while the slot of another connector has not confirmed it',
    changes: [['FROM mailroom.capture c;', 'FROM mailroom.capture c WHERE c.slot = $1;']],
    isBroken: async () => {
      await oldSlot();
      await capture.createSlot('second');
      await capture.retain('1 day', 'second');
      await capture.age('second');
      await capture.commit(1, expired());
      return (await confirmed()) + (await confirmed()) > 0;
    },
  },
  {
    rule: 'the longest retention counts',
    changes: [['min(c.captured_until - c.retention)', 'min(c.captured_until - $2)']],
    isBroken: async () => {
      await oldSlot();
      await oldSlot('second', '30 days');
      await capture.commit(1, expired());
      const deleted = (await confirmed('30 days', 'second')) + (await confirmed());
      return deleted > 0;
    },
  },
  {
    rule: 'a reading that is ahead of the log, as after a restore, is taken again',
    changes: [['c.lsn > excluded.lsn', 'false']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      await capture.rig.pool.query("UPDATE mailroom.capture SET lsn = 'FFFFFFFF/0'");
      const atOnce = await confirmed();
      await capture.age();
      return atOnce > 0 || (await confirmed()) !== 1;
    },
  },
  {
    rule: 'a clock that was ahead holds back no deletion: since when a slot is new is not in the future',
    changes: [['OR c.since > excluded.since', '']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      await capture.rig.pool.query("UPDATE mailroom.capture SET since = now() + interval '30 days'");
      expect(await confirmed()).toBe(0);
      await capture.age();
      return (await confirmed()) === 0;
    },
  },
  {
    rule: 'a reading of a clock that was ahead is not of the future',
    changes: [['least(c.lsn_at, excluded.lsn_at)', 'c.lsn_at']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, Date.now() - 20 * 3_600_000);
      await confirmed();
      await capture.rig.pool.query("UPDATE mailroom.capture SET lsn_at = lsn_at + interval '10 hours'");
      return (await confirmed()) > 0;
    },
  },
  {
    rule: 'what was captured by a clock that was ahead is read again',
    changes: [['WHEN c.captured_until <= excluded.lsn_at THEN', 'ELSE']],
    isBroken: async () => {
      await oldSlot();
      await capture.retain();
      await capture.rig.pool.query(
        "UPDATE mailroom.capture SET since = now() + interval '30 days', captured_until = now() + interval '30 days'",
      );
      await capture.commit(1, expired());
      return (await capture.retain()) > 0;
    },
  },
  {
    rule: 'a slot that was lost deletes nothing',
    changes: [["AND s.wal_status IS DISTINCT FROM 'lost'", '']],
    isBroken: async () => {
      await oldSlot();
      await capture.commit(1, expired());
      await capture.retain();
      await capture.confirm();
      await capture.loseSlot();
      expect(await capture.rig.rows('SELECT wal_status FROM pg_replication_slots')).toEqual([
        { wal_status: 'lost' },
      ]);
      return (await capture.retain()) + (await capture.retain()) > 0;
    },
  },
  {
    rule: 'a slot of another database confirms nothing',
    changes: [['AND s.database = current_database()', '']],
    isBroken: async () => {
      const other = new Client(capture.rig.server.url.replace(/postgres$/, 'template1'));
      await other.connect();
      await other.query("SELECT pg_create_logical_replication_slot('mailroom', 'pgoutput')");
      const advance = () =>
        other.query("SELECT pg_replication_slot_advance('mailroom', pg_current_wal_lsn())");
      await capture.retain();
      await advance();
      await capture.retain();
      await capture.age();
      await capture.commit(1, expired());
      await advance();
      await other.end();
      return (await capture.retain()) > 0;
    },
  },
  {
    rule: "an event of a relay is the relay's",
    changes: [["WHERE o.published_by = 'cdc'", 'WHERE true']],
    isBroken: async () => {
      const { database } = capture.rig;
      const clock = { now: expired, sleep: async () => {} };
      const telemetry = memoryTelemetry();
      await createPostgresOutbox({ config: PRODUCER, database, clock, telemetry }).commit(async () => [
        placed(1),
      ]);
      await oldSlot();
      return (await confirmed()) > 0;
    },
  },
  {
    rule: 'a connector of another database is refused',
    changes: [
      [
        "AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'connector')",
        'AND false',
      ],
    ],
    isBroken: () => runsAs('stranger', '1 day'),
  },
  {
    rule: 'a retention of less than an hour is refused',
    changes: [["OR retention < interval '1 hour'", '']],
    isBroken: () => runsAs('debezium', '59 minutes'),
  },
];

describe('the retention of captured events', () => {
  test.each(HOLES)('$rule; without its clause, it is broken', async ({ changes, isBroken }) => {
    expect(await isBroken()).toBe(false);
    await capture.clear();
    expect(await withoutClause(capture.rig.pool, 'delete_captured', changes, isBroken)).toBe(true);
  });

  test('deletes an event after that time, and continues', async () => {
    await oldSlot();
    await capture.commit(1, expired());
    const young = await capture.commit(2);
    expect(await confirmed()).toBe(1);
    expect(await capture.rig.rows('SELECT event_id::text AS id FROM mailroom.event')).toEqual([
      { id: young },
    ]);
    await capture.commit(3, expired());
    expect(await confirmed()).toBe(1);
  });

  test('deletes nothing if it reaches back to before 1970', async () => {
    await oldSlot(undefined, '100 years');
    await capture.commit(1, expired());
    expect(await confirmed('100 years')).toBe(0);
  });

  test('reads only captured events', async () => {
    const client = await capture.rig.pool.connect();
    await client.query('BEGIN; SET LOCAL enable_seqscan = off');
    const { rows } = await client.query(
      "EXPLAIN SELECT event_id FROM mailroom.event WHERE published_by = 'cdc' AND event_id < gen_random_uuid() ORDER BY event_id LIMIT 10000",
    );
    await client.query('ROLLBACK');
    client.release();
    expect(JSON.stringify(rows)).toContain('event_captured');
  });
});
