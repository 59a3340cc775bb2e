import type { Claim, InboxRefusal, InboxRules } from '../../inbox/inbox.ts';
import { refusalBy } from '../../inbox/inbox-admission.ts';
import { ours } from '../../inbox/inbox-conditions.ts';
import { hasHappened, type RowsBefore, type RowTransition } from '../../inbox/row-transition.ts';
import type { InboxRow } from '../inbox-row.ts';
import { type LastRaise, Overtaken } from '../last-sequence.ts';
import type { Sql } from '../sql/database.ts';
import { FROM_NOW, KEY, NOW, TEXT, textParameter } from './expressions.ts';
import { idEntry, isLocked, keyOf, type MysqlInboxContext, readRow, repeated, run } from './inbox-row.ts';
import { holdLast, writeLast } from './last-sequence.ts';
import { joined, part, type StatementPart } from './statement.ts';

type MysqlAttribute = keyof RowTransition['set'] | 'rejectedAs' | 'keepDays';

/** The form in which a value is written. @param now - of the rules' clock */
const FORMS = {
  text: (value: unknown) => part(TEXT, textParameter(String(value))),
  /** At most 128 characters of it: a message that no handler awaits may have any type. */
  name: (value: unknown) => part(`LEFT(${TEXT}, 128)`, textParameter(String(value))),
  json: (value: unknown) => part(TEXT, textParameter(JSON.stringify(value))),
  /** Bytes. */
  key: (value: unknown) => part(KEY, textParameter(String(value))),
  id: (value: unknown) => part(TEXT, textParameter(idEntry(String(value)))),
  number: (value: unknown) => part('?', Number(value)),
  boolean: (value: unknown) => part('?', Number(value)),
  now: () => part(NOW),
  /** A time of the rules' clock, as one of the database's clock. */
  time: (value: unknown, now: number) => part(FROM_NOW, Number(value) - now),
  days: (value: unknown) => part(`${NOW} + INTERVAL ROUND(? * 86400) SECOND`, Number(value)),
} satisfies Record<string, (value: unknown, now: number) => StatementPart>;

/** The column of each attribute, its form, and its value once it is cleared. @default NULL */
const COLUMNS: Readonly<
  Record<MysqlAttribute, readonly [column: string, form: keyof typeof FORMS, cleared?: string]>
> = {
  status: ['status', 'text'],
  type: ['type', 'name'],
  fence: ['fence', 'key'],
  attempts: ['attempts', 'number'],
  unfinished: ['unfinished', 'number', '0'],
  outOfTime: ['out_of_time', 'boolean', 'FALSE'],
  claimedAt: ['claimed_at', 'now'],
  leaseUntil: ['lease_until', 'time'],
  endsBy: ['ends_by', 'time'],
  retryAt: ['retry_at', 'time'],
  processedAt: ['processed_at', 'now'],
  keepDays: ['expires_at', 'days'],
  rejectedAt: ['rejected_at', 'now'],
  rejectedAs: ['rejected_ids', 'id'],
  reason: ['reason', 'text'],
  lastError: ['last_error', 'text'],
  fingerprint: ['fingerprint', 'text'],
  pastAttempts: ['past_attempts', 'json'],
  result: ['result', 'text'],
  order: ['place', 'json'],
  supersededBy: ['superseded_by', 'number'],
  commitId: ['commit_id', 'key'],
  runAnyway: ['run_anyway', 'boolean', 'FALSE'],
  allowedAt: ['allowed_at', 'now'],
  allowedBy: ['allowed_by', 'text'],
  allowedReason: ['allowed_reason', 'text'],
  resolvedBy: ['resolved_by', 'text'],
  resolvedReason: ['resolved_reason', 'text'],
  discardedAt: ['discarded_at', 'now'],
  discardedBy: ['discarded_by', 'text'],
  discardedReason: ['discarded_reason', 'text'],
  replacedBy: ['replaced_by', 'key'],
};

/** The number of attempts of a row that exists. A new row has 1, or none. */
const COUNTED = { next: 'i.attempts + 1', 'taken-back': 'i.attempts - 1' };

type InboxOwner = Pick<InboxRules, 'consumer' | 'clock'>;

