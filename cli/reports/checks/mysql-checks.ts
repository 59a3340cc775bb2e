import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { captureProblems } from '../../../lambdas/runtime/store/mysql/capture-check.ts';
import { booleanText, epochMs, NOW, numberText } from '../../../lambdas/runtime/store/mysql/expressions.ts';
import { serverProblems } from '../../../lambdas/runtime/store/mysql/server-check.ts';
import { readOneRow } from '../../../lambdas/runtime/store/sql/sql-rows.ts';
import type { OpenMysql } from '../../deployment/mysql-database.ts';
import { clockError } from '../../terminal/aws-clock.ts';
import { duration } from '../../terminal/times.ts';
import { type CommandWords, check, type PartCheck, type RemediedProblems } from './check.ts';

/** The words that run a statement as an administrator of the server. */
function mysql(statement: string): CommandWords {
  return ['mysql', '-e', statement];
}

/** The age of the event that has been due the longest, and whether a relay has just published one. */
const QUEUE = `SELECT (SELECT ${numberText(`TIMESTAMPDIFF(MICROSECOND, MIN(due_at), ${NOW}) / 1000`)} FROM mailroom.pending WHERE due_at <= ${NOW}) AS age,
  ${booleanText(`EXISTS (SELECT 1 FROM mailroom.published WHERE published_at > ${NOW} - INTERVAL 1 MINUTE)`)} AS works`;

/** The kinds of problems of change data capture, with what shows each connector's last heartbeat, or the settings. */
const CAPTURE = {
  connector: { problem: 'capture-behind', fix: mysql('SELECT * FROM mailroom.capture') },
  setting: { problem: 'capture-setting', fix: mysql("SHOW VARIABLES LIKE '%bin%log%'; SHOW MASTER STATUS") },
} as const;

/** Makes the tables that are missing, and refuses what is still wrong. */
const CHECK_AGAIN: CommandWords = ['npx', 'cdk-mailroom', 'mysql', 'migrate'];

/** Lists the functions that relay a database, as their constructs describe them. */
const RELAY_FUNCTIONS: CommandWords = [
  'aws',
  ...['lambda', 'list-functions', '--output', 'text', '--query'],
  "Functions[?Description=='Mailroom relay of a MySQL database'].FunctionName",
];

/** Checks of the MySQL database that has the rows. @param now - AWS's time */
export function mysqlChecks({ database }: OpenMysql, now: () => number): PartCheck[] {
  // A relay of an older server claims with tokens: its own start refuses a wrong choice.
  async function* settings(): RemediedProblems {
    for (const { text } of await serverProblems(database, 'token'))
      yield { problem: 'database-setting', text: text.replace(/\.$/, ''), fix: CHECK_AGAIN };
  }

  async function* stuck(): RemediedProblems {
    const { age = 0, works } = await readOneRow(database, QUEUE, [], { age: 'number?', works: 'boolean' });
    if (age <= STUCK_MS) return;
    const due = `an event has been due for ${duration(age)}`;
    const why = works
      ? 'a relay publishes others. It does not declare the source, the bus refuses the event, or a transaction has locked its row, and relays skip it: the log of the relay shows which'
      : 'no relay has published an event for a minute: start one, or enable the rule that runs its function. The command names it';
    yield { problem: 'pending-stuck', text: `${due}: ${why}`, fix: RELAY_FUNCTIONS };
  }

  async function* uncaptured(): RemediedProblems {
    for (const { kind, text } of await captureProblems(database, now()))
      yield { ...CAPTURE[kind], text: text.replace(/\.$/, '') };
  }

  async function* clock(): RemediedProblems {
    const { at } = await readOneRow(database, `SELECT ${epochMs(NOW)} AS at`, [], { at: 'number' });
    const wrong = clockError(at - now());
    if (wrong === undefined) return;
    const text = `the database's clock is ${wrong}: leases end at another time than workers expect`;
    yield { problem: 'clock', text, fix: mysql('SELECT UTC_TIMESTAMP(6)') };
  }

  return [
    check('database', 'flow', settings),
    check('database', 'flow', stuck),
    check('database', 'flow', uncaptured),
    check('database', 'surroundings', clock),
  ];
}
