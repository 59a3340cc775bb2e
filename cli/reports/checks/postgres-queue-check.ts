import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import type { OpenPostgres } from '../../deployment/postgres-database.ts';
import { duration } from '../../terminal/times.ts';
import type { CommandWords, RemediedProblems } from './check.ts';

/** An interval as milliseconds. */
export function ageMs(interval: string): string {
  return `round(extract(epoch FROM ${interval})::float8 * 1000::float8)`;
}

/** The words that run a statement as an owner of the database. */
export function psql(statement: string): CommandWords {
  return ['psql', '-c', statement];
}

/** The logins of relays, how many of their sessions are connected, and whether one has just published an event. */
const RELAY_SESSIONS = `SELECT (SELECT string_agg(DISTINCT l.login::text, ', ') FROM mailroom.login l WHERE l.role = 'relay'::text) AS logins,
    (SELECT count(*)::float8 FROM pg_stat_activity a JOIN mailroom.login l ON l.login = a.usename AND l.role = 'relay'::text WHERE a.datname = current_database()) AS connected,
    EXISTS (SELECT 1 FROM mailroom.published p WHERE p.published_at > clock_timestamp() - interval '1 min') AS works`;

/** The sessions of others than relays that hold locks of rows of the queue, and not for this statement only. */
const LOCK_HOLDERS = `SELECT DISTINCT l.pid, a.usename AS login, a.application_name AS app FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.relation = 'mailroom.pending'::regclass::oid AND l.granted AND l.mode <> 'AccessShareLock'::text AND l.pid <> pg_backend_pid()
    AND NOT EXISTS (SELECT 1 FROM mailroom.login r WHERE r.login = a.usename AND r.role = 'relay'::text) ORDER BY l.pid LIMIT 1`;

/** Lists the functions that relay a database, as their constructs describe them. */
const RELAY_FUNCTIONS: CommandWords = [
  'aws',
  ...['lambda', 'list-functions', '--output', 'text', '--query'],
  "Functions[?Description=='Mailroom relay of a PostgreSQL database'].FunctionName",
];

/** Finds an event that has been due for minutes, and why no relay publishes it. */
export async function* stuckQueue({ read }: OpenPostgres): RemediedProblems {
  const [row] = await read(
    `SELECT ${ageMs('statement_timestamp() - min(due_at)')} AS age FROM mailroom.pending WHERE due_at <= statement_timestamp()`,
  );
  const age = Number(row?.age ?? 0);
  if (age <= STUCK_MS) return;
  const due = `an event has been due for ${duration(age)}`;
  const [relay] = await read(RELAY_SESSIONS);
  const isRunning = Number(relay?.connected) > 0 || relay?.works === true;
  const [holder] = isRunning || relay?.logins === null ? await read(LOCK_HOLDERS) : [];
  if (holder !== undefined) {
    const text = `${due}: the session ${holder.pid} of ${holder.login} (${holder.app || 'unnamed'}) has locked the queue in an open transaction, and relays skip the rows that it holds. End it if it is not needed`;
    yield { problem: 'pending-locked', text, fix: psql(`SELECT pg_terminate_backend(${holder.pid})`) };
    return;
  }
  const why = isRunning
    ? 'a relay is connected, but does not reach the bus, or does not declare the source: its log shows which'
    : `no relay is connected${relay?.logins ? ` with its login, ${relay.logins}` : ''}: start it, or enable the rule that runs its function`;
  yield {
    problem: 'pending-stuck',
    text: `${due}: ${why}. The command names a relay's function`,
    fix: RELAY_FUNCTIONS,
  };
}
