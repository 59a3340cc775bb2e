import type { Claim, InboxRefusal, InboxRules } from '../../inbox/inbox.ts';
import { refusalBy } from '../../inbox/inbox-admission.ts';
import { ours } from '../../inbox/inbox-conditions.ts';
import { hasHappened, type RowsBefore, type RowTransition } from '../../inbox/row-transition.ts';
import type { InboxRow } from '../inbox-row.ts';
import { type LastRaise, Overtaken } from '../last-sequence.ts';
import {
  epochMs,
  inMs,
  isLocked,
  onceMore,
  type PostgresInboxContext,
  readRow,
  run,
  runAlone,
} from './inbox-row.ts';
import { raiseLast } from './last-sequence.ts';
import type { Sql } from './sql.ts';

/** A time of the rules' clock, as one of the database's clock. */
const FROM_NOW = inMs('?::float8');

type Attribute = keyof RowTransition['set'] | 'rejectedAs' | 'keepDays';

/** The column of each attribute, its new value from the parameter `?`, and its value once it is cleared. @default NULL */
const COLUMNS: Readonly<Record<Attribute, readonly [column: string, value: string, cleared?: string]>> = {
  status: ['status', '?::text'],
  type: ['type', '?::text'],
  fence: ['fence', '?::text'],
  attempts: ['attempts', '?::int'],
  unfinished: ['unfinished', '?::int', '0'],
  outOfTime: ['out_of_time', '?::boolean', 'false'],
  claimedAt: ['claimed_at', 'clock_timestamp()'],
  leaseUntil: ['lease_until', FROM_NOW],
  endsBy: ['ends_by', FROM_NOW],
  retryAt: ['retry_at', FROM_NOW],
  processedAt: ['processed_at', 'clock_timestamp()'],
  keepDays: ['expires_at', "clock_timestamp() + ?::float8 * interval '1 day'"],
  rejectedAt: ['rejected_at', 'clock_timestamp()'],
  rejectedAs: ['rejected_ids', '?::text'],
  reason: ['reason', '?::text'],
  lastError: ['last_error', '?::text'],
  fingerprint: ['fingerprint', '?::text'],
  pastAttempts: ['past_attempts', '?::text'],
  result: ['result', '?::text'],
  order: ['place', '?::text'],
  supersededBy: ['superseded_by', '?::bigint'],
  commitId: ['commit_id', '?::text'],
  runAnyway: ['run_anyway', '?::boolean', 'false'],
  allowedAt: ['allowed_at', 'clock_timestamp()'],
  allowedBy: ['allowed_by', '?::text'],
  allowedReason: ['allowed_reason', '?::text'],
  resolvedBy: ['resolved_by', '?::text'],
  resolvedReason: ['resolved_reason', '?::text'],
  discardedAt: ['discarded_at', 'clock_timestamp()'],
  discardedBy: ['discarded_by', '?::text'],
  discardedReason: ['discarded_reason', '?::text'],
  replacedBy: ['replaced_by', '?::text'],
};

/** The number of attempts of a row that exists. A new row has 1, or none. */
const COUNTED = { next: 'i.attempts + 1', 'taken-back': 'i.attempts - 1' };

/**
 * The statement that makes a transition, and its parameters: an update, or an insert-or-update where there may be no row.
 *
 * @param returned - of the row that it wrote
 */
export function transitionOf(
  { consumer, clock }: Pick<InboxRules, 'consumer' | 'clock'>,
  eventId: string,
  from: RowsBefore,
  { set, clear, count, ...more }: RowTransition,
  returned: string,
): [text: string, values: unknown[]] {
  const values: unknown[] = [consumer, eventId];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const written = Object.entries({ ...set, ...more }).flatMap(([name, value]) => {
    const column = COLUMNS[name as Attribute];
    if (value === undefined) return [];
    const inFuture = column[1] === FROM_NOW ? Number(value) - clock.now() : value;
    const stored = typeof inFuture === 'object' ? JSON.stringify(inFuture) : inFuture;
    return [[column[0], column[1].replace('?', () => parameter(stored))] as const];
  });
  const changes = [
    ...written.map(([name, value]) => `${name} = ${name === 'rejected_ids' ? added(value) : value}`),
    ...clear.map((name) => `${COLUMNS[name][0]} = ${COLUMNS[name][2] ?? 'NULL'}`),
    ...(count === undefined || count === 'kept' ? [] : [`attempts = ${COUNTED[count]}`]),
    'changed_at = clock_timestamp()',
  ];
  const rows = rowsBefore(from, parameter);
  const update = `SET ${changes.join(', ')} WHERE ${rows}`;
  if (!from.absent)
    return [
      `UPDATE mailroom.inbox AS i ${update} AND i.consumer = $1::text AND i.event_id = $2::text RETURNING ${returned}`,
      values,
    ];
  const inserted = written.map(
    ([name, value]) => [name, name === 'rejected_ids' ? `ARRAY[${value}]` : value] as const,
  );
  if (count === 'next') inserted.push(['attempts', '1']);
  // Another insert of the same row waits until this transaction ends.
  const text = `INSERT INTO mailroom.inbox AS i (consumer, event_id, ${inserted.map(([name]) => name).join(', ')})
    VALUES ($1::text, $2::text, ${inserted.map(([, value]) => value).join(', ')})
    ON CONFLICT (consumer, event_id) DO ${rows === '' ? 'NOTHING' : `UPDATE ${update}`} RETURNING ${returned}`;
  return [text, values];
}

