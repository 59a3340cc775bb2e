import type { OpenPostgres } from '../../deployment/postgres-database.ts';
import type { RemediedProblems } from './check.ts';

/** The timeouts that `postgres grant` sets. */
const TIMEOUTS = ['lock_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout'];

/** The logins that have rows of Mailroom in this database, by role; `config` is NULL if the login was dropped. */
const LOGINS = `SELECT l.login, l.role, pg_catalog.json_agg(l.scope ORDER BY l.scope) AS scopes, r.rolname IS NOT NULL AS present,
    coalesce(r.rolconfig, '{}') AS config
  FROM mailroom.login l LEFT JOIN pg_roles r ON r.rolname = l.login AND r.rolcanlogin
  GROUP BY l.login, l.role, r.rolname, r.rolconfig ORDER BY l.login, l.role`;

/** Tables with rows of services that every login with a role reads whole. */
const OPEN = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'mailroom' AND c.relkind IN ('r'::"char", 'p'::"char") AND NOT c.relrowsecurity AND c.relname NOT IN ('login', 'migration') ORDER BY 1`;

/** Finds logins that lack what `postgres grant` gives them, and what lets a login reach the rows of others. */
export function postgresLoginProblems({ read, foreignObjects }: OpenPostgres): (() => RemediedProblems)[] {
  async function* logins(): RemediedProblems {
    const rows = await read(LOGINS);
    const scopesOf = (login: unknown, role: string): string[] =>
      rows.find((row) => row.login === login && row.role === role)?.scopes as string[];
    for (const { login, role, present, config } of rows) {
      if (present === false) {
        const text = `the login ${login} does not exist, but has the role ${role}: a new login of that name would get its rows`;
        const drop = `DELETE FROM mailroom.login WHERE login = '${String(login).replaceAll("'", "''")}'`;
        yield { problem: 'login-absent', text, fix: ['psql', '-c', drop] };
        continue;
      }
      const missing = TIMEOUTS.filter(
        (name) => !(config as string[]).some((one) => one.startsWith(`${name}=`)),
      );
      if (missing.length === 0) continue;
      const text = `the login ${login} has no ${missing.join(', ')}: one of its sessions that hangs holds up others`;
      const [service = ''] = scopesOf(login, 'producer') ?? [];
      const scope = {
        producer: ['--service', service],
        consumer: ['--service', service, '--consumer', ...(scopesOf(login, 'consumer') ?? [])],
      }[String(role)];
      const grant = ['postgres', 'grant', String(login), '--role', String(role), ...(scope ?? [])];
      yield { problem: 'login-timeouts', text, fix: ['npx', 'cdk-mailroom', ...grant] };
    }
  }

  async function* open(): RemediedProblems {
    for (const { name } of await read(OPEN)) {
      const text = `the table mailroom.${name} has no row-level security: every login with a role reaches the rows of all services`;
      const enable = `ALTER TABLE mailroom.${name} ENABLE ROW LEVEL SECURITY`;
      yield { problem: 'row-security', text, fix: ['psql', '-c', enable] };
    }
  }

  async function* foreign(): RemediedProblems {
    for (const { object, owner } of await foreignObjects()) {
      const text = `the schema mailroom has the ${object} of ${owner}: code of another login could run with the rights of your services. Remove it`;
      yield { problem: 'foreign-object', text, fix: ['psql', '-c', '\\d mailroom.*'] };
    }
  }

  return [logins, open, foreign];
}
