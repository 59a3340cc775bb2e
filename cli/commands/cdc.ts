import { Command, Option } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import type { Io } from '../terminal/io.ts';
import { createTerminal, reportOf } from '../terminal/terminal.ts';
import { type ConnectorOptions, TOPICS } from './cdc-connector.ts';
import { isMysql, MYSQL_SQL, mysqlConfig } from './cdc-mysql.ts';
import { postgresConfig, postgresSql } from './cdc-postgres.ts';

interface CdcOptions extends GlobalOptions, Pick<ConnectorOptions, 'name' | 'topics'> {
  readonly slotCap?: string;
  readonly retention: string;
  readonly sql?: boolean;
}

/** The names of slots in PostgreSQL. They are also names of publications, and beginnings of topics. */
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** A size as PostgreSQL writes it, that is not unlimited. */
const SIZE = /^[1-9]\d{0,5}(MB|GB|TB)$/;

const SLOT_CAP = '20GB';

const RETENTION_DAYS_MAX = 3_650;

/** `mailroom cdc`. */
export function cdcCommand(io: Io): Command {
  const cdc = new Command('cdc').description(
    "Change data capture of the events of `relay: 'cdc'`, with Debezium. Needs no AWS and no database.",
  );
  cdc
    .command('config')
    .description(
      'Prints the configuration of a Debezium connector, as Kafka Connect receives it. The Connect worker reads the password from PGPASSWORD or MYSQL_PWD in its environment.',
    )
    .option('--name <name>', 'names the connector, its slot, its publication and its topics', 'mailroom')
    .addOption(
      new Option('--topics <by>', 'a topic for each value of this, or one topic')
        .choices(Object.keys(TOPICS))
        .default('aggregate-type'),
    )
    .option('--retention <days>', 'how long captured events stay in the database', '7')
    .option(
      '--slot-cap <size>',
      `the log that a stopped connector of PostgreSQL may hold back, for --sql (default: "${SLOT_CAP}")`,
    )
    .option('--sql', 'print the statements that the owner of the database runs before')
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom cdc config --database postgres --sql
  $ url=postgresql://debezium@db.example:5432/shop
  $ npx cdk-mailroom cdc config --database "$url" > mailroom.json
  $ npx cdk-mailroom cdc config --database mariadb://debezium@db.example:3306
  $ curl --json @mailroom.json http://connect:8083/connectors`,
    )
    .action(async (_options: unknown, command: Command) => {
      const options = checked(command.optsWithGlobals<CdcOptions>());
      const isOfMysql = isMysql(options.database);
      const config = isOfMysql ? mysqlConfig(options) : postgresConfig(options);
      const connector = { name: options.name, config };
      const sql = isOfMysql ? MYSQL_SQL : postgresSql(options);
      const isSql = command.optsWithGlobals<CdcOptions>().sql === true;
      const report = isSql
        ? reportOf({ sql }, undefined, () => sql)
        : reportOf(connector, undefined, () => JSON.stringify(connector, null, 2));
      await createTerminal(io, command.optsWithGlobals<CdcOptions>().json ?? false).print(report);
      io.exitCode = report.exitCode;
    });
  return cdc;
}

/** @throws `BAD_ARGUMENT`, naming the option */
function checked({ database, name, topics, retention, slotCap: given }: CdcOptions): ConnectorOptions {
  const bad = (problem: string) => new MailroomError('BAD_ARGUMENT', problem);
  if (database === undefined)
    throw bad(
      '--database is missing: pass postgres, mysql or mariadb, or a URL such as postgresql://<user>@<host>:<port>/<database>.',
    );
  if (!NAME.test(name))
    throw bad(
      `--name is ${JSON.stringify(name)}; a name has 1 to 63 lowercase letters, digits and underscores, and begins with no digit, because it is that of a replication slot.`,
    );
  const retentionDays = Number(retention);
  if (!/^\d+$/.test(retention) || retentionDays < 1 || retentionDays > RETENTION_DAYS_MAX)
    throw bad(
      `--retention is ${JSON.stringify(retention)}; allowed: 1 to ${RETENTION_DAYS_MAX} days, at most the inbox retention of the consumers.`,
    );
  if (given !== undefined && isMysql(database))
    throw bad('--slot-cap is for PostgreSQL: MySQL has no replication slots, and deletes its binlog by age.');
  const slotCap = given ?? SLOT_CAP;
  if (!SIZE.test(slotCap))
    throw bad(
      `--slot-cap is ${JSON.stringify(slotCap)}; allowed: a size such as 512MB or 20GB. Without a limit, a stopped connector fills the disk.`,
    );
  return { database, name, topics, retentionDays, slotCap };
}
