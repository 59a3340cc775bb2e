import { MailroomError } from '../../base/errors.ts';
import type { DatabaseRelayConfig } from '../../relay/database-config.ts';
import type { Sql } from '../sql/database.ts';
import { readOneRow, readRows } from '../sql/sql-rows.ts';
import { mysqlErrno } from './mysql-error.ts';
import { TABLES } from './schema.ts';

/** A setting of the server, or a property of a table, with which events can be lost, damaged or never published. */
export interface ServerProblem {
  /** The name of the setting or the table. */
  readonly subject: string;
  /** Its value, the possible damage, and the remedy. */
  readonly text: string;
}

/** The way in which a relay claims: it skips locked rows, or it writes a token into rows and reads those. */
export type ClaimMode = 'skip-locked' | 'token';

/** The smallest `max_allowed_packet`: an envelope of 1 MB in Base64, and the rest of its statement. */
const PACKET_MIN = 2 * 1024 * 1024;

type ServerVariables = Readonly<Partial<Record<string, string>>>;

/** A variable, a predicate of a good value, and what a bad one means. Variables that a server does not have are good. */
export type SettingRule = readonly [
  name: string,
  isGood: (value: string, all: ServerVariables) => boolean,
  text: string,
];

/** A deployment of a server can have each of these values as a whole, and a session can have its own. */
const RULES: readonly SettingRule[] = [
  [
    'sql_mode',
    (value) => /STRICT_TRANS_TABLES|STRICT_ALL_TABLES|TRADITIONAL/.test(value),
    'has no STRICT_TRANS_TABLES: the server would cut values that are too long, without an error. Add it to sql_mode',
  ],
  [
    'autocommit',
    (value) => value === 'ON',
    'is off: statements outside a transaction would never be committed. Set autocommit = 1 for the server and for this login',
  ],
  [
    'max_allowed_packet',
    (value) => Number(value) >= PACKET_MIN,
    `is below ${PACKET_MIN} bytes: an event of 1 MB could not be written or read. Raise max_allowed_packet`,
  ],
  ['read_only', (value) => value === 'OFF', 'is on: this server is a replica. Connect to the primary'],
  ['innodb_read_only', (value) => value === 'OFF', 'is on: this server is a reader. Connect to the writer'],
  [
    'binlog_format',
    (value, { log_bin }) => value !== 'STATEMENT' || log_bin !== 'ON',
    'is STATEMENT: the server refuses changes under READ COMMITTED. Set binlog_format = ROW or MIXED',
  ],
  [
    'transaction_isolation',
    (value) => value !== 'SERIALIZABLE',
    'is SERIALIZABLE: each read would lock rows, so producers and relays would wait for each other. Set READ-COMMITTED or REPEATABLE-READ',
  ],
  [
    'tx_isolation',
    (value) => value !== 'SERIALIZABLE',
    'is SERIALIZABLE: each read would lock rows, so producers and relays would wait for each other. Set READ-COMMITTED or REPEATABLE-READ',
  ],
];

/**
 * Reads the settings of the server of a connection, and the engines and character sets of the tables.
 *
 * @param claim - the way in which the relay claims @default 'skip-locked'
 * @param orderBy - of the relay @default none
 * @returns the problems, each with its remedy; empty if events are safe
 */
export async function serverProblems(
  sql: Sql,
  claim: ClaimMode = 'skip-locked',
  orderBy?: DatabaseRelayConfig['orderBy'],
): Promise<ServerProblem[]> {
  return [
    ...(await settingProblems(sql, RULES)),
    ...(await tableProblems(sql)),
    ...(await claimProblems(sql, claim)),
    ...(orderBy === undefined ? [] : await orderProblems(sql)),
  ];
}

/** Reads variables of a session. @returns the problems of those that are bad */
export async function settingProblems(sql: Sql, rules: readonly SettingRule[]): Promise<ServerProblem[]> {
  const names = ['log_bin', ...rules.map(([name]) => name)].map((name) => `'${name}'`);
  const read = `SHOW VARIABLES WHERE Variable_name IN (${names.join(', ')})`;
  const rows = await readRows(sql, read, [], { Variable_name: 'text', Value: 'text' });
  const all: ServerVariables = Object.fromEntries(rows.map((row) => [row.Variable_name, row.Value]));
  return rules.flatMap(([subject, isGood, text]): ServerProblem[] => {
    const value = all[subject];
    return value === undefined || isGood(value, all) ? [] : [{ subject, text: `${subject} ${text}.` }];
  });
}

