import { MailroomError } from '../../base/errors.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { eventIdTime } from '../event-id.ts';
import type { Sql } from '../sql/database.ts';
import { readRows } from '../sql/sql-rows.ts';
import { NOW, numberText } from './expressions.ts';
import { mysqlErrno } from './mysql-error.ts';
import { type ServerProblem, type SettingRule, settingProblems } from './server-check.ts';

/** The shortest time for which the binlog must be kept, seconds: a connector that is away for longer needs a snapshot. */
const BINLOG_SECONDS_MIN = 86_400;

/** A connector beats every 10 seconds. One whose last heartbeat is in the future, of a clock that was ahead, has not beaten since, either. */
const SILENT_MS = 5 * MINUTE_MS;

/** Settings without which the binlog has no complete record of each event. */
const RULES: readonly SettingRule[] = [
  [
    'log_bin',
    (value) => value === 'ON',
    'is off: the server writes no binlog, which change data capture reads. Set log_bin',
  ],
  [
    'sql_log_bin',
    (value) => value === 'ON',
    'is off in this session: its events are not in the binlog. Set sql_log_bin = ON',
  ],
  [
    'binlog_format',
    (value) => value === 'ROW',
    'is not ROW: the binlog has statements in place of rows. Set binlog_format = ROW',
  ],
  [
    'binlog_row_image',
    (value) => value.startsWith('FULL'),
    'is not FULL: rows in the binlog may lack columns. Set binlog_row_image = FULL',
  ],
  [
    'server_id',
    (value) => Number(value) > 0,
    'is 0: the server refuses connectors, which read as replicas do. Set server_id to a number that no other server has',
  ],
  [
    'binlog_expire_logs_seconds',
    (value) => Number(value) === 0 || Number(value) >= BINLOG_SECONDS_MIN,
    'is less than a day: a connector that is away for longer loses its position. Set binlog_expire_logs_seconds to 86400 or more',
  ],
];

/** A problem of change data capture. */
export interface CaptureProblem extends ServerProblem {
  /** `setting`: the server does not write events to its binlog as connectors need them; `connector`: none reads them. */
  readonly kind: 'setting' | 'connector';
}

/** @throws `BAD_DATABASE` with every setting of this session without which its events would not be captured */
export async function refuseUncapturable(sql: Sql): Promise<void> {
  const problems = await binlogProblems(sql);
  if (problems.length === 0) return;
  const text = problems.map((problem) => problem.text).join(' ');
  throw new MailroomError('BAD_DATABASE', `relay: 'cdc' cannot be used: ${text}`);
}

async function binlogProblems(sql: Sql): Promise<CaptureProblem[]> {
  const found = [...(await settingProblems(sql, RULES)), ...(await filterProblems(sql))];
  return found.map((problem) => ({ ...problem, kind: 'setting' }));
}

/** Statements that show the filters of the binlog: MariaDB and MySQL before 8.4 know the first one, MySQL from 8.2 the second. */
const BINLOG_STATUS = ['SHOW MASTER STATUS', 'SHOW BINARY LOG STATUS'] as const;

/** The statement is unknown. */
const SYNTAX_ERROR = 1064;

/** The login lacks a right on the server. */
const RIGHT_MISSING = 1227;

/** Of a database that the filters leave out, no row is in the binlog. A variable does not show them. */
async function filterProblems(sql: Sql): Promise<ServerProblem[]> {
  const columns = { Binlog_Do_DB: 'text', Binlog_Ignore_DB: 'text' } as const;
  const read = (statement: string) => readRows(sql, statement, [], columns);
  try {
    const [status] = await read(BINLOG_STATUS[0]).catch((error: unknown) => {
      if (mysqlErrno(error) === SYNTAX_ERROR) return read(BINLOG_STATUS[1]);
      throw error;
    });
    return status === undefined ? [] : leftOut(status.Binlog_Do_DB, status.Binlog_Ignore_DB);
  } catch (error) {
    if (mysqlErrno(error) !== RIGHT_MISSING) throw error;
    const subject = 'binlog_do_db';
    return [{ subject, text: `${subject} and binlog_ignore_db cannot be read. ${GRANT_MONITOR}` }];
  }
}

