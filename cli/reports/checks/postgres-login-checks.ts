import type { OpenPostgres } from '../../deployment/postgres-database.ts';
import type { AsyncProblems } from './check.ts';

/** The timeouts that `postgres grant` sets. */
const TIMEOUTS = ['lock_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout'];

/** The logins that have a role of Mailroom. */
const LOGINS = `SELECT r.rolname AS login, g.rolname AS role, coalesce(r.rolconfig, '{}') AS config FROM pg_auth_members m
        JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r ON r.oid = m.member
        WHERE g.rolname::text LIKE 'mailroom\\_%' AND r.rolcanlogin ORDER BY 1, 2`;

/** Finds logins that lack what `postgres grant` gives them, and objects that another login has made in the schema. */
export function postgresLoginProblems({ read, foreignObjects }: OpenPostgres): (() => AsyncProblems)[] {
  async function* timeouts(): AsyncProblems {
    const rows = await read(LOGINS);
    for (const { login, role, config } of rows) {
      const missing = TIMEOUTS.filter(
        (name) => !(config as string[]).some((one) => one.startsWith(`${name}=`)),
      );
      if (missing.length === 0) continue;
      const text = `the login ${login} has no ${missing.join(', ')}: one of its sessions that hangs holds up others`;
      const grant = ['postgres', 'grant', String(login), '--role', String(role).slice('mailroom_'.length)];
      yield { problem: 'login-timeouts', text, fix: ['npx', 'cdk-mailroom', ...grant] };
    }
  }

  async function* foreign(): AsyncProblems {
    for (const { object, owner } of await foreignObjects()) {
      const text = `the schema mailroom has the ${object} of ${owner}: code of another login could run with the rights of your services. Remove it`;
      yield { problem: 'foreign-object', text, fix: ['psql', '-c', '\\d mailroom.*'] };
    }
  }

  return [timeouts, foreign];
}
