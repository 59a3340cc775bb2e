import { Command, Option } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import type { Io } from '../terminal/io.ts';
import { createTerminal, reportOf } from '../terminal/terminal.ts';
import { type ConnectorOptions, connectorOf, connectorSql, TOPICS } from './cdc-connector.ts';

interface CdcOptions extends GlobalOptions, Pick<ConnectorOptions, 'name' | 'topics' | 'slotCap'> {
  readonly retention: string;
  readonly sql?: boolean;
}

/** The names of slots in PostgreSQL. They are also names of publications, and beginnings of topics. */
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** A size as PostgreSQL writes it, that is not unlimited. */
const SIZE = /^[1-9]\d{0,5}(MB|GB|TB)$/;

const RETENTION_DAYS_MAX = 3_650;

/** `mailroom cdc`. */
export function cdcCommand(io: Io): Command {
  const cdc = new Command('cdc').description(
    "Change data capture of the events of `relay: 'cdc'`, with Debezium. Needs no AWS and no database.",
  );
  cdc
    .command('config')
    .description(
      'Prints the configuration of a Debezium connector, as Kafka Connect receives it. The Connect worker reads the password from PGPASSWORD in its environment.',
    )
    .option('--name <name>', 'names the connector, its slot, its publication and its topics', 'mailroom')
    .addOption(
      new Option('--topics <by>', 'a topic for each value of this, or one topic')
        .choices(Object.keys(TOPICS))
        .default('aggregate-type'),
    )
    .option('--retention <days>', 'how long captured events stay in the database', '7')
    .option('--slot-cap <size>', 'the log that a stopped connector may hold back, for --sql', '20GB')
    .option('--sql', 'print the statements that the owner of the database runs before')
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom cdc config --database postgres --sql
  $ url=postgresql://debezium@db.example:5432/shop
  $ npx cdk-mailroom cdc config --database "$url" > mailroom.json
  $ curl --json @mailroom.json http://connect:8083/connectors`,
    )
    .action(async (_options: unknown, command: Command) => {
      const options = checked(command.optsWithGlobals<CdcOptions>());
      const connector = connectorOf(options);
      const isSql = command.optsWithGlobals<CdcOptions>().sql === true;
      const report = isSql
        ? reportOf({ sql: connectorSql(options) }, undefined, () => connectorSql(options))
        : reportOf(connector, undefined, () => JSON.stringify(connector, null, 2));
      await createTerminal(io, command.optsWithGlobals<CdcOptions>().json ?? false).print(report);
      io.exitCode = report.exitCode;
    });
  return cdc;
}

/** @throws `BAD_ARGUMENT`, naming the option */
function checked({ database, name, topics, retention, slotCap }: CdcOptions): ConnectorOptions {
  const bad = (problem: string) => new MailroomError('BAD_ARGUMENT', problem);
  if (database === undefined)
    throw bad('--database is missing: pass postgres, or postgresql://<user>@<host>:<port>/<database>.');
  if (!NAME.test(name))
    throw bad(
      `--name is ${JSON.stringify(name)}; a name has 1 to 63 lowercase letters, digits and underscores, and begins with no digit, because it is that of a replication slot.`,
    );
  const retentionDays = Number(retention);
  if (!/^\d+$/.test(retention) || retentionDays < 1 || retentionDays > RETENTION_DAYS_MAX)
    throw bad(
      `--retention is ${JSON.stringify(retention)}; allowed: 1 to ${RETENTION_DAYS_MAX} days, at most the inbox retention of the consumers.`,
    );
  if (!SIZE.test(slotCap))
    throw bad(
      `--slot-cap is ${JSON.stringify(slotCap)}; allowed: a size such as 512MB or 20GB. Without a limit, a stopped connector fills the disk.`,
    );
  return { database, name, topics, retentionDays, slotCap };
}
