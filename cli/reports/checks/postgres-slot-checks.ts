import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { eventIdTime } from '../../../lambdas/runtime/store/event-id.ts';
import type { OpenPostgres } from '../../deployment/postgres-database.ts';
import { many } from '../../terminal/output.ts';
import { duration } from '../../terminal/times.ts';
import type { RemediedProblems } from './check.ts';
import { psql } from './postgres-queue-check.ts';

/** The log that a replication slot may hold back, bytes: 1 GB. */
const SLOT_LAG_MAX = 1_000_000_000;

const SLOTS = `SELECT slot_name AS name, active, wal_status AS state, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 AS lag,
  current_setting('max_slot_wal_keep_size'::text) AS kept FROM pg_replication_slots WHERE NOT pg_is_in_recovery()`;

/**
 * Up to when the events are certainly captured: what the slot that is the farthest behind has confirmed. A time in the future, of a clock that was ahead, says
 * nothing: a slot that is read confirms another one within two heartbeats.
 */
const CAPTURED = `SELECT (SELECT count(*)::float8 FROM pg_replication_slots s WHERE s.database = current_database()) AS slots, c.name, c.until, c.gone
  FROM (SELECT 1) one LEFT JOIN LATERAL (
    SELECT c.slot::text AS name, round(extract(epoch FROM c.until)::float8 * 1000::float8) AS until,
      NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.slot_name = c.slot) AS gone
    FROM (SELECT slot, CASE WHEN captured_until <= clock_timestamp() THEN captured_until END AS until FROM mailroom.capture) c
    ORDER BY c.until NULLS FIRST LIMIT 1::int
  ) c ON true`;

const EVENTS_MAX = 1_000;

/** Events that were left to change data capture from a time on. */
const eventsSince = (ms: number) => `SELECT e.event_id::text AS id FROM mailroom.event e
  WHERE e.published_by = 'cdc'::text AND e.event_id > '${ms.toString(16).padStart(12, '0').padEnd(32, '0')}'::uuid ORDER BY e.event_id LIMIT ${EVENTS_MAX}::int`;

/** The session that reads a slot. @param slot - its name, quoted */
const readerOf = (slot: string) =>
  `SELECT pid, usename, application_name, client_addr FROM pg_stat_activity WHERE pid = (SELECT active_pid FROM pg_replication_slots WHERE slot_name = ${slot})`;

/** Each slot with its position in the log. */
const CONFIRMED = 'SELECT slot_name, active, wal_status, confirmed_flush_lsn FROM pg_replication_slots';

/** Checks of the replication slots, through which change data capture reads the log. @param now - AWS's time */
export function postgresSlotProblems({ read }: OpenPostgres, now: () => number): (() => RemediedProblems)[] {
  async function* slots(): RemediedProblems {
    for (const { name, active, state, lag, kept } of await read(SLOTS)) {
      const held = `${Math.round(Number(lag) / 1e6)} MB of the log`;
      const slot = `'${String(name).replaceAll("'", "''")}'`;
      const drop = psql(`SELECT pg_drop_replication_slot(${slot})`);
      if (state === 'lost') {
        const text = `the replication slot ${name} is lost: it reached max_slot_wal_keep_size (${kept}), and what its reader had not read is not in the log any more. Stop its reader, drop the slot, and let the reader take a snapshot: a connector that \`cdc config\` made does so when it starts`;
        yield { problem: 'slot-lost', text, fix: drop };
      } else if (Number(lag) > SLOT_LAG_MAX) {
        const text = `the replication slot ${name}${active ? '' : ', which has no reader,'} holds back ${held}: the disk fills. Restart its reader, or drop the slot`;
        yield { problem: 'slot-lag', text, fix: active ? psql(readerOf(slot)) : drop };
      } else if (kept === '-1') {
        const text = `the replication slot ${name} may hold back any amount of the log (max_slot_wal_keep_size is -1): if its reader stops, the disk fills`;
        const limit = "ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'";
        yield { problem: 'slot-unlimited', text, fix: psql(limit) };
      }
    }
  }

  async function* uncaptured(): RemediedProblems {
    const [captured] = await read(CAPTURED);
    const left = await read(eventsSince(Number(captured?.until ?? 1)));
    const [oldest] = left;
    const age = oldest === undefined ? 0 : now() - eventIdTime(String(oldest.id));
    if (age <= STUCK_MS) return;
    const some = left.length === EVENTS_MAX ? `at least ${EVENTS_MAX} events` : many(left.length, 'event');
    const why = whyUncaptured(captured);
    const text = `${some} left to change data capture, the oldest ${duration(age)} ago, may not have been read: ${why}`;
    yield { problem: 'capture-behind', text, fix: psql(CONFIRMED) };
  }

  return [slots, uncaptured];
}

function whyUncaptured({ slots, name, gone }: Readonly<Record<string, unknown>> = {}): string {
  const start = 'read the state of its connector (`GET /connectors/<name>/status`), and start it';
  if (gone === true)
    return `the slot ${name} does not exist: start its connector, which creates it and takes a snapshot. If you removed the connector permanently, let the owner of the schema run DELETE FROM mailroom.capture WHERE slot = '${name}': until then, no captured event is deleted`;
  if (Number(slots) === 0)
    return 'the database has no replication slot: create the connector that `npx cdk-mailroom cdc config --database postgres` prints';
  const slot = name === null ? 'no slot has' : `the slot ${name} has not`;
  return `${slot} confirmed them: ${start}`;
}
