import { Command, Option } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import {
  grantPostgresRole,
  migratePostgres,
  migrationFile,
  type PostgresGrant,
} from '../../lambdas/runtime/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../lambdas/runtime/store/postgres/schema.ts';
import { sqlState } from '../../lambdas/runtime/store/postgres/sql.ts';
import { type OpenPostgres, openPostgres } from '../deployment/postgres-database.ts';
import { changeEvents } from '../deployment/postgres-outbox-changes.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import type { Io } from '../terminal/io.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import {
  addRequeue,
  type CommandDatabase,
  migratedReport,
  printedSql,
  reportingOn,
} from './database-command.ts';

const POSTGRES: CommandDatabase<OpenPostgres> = {
  variables: ['DATABASE_URL', 'MAILROOM_POSTGRES'],
  scheme: /^postgres(ql)?:/i,
  open: (url) => openPostgres(url),
  bad: ['BAD_POSTGRES', 'postgresql://<user>@<host>:<port>/<database>'],
};

const ROLES = ['producer', 'relay', 'consumer', 'auditor', 'operator', 'connector'] as const;

interface GrantOptions extends GlobalOptions {
  readonly login: string;
  readonly role: (typeof ROLES)[number];
  readonly service?: string;
  readonly consumer?: readonly string[];
}

/** `mailroom postgres`. */
export function postgresCommand(io: Io): Command {
  const postgres = new Command('postgres').description(
    'Creates and updates the tables of a Mailroom in PostgreSQL, and grants its roles. Needs no AWS.',
  );
  postgres
    .command('migrate')
    .description(
      'Creates the schema mailroom, its tables and roles, or updates them, in one transaction. Changes nothing if they are up to date.',
    )
    .option('--sql', 'print the statements for another tool, and change nothing')
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom postgres migrate --database postgresql://ada@localhost/shop
  $ npx cdk-mailroom postgres migrate --sql > mailroom.sql`,
    )
    .action(
      reportingOn<OpenPostgres, GlobalOptions & { readonly sql?: boolean }>(
        io,
        POSTGRES,
        async (open, options) => (options.sql ? printedSql(files()) : migrated(await open())),
      ),
    );
  postgres
    .command('grant')
    .description(
      'Grants a role of Mailroom to a login, for the rows of its service or consumers in this database, and sets the timeouts of its new sessions. Repeat it at will.',
    )
    .argument('<login>', 'an existing role with LOGIN')
    .addOption(new Option('--role <name>', 'its part').choices(ROLES).makeOptionMandatory())
    .option('--service <name>', 'the service whose events it writes; for a producer and a consumer')
    .option('--consumer <names...>', 'the consumers whose inbox it has; for a consumer')
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom postgres grant orders --role producer --service orders
  $ npx cdk-mailroom postgres grant payments --role consumer \\
      --service payments --consumer payments`,
    )
    .action(
      reportingOn<OpenPostgres, GrantOptions>(
        io,
        POSTGRES,
        async (open, options) => granted(await open(), options),
        'login',
      ),
    );
  addRequeue(postgres, io, POSTGRES, 'the role operator', ({ database }, eventIds, reason) =>
    changeEvents({ database }, 'requeue', eventIds, reason),
  );
  return postgres;
}

async function migrated({ database, place }: OpenPostgres): Promise<Report> {
  const next = 'Grant its roles next: `npx cdk-mailroom postgres grant <login> --role <role>`.';
  return migratedReport(place, await migratePostgres(database), next);
}

const files = () =>
  MIGRATIONS.map((migration) => ({ version: migration.version, sql: migrationFile(migration) }));

async function granted({ database, place }: OpenPostgres, options: GrantOptions): Promise<Report> {
  const { login } = options;
  const grant = grantOf(options);
  const group = grant.role;
  await grantPostgresRole(database, grant).catch((error: unknown) => {
    if (sqlState(error) !== '42704') throw error;
    throw new MailroomError(
      'BAD_ARGUMENT',
      `The role ${group} or the login "${login}" does not exist in ${place}. Migrate first: \`npx cdk-mailroom postgres migrate\`; then create the login: ${shell`psql -c ${`CREATE ROLE "${login}" LOGIN`}`}.`,
    );
  });
  return reportOf({ database: place, ...grant }, { place, login, group }, (seen) =>
    prose(
      seen.group === 'mailroom_connector'
        ? `Database ${seen.place}: granted ${seen.group} to ${seen.login}.`
        : `Database ${seen.place}: granted ${seen.group} to ${seen.login}, with its timeouts. They apply to new sessions.`,
    ),
  );
}

/** @throws `BAD_ARGUMENT` if an option that the role needs is absent, or one is given that it does not have */
function grantOf({ login, role, service, consumer }: GrantOptions): PostgresGrant {
  const needed = {
    '--service': role === 'producer' || role === 'consumer',
    '--consumer': role === 'consumer',
  };
  const given = { '--service': service !== undefined, '--consumer': consumer !== undefined };
  for (const option of ['--service', '--consumer'] as const)
    if (needed[option] !== given[option])
      throw new MailroomError(
        'BAD_ARGUMENT',
        `A login with the role ${role} ${needed[option] ? `needs ${option}: it has only the rows of those that you name` : `has no ${option}; omit it`}.`,
      );
  if (role === 'producer') return { login, role: `mailroom_${role}`, service: String(service) };
  if (role === 'consumer')
    return { login, role: `mailroom_${role}`, service: String(service), consumers: consumer ?? [] };
  return { login, role: `mailroom_${role}` };
}