const GRANT_MONITOR =
  'Run GRANT REPLICATION CLIENT ON *.* for this login, which MariaDB also calls BINLOG MONITOR.';

/** The server reads the second list only if the first one is empty. */
function leftOut(only: string, ignored: string): ServerProblem[] {
  const names = (list: string) => list.split(',').filter((name) => name !== '');
  if (names(only).length > 0)
    return names(only).includes('mailroom')
      ? []
      : [{ subject: 'binlog_do_db', text: `binlog_do_db does not name mailroom: ${NO_ROWS} Add it.` }];
  return names(ignored).includes('mailroom')
    ? [{ subject: 'binlog_ignore_db', text: `binlog_ignore_db names mailroom: ${NO_ROWS} Remove it.` }]
    : [];
}

const NO_ROWS = 'the binlog has none of its rows, and its events are never published.';

/** Connectors, with the time since their last heartbeat, and the binlog's retention. */
const CONNECTORS = `SELECT connector, ${numberText(`TIMESTAMPDIFF(MICROSECOND, beat_at, ${NOW}) DIV 1000`)} AS silent FROM mailroom.capture`;

const OLDEST = 'SELECT event_id FROM mailroom.captured ORDER BY event_id LIMIT 1';

const BINLOG = "SHOW GLOBAL VARIABLES LIKE 'binlog_expire_logs_seconds'";

/**
 * Reads whether events of `relay: 'cdc'` are captured: the settings and the filters of the binlog, and the heartbeats of connectors.
 *
 * @param now - epoch milliseconds @default the machine's time
 * @returns the problems, each with its remedy
 */
export async function captureProblems(sql: Sql, now = Date.now()): Promise<CaptureProblem[]> {
  const [oldest] = await readRows(sql, OLDEST, [], { event_id: 'text' });
  const connectors = await readRows(sql, CONNECTORS, [], { connector: 'text', silent: 'number' });
  if (oldest === undefined && connectors.length === 0) return [];
  const problems = await binlogProblems(sql);
  if (connectors.length === 0 && now - eventIdTime(oldest?.event_id ?? '') > SILENT_MS)
    problems.push({
      kind: 'connector',
      subject: 'mailroom.captured',
      text: 'Events are left to change data capture, but no connector has sent a heartbeat. Create the connector that `npx cdk-mailroom cdc config --database mysql` prints (for MariaDB, --database mariadb).',
    });
  const [binlog] = await readRows(sql, BINLOG, [], { Variable_name: 'text', Value: 'text' });
  const keptMs = Number(binlog?.Value ?? 0) * 1_000 || Number.POSITIVE_INFINITY;
  for (const { connector, silent } of connectors)
    if (Math.abs(silent) > SILENT_MS)
      problems.push({ kind: 'connector', subject: connector, text: silentText(connector, silent, keptMs) });
  return problems;
}

function silentText(connector: string, silentMs: number, keptMs: number): string {
  const lost =
    silentMs > keptMs
      ? ` The binlog is kept for a shorter time, so its position is lost: stop it, delete its offsets (DELETE /connectors/${connector}/offsets), and start it. It then takes a snapshot of the events that the table has.`
      : '';
  const minutes = `${Math.floor(Math.abs(silentMs) / MINUTE_MS)} minutes`;
  const silence =
    silentMs > 0
      ? `no heartbeat for ${minutes}`
      : `no heartbeat since the server's clock was set back: the last one is ${minutes} ahead of it`;
  return (
    `The connector ${connector} has sent ${silence}.${lost} Read its state (GET /connectors/${connector}/status), and start it. ` +
    `If you removed it permanently, run DELETE FROM mailroom.capture WHERE connector = '${connector}': until then, no captured event is deleted.`
  );
}