/** The ids under which a row was rejected, with one more. */
function added(id: string): string {
  const ids = 'i.rejected_ids';
  return `CASE WHEN ${id} = ANY (${ids}) THEN ${ids} ELSE pg_catalog.array_append(${ids}, ${id}) END`;
}

/**
 * The attributes that may have to be as they were read, as their columns, and what was read in the same form. Effects are other rows,
 * which the statement does not lock: a transition that needs the effects as read locks the message's row before, so that none starts.
 */
const AS_READ: Readonly<
  Record<keyof NonNullable<RowsBefore['asRead']>, readonly [stored: string, read: (value: never) => unknown]>
> = {
  fence: ['i.fence = ?::text', (fence: string) => fence],
  reason: ['i.reason = ?::text', (reason: string) => reason],
  leaseUntil: [`${epochMs('i.lease_until')} = ?::float8`, (until: number) => until],
  effects: [
    `coalesce((SELECT pg_catalog.jsonb_object_agg(e.name, pg_catalog.jsonb_build_array(e.status, e.fence, e.run)) FROM mailroom.effect e
      WHERE e.consumer = i.consumer AND e.event_id = i.event_id), '{}'::jsonb) = ?::text::jsonb`,
    (effects: NonNullable<InboxRow['effects']>) =>
      JSON.stringify(
        Object.fromEntries(
          Object.entries(effects).map(([name, { status, fence, run }]) => [name, [status, fence, run]]),
        ),
      ),
  ],
};

/** The column of an attribute that was missing when it was read. A row has a map of effects from its first claim on. */
const MISSING = { fence: 'i.fence', reason: 'i.reason', leaseUntil: 'i.lease_until' };

/** The condition for the rows that a transition may change; empty if they have none. */
function rowsBefore(
  {
    status = [],
    notStatus = [],
    leasePassed,
    unfinishedBelow,
    fence,
    asRead = {},
    notRejectedAs,
  }: RowsBefore,
  parameter: (value: unknown) => string,
): string {
  const inStatus = status.map((one) => {
    const is = `i.status = '${one}'`;
    if (one === 'PROCESSING' && leasePassed)
      return `(${is} AND NOT coalesce(i.lease_until >= clock_timestamp(), false))`;
    if (one === 'FAILED' && unfinishedBelow !== undefined)
      return `(${is} AND i.unfinished < ${unfinishedBelow})`;
    return is;
  });
  const unchanged = Object.entries(asRead).map(([name, value]) => {
    const attribute = name as keyof typeof AS_READ;
    if (value === undefined && attribute !== 'effects') return `${MISSING[attribute]} IS NULL`;
    const [stored, read] = AS_READ[attribute];
    return stored.replace('?', () => parameter(read((value ?? {}) as never)));
  });
  return [
    ...(inStatus.length === 0 ? [] : [`(${inStatus.join(' OR ')})`]),
    ...notStatus.map((one) => `i.status <> '${one}'`),
    ...(fence === undefined ? [] : [`i.fence = ${parameter(fence)}::text`]),
    ...unchanged,
    ...(notRejectedAs === undefined
      ? []
      : [`NOT (${parameter(notRejectedAs)}::text = ANY (i.rejected_ids))`]),
  ].join(' AND ');
}

/**
 * Makes one transition. Returns true if it changed or created the row.
 *
 * @param raise - the change of the last applied sequence in the same transaction @default none
 * @throws {@link Overtaken} if that number has changed: nothing was written
 */
export async function writeTransition<Tx>(
  { rules, database }: PostgresInboxContext<Tx>,
  eventId: string,
  from: RowsBefore,
  transition: RowTransition,
  raise?: LastRaise,
): Promise<boolean> {
  const [text, values] = transitionOf(rules, eventId, from, transition, '1');
  if (raise === undefined) return (await runAlone(database, text, values, {})).length > 0;
  return onceMore(() =>
    database.transaction(async (tx) => {
      const sql = database.in(tx);
      const done = await run(sql, text, values, {});
      if (done.length > 0) await raiseOrOvertaken(sql, rules, raise);
      return done.length > 0;
    }),
  );
}

/** Raises the last applied sequence in a transaction. @throws {@link Overtaken} if it has changed, or another transaction is about to change it */
export async function raiseOrOvertaken(
  sql: Sql,
  { clock }: Pick<InboxRules, 'clock'>,
  raise: LastRaise,
): Promise<void> {
  const isRaised = await raiseLast(sql, raise).catch((error: unknown) => {
    if (isLocked(error)) return false;
    throw error;
  });
  if (!isRaised) throw new Overtaken(clock.now());
}

/** Makes one transition under a claim's fence. As `writeUnderFence` of the inbox in DynamoDB. @throws {@link Overtaken} */
export async function underFence<Tx>(
  ctx: PostgresInboxContext<Tx>,
  claim: Claim,
  transition: RowTransition,
  raise?: LastRaise,
): Promise<InboxRefusal | undefined> {
  const { rules, database } = ctx;
  const { message } = claim;
  if (await writeTransition(ctx, message.eventId, ours(claim), transition, raise)) return undefined;
  const row = await readRow(ctx, database, message.eventId);
  return hasHappened(row, claim, transition) ? undefined : refusalBy(rules, message, row);
}
