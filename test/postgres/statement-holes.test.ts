import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { careForTables } from '../../lambdas/runtime/postgres/postgres-care.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import type { ClaimedEvent } from '../../lambdas/runtime/relay/database-transitions.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../lambdas/runtime/store/postgres/relay-transitions.ts';
import type { Database, Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';
import { PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('statement-holes');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

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
  const database: Database<PgClient> = {
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

function relayOn(database: Sql) {
  return postgresTransitions({ ...parts(), database });
}

const FAILURE = new MailroomError('MalformedDetail', 'Detail is malformed');

/** Claims one event, lets the lease pass, and lets another relay claim it. */
async function takenOver(database: Sql): Promise<{ stale: ClaimedEvent; held: ClaimedEvent }> {
  await rig.commit(1);
  const relay = relayOn(database);
  const [stale] = await relay.claim(1);
  await rig.pool.query('UPDATE mailroom.pending SET due_at = statement_timestamp()');
  const [held] = await relay.claim(1);
  if (stale === undefined || held === undefined) throw new Error('The event was not claimed twice.');
  return { stale, held };
}

/** Returns true if the event is still held by this claim. */
async function isHeld({ eventId, fence }: ClaimedEvent): Promise<boolean> {
  const held = 'SELECT 1 FROM mailroom.pending WHERE event_id = $1 AND fence = $2';
  return (await rig.rows(held, eventId, fence)).length === 1;
}

/** An event whose time has come, as its producer scheduled it. */
async function due(): Promise<string> {
  const [event] = await rig.outbox.commit(async () => [placed(1, { deliverAt: Date.now() + 20 })]);
  const isDue = 'SELECT 1 FROM mailroom.pending WHERE due_at <= clock_timestamp()';
  await expect.poll(async () => (await rig.rows(isDue)).length).toBe(1);
  return event?.eventId ?? '';
}

function outboxOn(database: Database<PgClient>, service = PRODUCER.service) {
  return createPostgresOutbox({ config: { ...PRODUCER, service }, database, telemetry: memoryTelemetry() });
}

/** An event that was published 8 days ago, beyond its retention. */
async function publishedLongAgo(): Promise<string> {
  const [eventId = ''] = await rig.commit(1);
  await rig.pool.query('DELETE FROM mailroom.pending');
  await rig.pool.query("INSERT INTO mailroom.published VALUES ($1, now() - interval '8 days')", [eventId]);
  return eventId;
}

const isLost = async () => (await rig.rows('SELECT 1 FROM mailroom.event')).length === 0;

const NOTIFIES = 'WHERE NOT pg_catalog.pg_try_advisory_xact_lock_shared(1296124237::bigint)';

/** @returns the notifications that a call has sent */
async function notificationsOf(call: () => Promise<unknown>): Promise<string[]> {
  const client = await rig.pool.connect();
  const heard: string[] = [];
  client.on('notification', ({ payload = '' }) => heard.push(payload));
  await client.query('LISTEN mailroom');
  await call();
  await client.query("SELECT pg_notify('mailroom', 'last')");
  await expect.poll(() => heard).toContain('last');
  client.release(true);
  return heard.filter((payload) => payload !== 'last');
}

/** A rule, its clause, and a situation. @returns true if the rule is broken in it */
interface Hole {
  readonly rule: string;
  readonly changes: readonly Change[];
  readonly isBroken: (database: Database<PgClient>) => Promise<boolean>;
}

const HOLES: readonly Hole[] = [
  {
    rule: 'two relays never hold an event at a time',
    changes: [['FOR UPDATE SKIP LOCKED', '']],
    isBroken: async (database) => {
      await rig.commit(1);
      const first = await rig.pool.connect();
      await first.query('BEGIN');
      const claimed = await relayOn(database.in(first)).claim(1);
      const second = relayOn(database).claim(1);
      // Without the rule it waits for the first claim, and must not be awaited before that ends.
      await Promise.race([second, untilOneWaits()]);
      await first.query('COMMIT');
      first.release();
      return claimed.length + (await second).length > 1;
    },
  },
  {
    rule: 'an event is not claimed before it is due',
    changes: [['due_at <= statement_timestamp()', 'true']],
    isBroken: async (database) => {
      await rig.outbox.commit(async () => [placed(1, { deliverAt: Date.now() + 3_600_000 })]);
      return (await relayOn(database).claim(1)).length > 0;
    },
  },
  {
    rule: 'the next claim begins a second before now, so that it finds events whose transactions commit by then',
    changes: [["statement_timestamp() - 1000::float8 * interval '1 ms'", 'statement_timestamp()']],
    isBroken: async (database) => {
      const bounds: string[] = [];
      const relay = relayOn({
        query: (text, values = []) => {
          bounds.push(String(values[3]));
          return database.query(text, values);
        },
      });
      await relay.claim(1);
      const [read] = await rig.rows('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');
      await relay.claim(1);
      return Date.parse(bounds[1] ?? '') > Number(read?.now) - 1_000;
    },
  },
  {
    rule: 'the next claim begins at the last event of this one, if this one took all that it could',
    changes: [['WHEN count(*) >= $1::int THEN max(due_at) END', 'WHEN $1::int < 0 THEN max(due_at) END']],
    isBroken: async (database) => {
      await rig.commit(1);
      await rig.commit(2);
      await rig.pool.query("UPDATE mailroom.pending SET due_at = due_at - interval '10 minutes'");
      const relay = relayOn(database);
      await relay.claim(1);
      return (await relay.claim(1)).length === 0;
    },
  },
  {
    rule: 'a commit notifies a relay that sleeps',
    changes: [[NOTIFIES, 'WHERE false']],
    isBroken: async (database) => {
      const sleeper = await rig.pool.connect();
      await sleeper.query('SELECT pg_advisory_lock(1296124237)');
      const heard = await notificationsOf(() => outboxOn(database).commit(async () => [placed(1)]));
      await sleeper.query('SELECT pg_advisory_unlock(1296124237)');
      sleeper.release();
      return heard.length === 0;
    },
  },
  {
    rule: 'a commit notifies no relay while none sleeps, because notifications make commits wait for each other',
    changes: [[NOTIFIES, '']],
    isBroken: async (database) => {
      const heard = await notificationsOf(() => outboxOn(database).commit(async () => [placed(1)]));
      return heard.length > 0;
    },
  },
  {
    rule: 'no relay falls asleep while a transaction that did not notify is open',
    changes: [['pg_catalog.pg_try_advisory_xact_lock_shared(1296124237::bigint)', 'true']],
    isBroken: async (database) => {
      const producer = await rig.pool.connect();
      await producer.query('BEGIN');
      await outboxOn(database).write(producer, [placed(1)]);
      const [lock] = await rig.rows(
        'SELECT pg_try_advisory_lock(1296124237) AS held, pg_advisory_unlock_all()',
      );
      await producer.query('ROLLBACK');
      producer.release();
      return lock?.held === true;
    },
  },
  {
    rule: 'a relay whose lease has passed records no failure',
    changes: [
      [
        'WHERE p.event_id = $1::uuid AND p.fence = $2::uuid',
        'WHERE p.event_id = $1::uuid AND $2::uuid IS NOT NULL',
      ],
    ],
    isBroken: async (database) => {
      const { stale, held } = await takenOver(database);
      await relayOn(database).failEvent(stale, FAILURE, false);
      return !(await isHeld(held));
    },
  },
  {
    rule: 'a relay whose lease has passed makes no event DEAD',
    changes: [
      [
        'WHERE p.event_id = $1::uuid AND p.fence = $2::uuid',
        'WHERE p.event_id = $1::uuid AND $2::uuid IS NOT NULL',
      ],
    ],
    isBroken: async (database) => {
      const { stale, held } = await takenOver(database);
      await relayOn(database).failEvent(stale, FAILURE, true);
      return !(await isHeld(held));
    },
  },
  {
    rule: 'a relay whose lease has passed releases no event',
    // The statement says so twice: when it locks the row, and when it changes it.
    changes: [
      [' AND fence = $2::uuid ORDER', ' AND $2::uuid IS NOT NULL ORDER'],
      ['AND p.fence = $2::uuid', ''],
    ],
    isBroken: async (database) => {
      const { stale, held } = await takenOver(database);
      await relayOn(database).release([stale], 0);
      return !(await isHeld(held));
    },
  },
  {
    rule: 'a relay whose lease has passed renews no lease',
    changes: [
      [
        'WHERE p.event_id = $1::uuid AND p.fence = $2::uuid RETURNING',
        'WHERE p.event_id = $1::uuid AND $2::uuid IS NOT NULL RETURNING',
      ],
    ],
    isBroken: async (database) => {
      const { stale } = await takenOver(database);
      return (await relayOn(database).renew(stale)) !== undefined;
    },
  },
  {
    rule: 'an event that was published after it became DEAD is published',
    changes: [['DELETE FROM mailroom.dead WHERE', 'DELETE FROM mailroom.dead WHERE false AND']],
    isBroken: async (database) => {
      const { stale, held } = await takenOver(rig.database);
      await relayOn(rig.database).failEvent(held, FAILURE, true);
      await relayOn(database).markPublished([stale]);
      return (await rig.rows('SELECT 1 FROM mailroom.dead')).length > 0;
    },
  },
  {
    rule: 'an event that a relay has had is not cancelled',
    changes: [
      ['AND p.due_at = to_timestamp($2::double precision / 1000::float8)', 'AND $2::double precision > 0'],
    ],
    isBroken: async (database) => {
      const eventId = await due();
      const relay = relayOn(rig.database);
      await relay.release(
        await relay.claim(1),
        60_000,
        'The bus did not answer: it may have taken the event',
      );
      const cancelled = await rig.database.transaction((tx) => outboxOn(database).cancel(tx, eventId));
      return cancelled === 'cancelled';
    },
  },
  {
    rule: 'only its own service cancels an event',
    changes: [['AND e.source = $3::text', 'AND $3::text IS NOT NULL']],
    isBroken: async (database) => {
      const eventId = await due();
      await rig.database.transaction((tx) => outboxOn(database, 'payments').cancel(tx, eventId));
      return (await rig.rows('SELECT 1 FROM mailroom.pending')).length === 0;
    },
  },
  {
    rule: 'an event that waits again is not deleted with an old publication',
    changes: [['AND NOT EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = e.event_id)', '']],
    isBroken: async (database) => {
      const eventId = await publishedLongAgo();
      await rig.pool.query('INSERT INTO mailroom.pending (event_id) VALUES ($1)', [eventId]);
      await careForTables({ ...parts(), database });
      return isLost();
    },
  },
  {
    rule: 'an event that is DEAD is not deleted with an old publication',
    changes: [['AND NOT EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = e.event_id)', '']],
    isBroken: async (database) => {
      const eventId = await publishedLongAgo();
      await rig.pool.query("INSERT INTO mailroom.dead VALUES ($1, now(), 3, 'e', 'f')", [eventId]);
      await careForTables({ ...parts(), database });
      return isLost();
    },
  },
];

/** Waits until a statement waits for a lock. */
async function untilOneWaits(): Promise<void> {
  const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  await expect.poll(async () => (await rig.rows(waiting)).length, { timeout: 60_000 }).toBeGreaterThan(0);
}

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
