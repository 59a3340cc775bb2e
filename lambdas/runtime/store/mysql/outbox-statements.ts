import type { MintedEvent } from '../../outbox/outbox-entry.ts';
import type { Sql } from '../sql/database.ts';
import type { OutboxStatements } from '../sql/database-outbox.ts';
import { readOneRow, readRows } from '../sql/sql-rows.ts';
import { aggregateKey } from './aggregate-order.ts';
import { refuseUncapturable } from './capture-check.ts';
import { type CommitProof, wasCommitted } from './commit-outcome.ts';
import { ID, idParameter, KEY, NOW, numberText, TEXT, TIME, textParameter } from './expressions.ts';
import { isRepeatable } from './mysql-error.ts';
import { makeTransition } from './outbox-transition.ts';
import { inOneTransaction, requireTransaction } from './whole-transaction.ts';

/** A statement has at most this many characters of envelopes, and one envelope more: `max_allowed_packet` may be as small as 2 MB. */
const STATEMENT_CHARS_MAX = 500_000;

const COLUMNS = 'event_id, source, type, trace_id, aggregate_type, aggregate_id, envelope';

const EVENT_ROW = `(${ID}, ${TEXT}, ${TEXT}, ${TEXT}, ${TEXT}, ${TEXT}, ${TEXT})`;

const CAPTURED_ROW = `(${TEXT}, ${TEXT}, ${TEXT}, ${TEXT}, ${TEXT}, ${TEXT}, ${TEXT})`;

const QUEUE_ROW = `(${ID}, COALESCE(${TIME}, ${NOW}), ${ID})`;

/** The event was cancelled before. A locking read: a snapshot may be older than another cancellation. */
const CANCELLED = `SELECT 1 AS one FROM mailroom.cancelled c JOIN mailroom.event e USING (event_id)
WHERE c.event_id = ${ID} AND CAST(e.source AS BINARY) = ${KEY} LOCK IN SHARE MODE`;

/**
 * The statements of the outbox.
 *
 * *Invariant: an event and its place in the queue are written together, or neither is.* When a statement fails, MySQL undoes only that statement, and
 * the caller may still commit the rest. Outside a transaction, it commits each statement. So both rows are inserted behind a savepoint, and only in a
 * transaction.
 */
export const mysqlOutboxStatements: OutboxStatements<CommitProof> = {
  factory: 'createMysqlOutbox',
  requireTransaction,
  betweenOthers: keepingLastInsertId,
  inOneTransaction: (sql, run) => inOneTransaction(sql, 'mailroom_outbox', run),
  insert: async (sql, minted) => {
    await insertAll(sql, minted, insertPart);
    return { table: 'event', id: minted[0].eventId };
  },
  mark: async (sql, id) => {
    await sql.query(`INSERT INTO mailroom.commit (commit_id) VALUES (${ID})`, [idParameter(id)]);
    return { table: 'commit', id };
  },
  wasCommitted,
  isRepeatable,
  cancel: async (sql, { eventId, dueAt, now }, cancellation) => {
    const source = textParameter(cancellation.source);
    // Until the commit, claims skip the locked row; then it is gone.
    if (await makeTransition(sql, now, [eventId, dueAt, source], cancellation)) return true;
    return (await readRows(sql, CANCELLED, [idParameter(eventId), source], {})).length > 0;
  },
};

/**
 * The statements of an outbox with `relay: 'cdc'`: its events have no place in the queue. Before the first one it reads the settings of the server, without which
 * the binlog would not have them.
 */
export function capturedStatements(): OutboxStatements<CommitProof> {
  let isChecked = false;
  return {
    ...mysqlOutboxStatements,
    betweenOthers: undefined,
    insert: async (sql, minted) => {
      if (!isChecked) await refuseUncapturable(sql);
      isChecked = true;
      await insertAll(sql, minted, insertCaptured);
      return { table: 'captured', id: minted[0].eventId };
    },
  };
}

/** Each row of the queue gets a number. LAST_INSERT_ID() would return it to the caller, in place of that of a row of theirs. */
async function keepingLastInsertId(sql: Sql, write: () => Promise<unknown>): Promise<void> {
  const last = `SELECT ${numberText('LAST_INSERT_ID()')} AS id`;
  const { id } = await readOneRow(sql, last, [], { id: 'text' });
  await write();
  await sql.query('DO LAST_INSERT_ID(CAST(? AS UNSIGNED))', [id]);
}

/** Inserts all rows of these events, or none. */
async function insertAll(
  sql: Sql,
  minted: readonly MintedEvent[],
  insert: (sql: Sql, part: readonly MintedEvent[]) => Promise<void>,
): Promise<void> {
  await sql.query('SAVEPOINT mailroom');
  try {
    for (const part of partsOf(minted)) await insert(sql, part);
  } catch (error) {
    // After a deadlock, the server has already undone the whole transaction, and this fails.
    await sql.query('ROLLBACK TO SAVEPOINT mailroom').catch(() => {});
    throw error;
  }
}

async function insertPart(sql: Sql, part: readonly MintedEvent[]): Promise<void> {
  await sql.query(
    `INSERT INTO mailroom.event (${COLUMNS}) VALUES ${part.map(() => EVENT_ROW).join(', ')}`,
    part.flatMap((event) => [idParameter(event.eventId), ...textsOf(event)]),
  );
  await sql.query(
    `INSERT INTO mailroom.pending (event_id, due_at, aggregate_key) VALUES ${part.map(() => QUEUE_ROW).join(', ')}`,
    part.flatMap((event) => [idParameter(event.eventId), event.dueAt ?? null, keyOf(event)]),
  );
}

/** A scheduled event has no place in its aggregate: those that are written until it is due do not wait for it. */
function keyOf({ dueAt, entry, aggregate }: MintedEvent): string | null {
  return dueAt === undefined ? aggregateKey(entry.source, aggregate.type, aggregate.id) : null;
}

async function insertCaptured(sql: Sql, part: readonly MintedEvent[]): Promise<void> {
  await sql.query(
    `INSERT INTO mailroom.captured (${COLUMNS}) VALUES ${part.map(() => CAPTURED_ROW).join(', ')}`,
    part.flatMap((event) => [textParameter(event.eventId), ...textsOf(event)]),
  );
}

/** The values behind the id. */
function textsOf({ entry, aggregate }: MintedEvent): (string | null)[] {
  const texts = [
    entry.source,
    entry.detailType,
    entry.traceHeader,
    aggregate.type,
    aggregate.id,
    entry.detail,
  ];
  return texts.map(textParameter);
}

function partsOf(minted: readonly MintedEvent[]): MintedEvent[][] {
  const parts: MintedEvent[][] = [[]];
  let chars = 0;
  for (const event of minted) {
    if (chars > STATEMENT_CHARS_MAX) {
      parts.push([]);
      chars = 0;
    }
    parts.at(-1)?.push(event);
    chars += event.entry.detail.length;
  }
  return parts;
}