/** The columns that a transition sets, with their new values. */
function written({ clock }: InboxOwner, { set, clear: _clear, count: _count, ...more }: RowTransition) {
  const now = clock.now();
  return Object.entries({ ...set, ...more }).flatMap(([name, value]) => {
    const column = COLUMNS[name as MysqlAttribute];
    if (value === undefined) return [];
    return [[column[0], FORMS[column[1]](value, now)] as const];
  });
}

/**
 * The statement that creates the row of a message by a transition, and leaves one that exists as it is. Another insert of the same row waits
 * until this transaction ends. It is not INSERT IGNORE, which also hides that a key was cut: two messages would be one.
 */
export function insertOf(owner: InboxOwner, eventId: string, transition: RowTransition): StatementPart {
  const columns = written(owner, transition);
  if (transition.count === 'next') columns.push(['attempts', part('1')]);
  columns.push(['changed_at', part(NOW)]);
  const key = part(`${KEY}, ${KEY}`, textParameter(owner.consumer), textParameter(eventId));
  return joined([
    `INSERT INTO mailroom.inbox (consumer, event_id, ${columns.map(([name]) => name).join(', ')}) VALUES (`,
    joined([key, ...columns.map(([, value]) => value)], ', '),
    ') ON DUPLICATE KEY UPDATE fence = fence',
  ]);
}

/** The statement that makes a transition of a row that exists. */
export function updateOf(
  owner: InboxOwner,
  eventId: string,
  from: RowsBefore,
  transition: RowTransition,
): StatementPart {
  const { clear, count } = transition;
  const changes = [
    ...written(owner, transition).map(([name, value]) =>
      joined([`${name} = `, name === 'rejected_ids' ? added(value) : value]),
    ),
    ...clear.map((name) => `${COLUMNS[name][0]} = ${COLUMNS[name][2] ?? 'NULL'}`),
    ...(count === undefined || count === 'kept' ? [] : [`attempts = ${COUNTED[count]}`]),
    `changed_at = ${NOW}`,
  ];
  const where = joined([rowsBefore(from), keyOf(owner, eventId)], ' AND ');
  return joined(['UPDATE mailroom.inbox i SET ', joined(changes, ', '), ' WHERE ', where]);
}

/** The statement that locks a row which a transition may change, until the transaction ends. */
export function lockOf(owner: InboxOwner, eventId: string, from: RowsBefore): StatementPart {
  const where = joined([rowsBefore(from), keyOf(owner, eventId)], ' AND ');
  return joined(['SELECT 1 FROM mailroom.inbox i WHERE ', where, ' FOR UPDATE']);
}

const REJECTED_IDS = "COALESCE(i.rejected_ids, '')";

/** The ids under which a row was rejected, with one more. */
function added(id: StatementPart): StatementPart {
  return joined([
    `IF(INSTR(${REJECTED_IDS}, `,
    id,
    `) > 0, i.rejected_ids, CONCAT(${REJECTED_IDS}, `,
    id,
    '))',
  ]);
}

/** The conditions for attributes that have to be as they were read. Those that were missing are still missing. */
const AS_READ: Readonly<
  Record<keyof NonNullable<RowsBefore['asRead']>, (value: never, now: number) => StatementPart>
> = {
  fence: (fence?: string) => (fence === undefined ? part('i.fence IS NULL') : isFence(fence)),
  reason: (reason?: string) =>
    reason === undefined ? part('i.reason IS NULL') : joined(['i.reason = ', FORMS.text(reason)]),
  leaseUntil: (until?: number) =>
    until === undefined
      ? part('i.lease_until IS NULL')
      : part("ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', i.lease_until) / 1000) = ?", until),
  // Effects are other rows, which the statement does not lock: a transition that needs them as read locks the message's row before.
  effects: (effects?: InboxRow['effects']) => {
    const each = Object.entries(effects ?? {}).map(([name, { status, fence, run: call }]) =>
      joined([
        '(e.name = ',
        FORMS.key(name),
        ' AND e.status = ',
        FORMS.text(status),
        ' AND e.fence = ',
        FORMS.key(fence),
        part(' AND e.run = ?)', call),
      ]),
    );
    const stored =
      'SELECT COUNT(*) FROM mailroom.effect e WHERE e.consumer = i.consumer AND e.event_id = i.event_id';
    const all = part(`(${stored}) = ?`, each.length);
    if (each.length === 0) return all;
    return joined(
      [all, joined([`(${stored} AND (`, joined(each, ' OR '), part(')) = ?', each.length)])],
      ' AND ',
    );
  },
};

