import { MailroomError } from '../../base/errors.ts';
import type { Database, Sql } from '../sql/database.ts';
import { type Migrated, refuseNewer } from '../sql/schema-version.ts';
import { readOneRow, readRows } from '../sql/sql-rows.ts';
import { NOW, numberText } from './expressions.ts';
import { mysqlErrno } from './mysql-error.ts';
import { MIGRATIONS, type MysqlMigration, PREPARE } from './schema.ts';
import { refuseServer, refuseSettings } from './server-check.ts';

/** The version of the schema that this version of Mailroom reads and writes. */
export const SCHEMA_VERSION = Math.max(...MIGRATIONS.map(({ version }) => version));

/** The lock that admits one migration at a time, and the seconds for which the others wait. */
const LOCK = "GET_LOCK('mailroom_migration', 60)";

const APPLIED = `SELECT ${numberText('COALESCE(MAX(version), 0)')} AS version FROM mailroom.migration`;

/** Reads the version of a schema. @throws the database's error, also if it has no such table */
export async function schemaVersion(sql: Sql): Promise<number> {
  return (await readOneRow(sql, APPLIED, [], { version: 'number' })).version;
}

/**
 * Brings the database `mailroom` up to date: its tables and indexes. It may run at every deployment, and concurrently. If it fails, run it
 * again: MySQL commits each statement of a schema, and each may be repeated. Run it as a login that may create databases and tables.
 *
 * @throws `BAD_DATABASE` if the server or a table has a setting with which events can be lost; `NEWER_SCHEMA` if a newer version of Mailroom has
 * migrated it
 *
 * @example
 * ```ts
 * const { from, to } = await migrateMysql(mysql2(createPool(url)));
 * ```
 */
export async function migrateMysql<Tx>(database: Database<Tx>): Promise<Migrated> {
  return database.transaction(async (tx) => {
    const sql = database.in(tx);
    const [lock] = await readRows(sql, `SELECT ${numberText(LOCK)} AS held`, [], { held: 'number?' });
    if (lock?.held !== 1) throw new MailroomError('NO_ANSWER', LOCKED);
    try {
      await refuseSettings(sql);
      for (const text of PREPARE) await sql.query(text);
      const from = await schemaVersion(sql);
      refuseNewer(from, SCHEMA_VERSION);
      for (const { version, statements } of MIGRATIONS.filter((step) => step.version > from)) {
        for (const text of statements) await applied(sql, text);
        await sql.query(`INSERT IGNORE INTO mailroom.migration (version, applied_at) VALUES (?, ${NOW})`, [
          version,
        ]);
      }
      await refuseServer(sql, 'token'); // only a relay needs SKIP LOCKED
      return { from, to: SCHEMA_VERSION };
    } finally {
      await sql.query("DO RELEASE_LOCK('mailroom_migration')").catch(() => {}); // the server releases that of a lost connection
    }
  });
}

/** The column exists. */
const DUPLICATE_COLUMN = 1060;

/** Runs a statement of a migration. One that adds columns adds all of them or none. */
async function applied(sql: Sql, text: string): Promise<void> {
  await sql.query(text).catch((error: unknown) => {
    if (mysqlErrno(error) !== DUPLICATE_COLUMN) throw error; // an earlier migration ended after this statement
  });
}

const LOCKED =
  'Another session has been migrating the database mailroom for a minute. Wait until it has ended, then run this again.';

/** The statements of a migration as a script for MySQL's own client. A procedure contains semicolons, so each ends with another delimiter. */
export function migrationFile({ version, statements }: MysqlMigration): string {
  const recorded = `INSERT IGNORE INTO mailroom.migration (version, applied_at) VALUES (${version}, ${NOW})`;
  const all = [...(version === 1 ? PREPARE : []), ...statements, recorded];
  return `DELIMITER $$\n${all.map((text) => `${text}$$\n`).join('')}DELIMITER ;\n`;
}
