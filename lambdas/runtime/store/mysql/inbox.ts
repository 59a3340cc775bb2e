import type { Inbox } from '../../consume/inbox-port.ts';
import type { Claim, InboxSettings } from '../../inbox/inbox.ts';
import { fenceLost, isOurs, refusalBy } from '../../inbox/inbox-admission.ts';
import { ours } from '../../inbox/inbox-conditions.ts';
import { openedNow } from '../../inbox/inbox-history.ts';
import {
  cutOff,
  discardedAsStale,
  failed,
  outOfTime,
  processed,
  released,
  resultJson,
} from '../../inbox/inbox-transitions.ts';
import { unreadableMark } from '../event-id.ts';
import { applied } from '../last-sequence.ts';
import { encoded, epochMs, FROM_NOW, KEY, NOW, numberText, textParameter } from './expressions.ts';
import { claim, reject, rejectUnclaimed } from './inbox-claim.ts';
import { commit, commitUnclaimed } from './inbox-commit.ts';
import { finishEffect, startEffect } from './inbox-effect.ts';
import {
  isConflict,
  isUnreachable,
  keyOf,
  type MysqlInboxContext,
  readRow,
  repeated,
  run,
} from './inbox-row.ts';
import { lockOf, underFence } from './inbox-writes.ts';
import { readLastSequence } from './last-sequence.ts';
import { joined, part } from './statement.ts';

/** The inbox of a consumer in MySQL or MariaDB: the rules of the inbox in DynamoDB, by the database's clock. */
export function mysqlInbox<Tx>({
  settings,
  ...storage
}: Omit<MysqlInboxContext<Tx>, 'rules'> & { readonly settings: InboxSettings }): Inbox {
  const rules = { ...settings, memory: {} };
  const ctx: MysqlInboxContext<Tx> = { ...storage, rules };
  return {
    rules,
    open: () => open(ctx),
    read: (eventId) => readRow(ctx, ctx.database, eventId),
    lastSequence: (key) => readLastSequence(ctx.database, key),
    supersede: (held, supersededBy) => underFence(ctx, held, processed(rules, { supersededBy })),
    discardStale: (held) => underFence(ctx, held, discardedAsStale(rules)),
    claim: (message, options) => claim(ctx, message, options),
    renew: (held) => renew(ctx, held),
    complete: (held, result) =>
      underFence(ctx, held, processed(rules, { result: resultJson(result) }), applied(held.message)),
    fail: (held, ...end) => underFence(ctx, held, failed(rules, held, ...end)),
    release: (held, ...end) => underFence(ctx, held, released(rules, held, ...end)),
    cutOff: (held, ...end) => underFence(ctx, held, cutOff(rules, held, ...end)),
    markOutOfTime: (held, ...end) => underFence(ctx, held, outOfTime(rules, ...end)),
    reject: (held, error, effects) => reject(ctx, held, error, effects),
    rejectUnclaimed: (message, error) => rejectUnclaimed(ctx, message, error),
    startEffect: (call) => startEffect(ctx, call),
    finishEffect: (call, end) => finishEffect(ctx, call, end),
    commit: (held, ...wanted) => commit(ctx, held, ...wanted),
    // The transaction as a whole is left running when the time is up: its connection may not be used by anyone else.
    commitUnclaimed: (message, attempt, work, event, inTime) =>
      inTime(commitUnclaimed(ctx, message, attempt, work, event)).catch((error: unknown) => ({
        status: 'failed',
        error,
        wroteNothing: false,
        isOutage: false,
      })),
    putHint: async () => {}, // an index lists what failed
    removeHint: async () => {},
    isOutage: isUnreachable,
    isConflict,
  };
}

/**
 * Extends the lease, never past `endsBy`. The lock is not waited for: a transaction of this worker may hold the row, and ends by itself.
 *
 * @throws `FENCE_LOST` if this worker has lost the message
 */
async function renew<Tx>(ctx: MysqlInboxContext<Tx>, held: Claim): Promise<void> {
  const { rules, database } = ctx;
  const { message } = held;
  const { eventId } = message;
  const lock = joined([lockOf(rules, eventId, ours(held)), ' SKIP LOCKED']);
  const lease = part(
    `UPDATE mailroom.inbox i SET lease_until = LEAST(${FROM_NOW}, ends_by) WHERE `,
    rules.leaseMs,
  );
  const renewed = await repeated(() =>
    database.transaction(async (tx) => {
      const sql = database.in(tx);
      if ((await run(sql, lock, {})).length === 0) return false;
      await run(sql, joined([lease, keyOf(rules, eventId)]), {});
      return true;
    }),
  );
  if (renewed) return;
  const row = await readRow(ctx, database, eventId);
  if (!isOurs(row, held.fence)) throw fenceLost(held, refusalBy(rules, message, row));
}

const RETENTIONS = `SELECT ${numberText('days')} AS days, ${epochMs('since')} AS since FROM mailroom.inbox_retention
  WHERE consumer = ${KEY} ORDER BY inbox_retention.since`;

/** Two processes that start in the same microsecond record it once. */
const RECORD = `INSERT INTO mailroom.inbox_retention (consumer, since, days) VALUES (${KEY}, ${NOW}, ?) ON DUPLICATE KEY UPDATE days = LEAST(days, ?)`;

const SETTLED_UNREAD = `SELECT ${encoded('event_id')} AS id FROM mailroom.inbox
  WHERE consumer = ${KEY} AND event_id LIKE 'unreadable-%' AND status IN ('PROCESSED', 'DISCARDED')`;

/**
 * Reads the retention history, and records this function's retention in it before any row is written under it. An adapter that renames
 * columns or changes values fails here, before it has claimed a message.
 */
function open<Tx>({ rules, database }: MysqlInboxContext<Tx>): Promise<void> {
  const { memory, inboxRetentionDays } = rules;
  const consumer = textParameter(rules.consumer);
  const retentions = () => run(database, part(RETENTIONS, consumer), { days: 'number', since: 'number' });
  const read = async () => {
    let recorded = await retentions();
    if (recorded.at(-1)?.days !== inboxRetentionDays) {
      await repeated(() => run(database, part(RECORD, consumer, inboxRetentionDays, inboxRetentionDays), {}));
      recorded = await retentions();
    }
    // Their rows are the marks: what an operator has settled before this read is looked up by its body.
    const settled = await run(database, part(SETTLED_UNREAD, consumer), { id: 'base64' });
    memory.history = {
      retentions: recorded.map(({ days, since }) => ({ days, since: Math.round(since) })),
      unreadableSettled: new Set(settled.map(({ id }) => unreadableMark(id))),
    };
  };
  return openedNow(rules, read);
}
