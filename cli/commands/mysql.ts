import { Command } from 'commander';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { migrateMysql, migrationFile } from '../../lambdas/runtime/store/mysql/migrate.ts';
import { changeEvents } from '../../lambdas/runtime/store/mysql/outbox-operator.ts';
import { MIGRATIONS } from '../../lambdas/runtime/store/mysql/schema.ts';
import { type OpenMysql, openMysql } from '../deployment/mysql-database.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import { createAwsClock } from '../terminal/aws-clock.ts';
import type { Io } from '../terminal/io.ts';
import {
  addRequeue,
  type CommandDatabase,
  migratedReport,
  printedSql,
  reportingOn,
} from './database-command.ts';

const MYSQL: CommandDatabase<OpenMysql> = {
  variables: ['DATABASE_URL', 'MAILROOM_MYSQL'],
  scheme: /^(mysql|mariadb):/i,
  open: (url, { MYSQL_PWD }) => openMysql(url, MYSQL_PWD),
  bad: ['BAD_MYSQL', 'mysql://<user>@<host>:<port>'],
};

/** `mailroom mysql`. */
export function mysqlCommand(io: Io): Command {
  const mysql = new Command('mysql').description(
    'Creates and updates the tables of a Mailroom in MySQL or MariaDB. Needs no AWS.',
  );
  mysql
    .command('migrate')
    .description(
      'Creates the database mailroom and its tables, or updates them. Changes nothing if they are up to date, or if the server has a setting that can lose events.',
    )
    .option('--sql', 'print the statements for another tool, and change nothing')
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom mysql migrate --database mysql://ada@localhost
  $ npx cdk-mailroom mysql migrate --sql > mailroom.sql`,
    )
    .action(
      reportingOn<OpenMysql, GlobalOptions & { readonly sql?: boolean }>(io, MYSQL, async (open, options) =>
        options.sql ? printedSql(files()) : migrated(await open()),
      ),
    );
  addRequeue(
    mysql,
    io,
    MYSQL,
    'SELECT, INSERT, UPDATE and DELETE ON mailroom.*',
    ({ database }, ids, reason) =>
      changeEvents({ database, clock: createAwsClock(), random: systemRandomBytes }, 'requeue', ids, reason),
  );
  return mysql;
}

const files = () =>
  MIGRATIONS.map((migration) => ({ version: migration.version, sql: migrationFile(migration) }));

async function migrated({ database, place }: OpenMysql) {
  const done = await migrateMysql(database);
  return migratedReport(place, done, 'Grant its tables to the logins of your services next (docs/mysql.md).');
}
