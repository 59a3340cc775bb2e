import { Command, Option } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import {
  grantPostgresRole,
  migratePostgres,
  migrationFile,
  type PostgresGrant,
} from '../../lambdas/runtime/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../lambdas/runtime/store/postgres/schema.ts';
import { sqlState } from '../../lambdas/runtime/store/postgres/sql.ts';
import { databaseUrl } from '../deployment/open-database.ts';
import { type OpenPostgres, openPostgres } from '../deployment/postgres-database.ts';
import { changeEvents } from '../deployment/postgres-outbox-changes.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import { reasonArgument } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { prose } from '../terminal/prose.ts';
import { shell } from '../terminal/shell.ts';
import { createTerminal, type Report, reportOf } from '../terminal/terminal.ts';

/** The variables that hold the address of the database, in order. */
const VARIABLES = ['DATABASE_URL', 'MAILROOM_POSTGRES'];

const ROLES = ['producer', 'relay', 'consumer', 'auditor', 'operator', 'connector'] as const;

interface GrantOptions extends GlobalOptions {
  readonly login: string;
  readonly role: (typeof ROLES)[number];
  readonly service?: string;
  readonly consumer?: readonly string[];
}

interface RequeueOptions extends GlobalOptions {
  readonly eventIds: readonly string[];
  readonly reason: string;
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
      reportingOn<GlobalOptions & { readonly sql?: boolean }>(io, async (open, options) =>
        options.sql ? printedSql() : migrated(await open()),
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
    .action(reportingOn<GrantOptions>(io, async (open, options) => granted(await open(), options), 'login'));
  postgres
    .command('requeue')
    .description(
      'Requeues DEAD events: a relay publishes them, with their attempts counted from 0. Needs the role operator.',
    )
    .argument('[eventIds...]', 'the events; none: all DEAD events')
    .requiredOption('--reason <text>', 'why; stored with the operation', reasonArgument)
    .action(
      reportingOn<RequeueOptions>(io, async (open, options) => requeued(await open(), options), 'eventIds'),
    );
  return postgres;
}

async function migrated({ database, place }: OpenPostgres): Promise<Report> {
  const { from, to } = await migratePostgres(database);
  return reportOf({ database: place, from, to }, { place, from, to }, (seen) =>
    prose(
      seen.from === seen.to
        ? `Database ${seen.place}: the schema mailroom has version ${seen.to}. Nothing was changed.`
        : `Database ${seen.place}: migrated the schema mailroom from version ${seen.from} to ${seen.to}. Grant its roles next: \`npx cdk-mailroom postgres grant <login> --role <role>\`.`,
    ),
  );
}

function printedSql(): Report {
  const files = MIGRATIONS.map((migration) => ({
    version: migration.version,
    sql: migrationFile(migration),
  }));
  return reportOf({ migrations: files }, undefined, () =>
    files
      .map(({ sql }) => sql)
      .join('\n')
      .trimEnd(),
  );
}

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

async function requeued(
  { database, place }: OpenPostgres,
  { eventIds, reason }: RequeueOptions,
): Promise<Report> {
  const wrong = eventIds.find((id) => !isEventId(id));
  if (wrong !== undefined)
    throw new MailroomError('BAD_EVENT_ID', `"${wrong}" is not an event id; expected a UUIDv7 in lowercase.`);
  const chosen = eventIds.length === 0 ? null : eventIds;
  const ids = await changeEvents({ database }, 'requeue', chosen, reason);
  const others = eventIds.filter((id) => !ids.includes(id));
  const json = { database: place, requeued: ids, notDead: others };
  return reportOf(json, { place, others }, (seen) =>
    [
      prose(`Database ${seen.place}: requeued ${many(ids.length, 'event')}.`),
      ...(seen.others.length === 0 ? [] : [prose(`Not DEAD: ${seen.others.join(', ')}.`)]),
    ].join('\n'),
  );
}

/** An action of commander that runs on the database that the options select, and closes it. */
function reportingOn<Options extends GlobalOptions>(
  io: Io,
  run: (open: () => Promise<OpenPostgres>, options: Options) => Promise<Report>,
  ...names: readonly (keyof Options & string)[]
): (...received: unknown[]) => Promise<void> {
  return async (...received) => {
    const command = received.at(-1) as Command;
    const given = Object.fromEntries(names.map((name, index) => [name, received[index]]));
    const options = { ...command.optsWithGlobals<Options>(), ...given };
    let opened: OpenPostgres | undefined;
    const open = async () => {
      const url = databaseUrl(options.database, io.env, VARIABLES);
      if (url === undefined) throw noDatabase();
      opened = await openPostgres(url);
      return opened;
    };
    try {
      const report = await run(open, options);
      await createTerminal(io, options.json ?? false).print(report);
      io.exitCode = report.exitCode;
    } finally {
      await opened?.end();
    }
  };
}

function noDatabase(): MailroomError {
  return new MailroomError(
    'BAD_POSTGRES',
    'No database was given. Pass --database postgresql://<user>@<host>:<port>/<database>, or set DATABASE_URL or MAILROOM_POSTGRES.',
  );
}
