import type { OpenPostgres } from '../../deployment/postgres-database.ts';
import { clockError } from '../../terminal/aws-clock.ts';
import { many } from '../../terminal/output.ts';
import { duration } from '../../terminal/times.ts';
import { check, type PartCheck, type RemediedProblems } from './check.ts';
import { postgresLoginProblems } from './postgres-login-checks.ts';
import { ageMs, psql, stuckQueue } from './postgres-queue-check.ts';
import { postgresSlotProblems } from './postgres-slot-checks.ts';

/** A transaction that is open longer keeps the queue's deleted rows, milliseconds. */
const OLD_SNAPSHOT_MS = 5 * 60_000;

/** Deleted rows of the queue that an autovacuum removes long before: its threshold is 1,000. */
const DEAD_ROWS_MAX = 100_000;

/** Checks of the PostgreSQL database that has the rows. @param now - AWS's time */
export function postgresChecks(open: OpenPostgres, now: () => number): PartCheck[] {
  const { read } = open;

  async function* vacuum(): RemediedProblems {
    const [row] = await read(
      `SELECT n_dead_tup::float8 AS dead, pg_size_pretty(pg_total_relation_size(relid::regclass)) AS size,
        ${ageMs('clock_timestamp() - greatest(last_vacuum, last_autovacuum)')} AS age
        FROM pg_stat_user_tables WHERE schemaname = 'mailroom' AND relname = 'pending'`,
    );
    const dead = Number(row?.dead ?? 0);
    if (dead <= DEAD_ROWS_MAX) return;
    const last = typeof row?.age === 'number' ? `${duration(row.age)} ago` : 'never';
    const text = `the queue mailroom.pending (${row?.size}) has ${many(dead, 'deleted row')}, and was last vacuumed ${last}: relays slow down`;
    yield { problem: 'vacuum', text, fix: psql('VACUUM (VERBOSE) mailroom.pending') };
  }

  async function* snapshots(): RemediedProblems {
    const [row] = await read('SELECT pid, login, app, age_ms AS age FROM mailroom.oldest_snapshot()');
    if (row === undefined || Number(row.age) <= OLD_SNAPSHOT_MS) return;
    const text = `the session ${row.pid} of ${row.login} (${row.app || 'unnamed'}) has held a snapshot for ${duration(Number(row.age))}: no vacuum removes what relays delete, and they slow down. End it if it is not needed`;
    yield {
      problem: 'old-snapshot',
      text,
      fix: psql(`SELECT pg_terminate_backend(${row.pid})`),
    };
  }

  async function* clock(): RemediedProblems {
    const [row] = await read(
      'SELECT round(extract(epoch FROM clock_timestamp())::float8 * 1000::float8) AS at',
    );
    const wrong = clockError(Number(row?.at) - now());
    if (wrong === undefined) return;
    const text = `the database's clock is ${wrong}: leases end at another time than workers expect`;
    yield { problem: 'clock', text, fix: psql('SELECT clock_timestamp()') };
  }

  return [
    check('database', 'flow', () => stuckQueue(open)),
    ...[vacuum, snapshots, ...postgresSlotProblems(open, now), ...postgresLoginProblems(open), clock].map(
      (find) => check('database', 'surroundings', find),
    ),
  ];
}