const READ_TABLES = `SELECT TABLE_NAME AS table_name, ENGINE AS engine
FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mailroom' AND TABLE_TYPE = 'BASE TABLE'`;

const READ_COLUMNS = `SELECT DISTINCT TABLE_NAME AS table_name, CHARACTER_SET_NAME AS charset
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'mailroom' AND CHARACTER_SET_NAME IS NOT NULL AND CHARACTER_SET_NAME <> 'utf8mb4'`;

async function tableProblems(sql: Sql): Promise<ServerProblem[]> {
  const ours: ReadonlySet<string> = new Set(TABLES);
  const tables = await readRows(sql, READ_TABLES, [], { table_name: 'text', engine: 'text?' });
  const narrow = await readRows(sql, READ_COLUMNS, [], { table_name: 'text', charset: 'text' });
  return [
    ...TABLES.filter((name) => !tables.some(({ table_name }) => table_name === name)).map((name) => ({
      subject: `mailroom.${name}`,
      text: `The table mailroom.${name} does not exist. Run migrateMysql as a login that may create it.`,
    })),
    ...tables
      .filter(({ table_name, engine }) => ours.has(table_name) && engine !== 'InnoDB')
      .map(({ table_name, engine }) => ({
        subject: `mailroom.${table_name}`,
        text: `The table mailroom.${table_name} has the engine ${engine}, which has no transactions: events would be published without their transaction. Run ALTER TABLE mailroom.${table_name} ENGINE=InnoDB.`,
      })),
    ...narrow
      .filter(({ table_name }) => ours.has(table_name))
      .map(({ table_name, charset }) => ({
        subject: `mailroom.${table_name}`,
        text: `The table mailroom.${table_name} has columns in ${charset}, which cannot store every character. Run ALTER TABLE mailroom.${table_name} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin.`,
      })),
  ];
}

/** A syntax error: the server does not know SKIP LOCKED. */
const SYNTAX_ERROR = 1064;

async function claimProblems(sql: Sql, claim: ClaimMode): Promise<ServerProblem[]> {
  if (claim === 'token') return [];
  try {
    await sql.query('SELECT event_id FROM mailroom.pending LIMIT 0 FOR UPDATE SKIP LOCKED');
    return [];
  } catch (error) {
    if (mysqlErrno(error) !== SYNTAX_ERROR) throw error;
    const text =
      "The server has no SKIP LOCKED, which MySQL 8.0.1 and MariaDB 10.6 introduced. Set claim to 'token' for the relay (MAILROOM_CLAIM), or update the server.";
    return [{ subject: 'claim', text }];
  }
}

/** The first versions that keep the next number of a table when they are restarted. */
const KEEPS_NUMBERS = { MariaDB: [10, 2, 4], MySQL: [8, 0, 0] } as const;

/** After a restart, earlier ones count on from the greatest number in the queue: an event could be published before a DEAD one of its aggregate. */
async function orderProblems(sql: Sql): Promise<ServerProblem[]> {
  const { version } = await readOneRow(sql, 'SELECT VERSION() AS version', [], { version: 'text' });
  const first = KEEPS_NUMBERS[version.includes('MariaDB') ? 'MariaDB' : 'MySQL'];
  const [major = 0, minor = 0, patch = 0] = (/^[\d.]+/.exec(version)?.[0] ?? '').split('.').map(Number);
  const difference = [major - first[0], minor - first[1], patch - first[2]].find((part) => part !== 0);
  if (difference === undefined || difference > 0) return [];
  const text = `The server ${version} forgets the numbers of events when it restarts, so orderBy cannot keep their order. Update it to MySQL 8.0 or MariaDB 10.2.4, or remove orderBy (MAILROOM_ORDER_BY).`;
  return [{ subject: 'orderBy', text }];
}

/** @throws `BAD_DATABASE` with everything that is wrong with the settings of the server */
export async function refuseSettings(sql: Sql): Promise<void> {
  refuse(await settingProblems(sql, RULES));
}

/** @throws `BAD_DATABASE` with everything that is wrong with the server or the tables */
export async function refuseServer(
  sql: Sql,
  claim?: ClaimMode,
  orderBy?: DatabaseRelayConfig['orderBy'],
): Promise<void> {
  refuse(await serverProblems(sql, claim, orderBy));
}

function refuse(problems: readonly ServerProblem[]): void {
  if (problems.length > 0)
    throw new MailroomError(
      'BAD_DATABASE',
      `MySQL cannot be used: ${problems.map(({ text }) => text).join(' ')}`,
    );
}
