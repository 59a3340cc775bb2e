import { MailroomError } from '../../base/errors.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { eventIdTime } from '../event-id.ts';
import type { Sql } from '../sql/database.ts';
import { readRows } from '../sql/sql-rows.ts';
import { NOW, numberText } from './expressions.ts';
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

/** @throws `BAD_DATABASE` with every setting of this session without which its events would not be captured */
export async function refuseUncapturable(sql: Sql): Promise<void> {
  const problems = await settingProblems(sql, RULES);
  if (problems.length === 0) return;
  const text = problems.map((problem) => problem.text).join(' ');
  throw new MailroomError('BAD_DATABASE', `relay: 'cdc' cannot be used: ${text}`);
}

/** Connectors, with the time since their last heartbeat, and the binlog's retention. */
const CONNECTORS = `SELECT connector, ${numberText(`TIMESTAMPDIFF(MICROSECOND, beat_at, ${NOW}) DIV 1000`)} AS silent FROM mailroom.capture`;

const OLDEST = 'SELECT event_id FROM mailroom.captured ORDER BY event_id LIMIT 1';

const BINLOG = "SHOW GLOBAL VARIABLES LIKE 'binlog_expire_logs_seconds'";

/**
 * Reads whether events of `relay: 'cdc'` are captured: the settings of the binlog, and the heartbeats of connectors.
 *
 * @param now - epoch milliseconds @default the machine's time
 * @returns the problems, each with its remedy
 */
export async function captureProblems(sql: Sql, now = Date.now()): Promise<ServerProblem[]> {
  const [oldest] = await readRows(sql, OLDEST, [], { event_id: 'text' });
  const connectors = await readRows(sql, CONNECTORS, [], { connector: 'text', silent: 'number' });
  if (oldest === undefined && connectors.length === 0) return [];
  const problems = await settingProblems(sql, RULES);
  if (connectors.length === 0 && now - eventIdTime(oldest?.event_id ?? '') > SILENT_MS)
    problems.push({
      subject: 'mailroom.captured',
      text: 'Events are left to change data capture, but no connector has sent a heartbeat. Create the connector that `npx cdk-mailroom cdc config` prints.',
    });
  const [binlog] = await readRows(sql, BINLOG, [], { Variable_name: 'text', Value: 'text' });
  const keptMs = Number(binlog?.Value ?? 0) * 1_000 || Number.POSITIVE_INFINITY;
  for (const { connector, silent } of connectors)
    if (Math.abs(silent) > SILENT_MS)
      problems.push({ subject: connector, text: silentText(connector, silent, keptMs) });
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