function isFence(fence: string): StatementPart {
  return joined(['i.fence = ', FORMS.key(fence)]);
}

/** The condition for the rows that a transition may change. */
function rowsBefore({
  status = [],
  notStatus = [],
  leasePassed,
  unfinishedBelow,
  fence,
  asRead = {},
  notRejectedAs,
}: RowsBefore): StatementPart {
  const inStatus = status.map((one) => {
    const is = `i.status = '${one}'`;
    if (one === 'PROCESSING' && leasePassed)
      return `(${is} AND NOT COALESCE(i.lease_until >= ${NOW}, FALSE))`;
    if (one === 'FAILED' && unfinishedBelow !== undefined)
      return `(${is} AND i.unfinished < ${unfinishedBelow})`;
    return is;
  });
  const unchanged = Object.entries(asRead).map(([name, value]) =>
    AS_READ[name as keyof typeof AS_READ](value as never, 0),
  );
  return joined(
    [
      ...(inStatus.length === 0 ? [] : [`(${inStatus.join(' OR ')})`]),
      ...notStatus.map((one) => `i.status <> '${one}'`),
      ...(fence === undefined ? [] : [isFence(fence)]),
      ...unchanged,
      ...(notRejectedAs === undefined
        ? []
        : [joined([`INSTR(${REJECTED_IDS}, `, FORMS.id(notRejectedAs), ') = 0'])]),
    ],
    ' AND ',
  );
}

/**
 * Makes one transition, and returns the row as it is then. No statement tells reliably what it changed, because drivers and connections count in
 * different ways: the caller looks for the fence of its transition.
 *
 * @param raise - the change of the last applied sequence in the same transaction @default none
 * @throws {@link Overtaken} if that number has changed: nothing was written
 */
export async function writeTransition<Tx>(
  { rules, database }: MysqlInboxContext<Tx>,
  eventId: string,
  from: RowsBefore,
  transition: RowTransition,
  raise?: LastRaise,
): Promise<InboxRow | undefined> {
  const read = () => readRow({ rules }, database, eventId);
  if (raise !== undefined) {
    await repeated(() =>
      database.transaction(async (tx) => {
        const sql = database.in(tx);
        if (!(await wrote(sql, rules, eventId, from, transition))) return;
        await holdOrOvertaken(sql, rules, raise);
        await writeLast(sql, raise);
      }),
    );
    return read();
  }
  if (from.absent) {
    await repeated(() => run(database, insertOf(rules, eventId, transition), {}));
    const row = await read();
    if (row?.fence === transition.set.fence) return row;
  }
  await repeated(() => run(database, updateOf(rules, eventId, from, transition), {}));
  return read();
}

/** Makes a transition in a transaction. @returns false if the row is in no state that it may change */
async function wrote(
  sql: Sql,
  rules: InboxRules,
  eventId: string,
  from: RowsBefore,
  transition: RowTransition,
): Promise<boolean> {
  if (from.absent) {
    await run(sql, insertOf(rules, eventId, transition), {});
    if ((await readRow({ rules }, sql, eventId))?.fence === transition.set.fence) return true;
  }
  if ((await run(sql, lockOf(rules, eventId, from), {})).length === 0) return false;
  await run(sql, updateOf(rules, eventId, from, transition), {});
  return true;
}

/** Holds the last applied sequence in a transaction. @throws {@link Overtaken} if it has changed, or another transaction holds it for too long */
export async function holdOrOvertaken(
  sql: Sql,
  { clock }: Pick<InboxRules, 'clock'>,
  raise: LastRaise,
): Promise<void> {
  const isHeld = await holdLast(sql, raise).catch((error: unknown) => {
    if (isLocked(error)) return false;
    throw error;
  });
  if (!isHeld) throw new Overtaken(clock.now());
}

/** Makes one transition under a claim's fence. As `writeUnderFence` of the inbox in DynamoDB. @throws {@link Overtaken} */
export async function underFence<Tx>(
  ctx: MysqlInboxContext<Tx>,
  claim: Claim,
  transition: RowTransition,
  raise?: LastRaise,
): Promise<InboxRefusal | undefined> {
  const { message } = claim;
  const row = await writeTransition(ctx, message.eventId, ours(claim), transition, raise);
  return hasHappened(row, claim, transition) ? undefined : refusalBy(ctx.rules, message, row);
}
