import type { Inbox } from '../../consume/inbox-port.ts';
import type { Claim, InboxSettings } from '../../inbox/inbox.ts';
import { fenceLost, refusalBy } from '../../inbox/inbox-admission.ts';
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
import { claim, reject, rejectUnclaimed } from './inbox-claim.ts';
import { commit, commitUnclaimed } from './inbox-commit.ts';
import { finishEffect, startEffect } from './inbox-effect.ts';
import {
  inMs,
  isConflict,
  isUnreachable,
  onceMore,
  type PostgresInboxContext,
  readRow,
  runAlone,
} from './inbox-row.ts';
import { underFence } from './inbox-writes.ts';
import { readLastSequence } from './last-sequence.ts';

/** The lock is not waited for: a transaction of this worker may hold the row, and ends by itself. */
const RENEW = `UPDATE mailroom.inbox SET lease_until = least(${inMs('$4::float8')}, ends_by)
  WHERE (consumer, event_id) IN (SELECT consumer, event_id FROM mailroom.inbox WHERE consumer = $1::text AND event_id = $2::text
    AND status = 'PROCESSING' AND fence = $3::text FOR NO KEY UPDATE SKIP LOCKED)
  RETURNING 1`;

/** The inbox of a consumer in PostgreSQL: the rules of the inbox in DynamoDB, by the database's clock. */
export function postgresInbox<Tx>({
  settings,
  ...storage
}: Omit<PostgresInboxContext<Tx>, 'rules'> & { readonly settings: InboxSettings }): Inbox {
  const rules = { ...settings, memory: {} };
  const ctx: PostgresInboxContext<Tx> = { ...storage, rules };
  return {
    rules,
    open: () => open(ctx),
    read: (eventId) => readRow(ctx, ctx.database, eventId),
    lastSequence: (key) => onceMore(() => readLastSequence(ctx.database, key)),
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

/** Extends the lease, never past `endsBy`. @throws `FENCE_LOST` if this worker has lost the message */
async function renew<Tx>(ctx: PostgresInboxContext<Tx>, held: Claim): Promise<void> {
  const { rules, database } = ctx;
  const { message, fence } = held;
  const renewed = await runAlone(
    database,
    RENEW,
    [rules.consumer, message.eventId, fence, rules.leaseMs],
    {},
  );
  if (renewed.length > 0) return;
  const row = await readRow(ctx, database, message.eventId);
  if (row?.status !== 'PROCESSING' || row.fence !== fence)
    throw fenceLost(held, refusalBy(rules, message, row));
}

const SETTLED_UNREAD = `SELECT event_id AS id FROM mailroom.inbox
  WHERE consumer = $1::text AND event_id LIKE 'unreadable-%'::text AND status IN ('PROCESSED'::text, 'DISCARDED'::text)`;

/**
 * Reads the retention history, and records this function's retention in it before any row is written under it. An adapter that renames
 * columns or parses JSON fails here, before it has claimed a message.
 */
function open<Tx>({ rules, database }: PostgresInboxContext<Tx>): Promise<void> {
  const { memory, consumer, inboxRetentionDays } = rules;
  const read = async () => {
    const rows = await runAlone(
      database,
      `WITH last AS (SELECT days FROM mailroom.inbox_retention WHERE consumer = $1::text ORDER BY since DESC LIMIT 1),
        added AS (INSERT INTO mailroom.inbox_retention (consumer, days)
          SELECT $1::text, $2::int WHERE NOT EXISTS (SELECT 1 FROM last WHERE days = $2::int) RETURNING days, since)
        SELECT pg_catalog.json_build_object('days', days, 'since', round(extract(epoch FROM since)::float8 * 1000::float8))::text AS as_json FROM (
          SELECT days, since FROM mailroom.inbox_retention WHERE consumer = $1::text UNION ALL SELECT days, since FROM added
        ) AS every ORDER BY every.since`,
      [consumer, inboxRetentionDays],
      { as_json: 'text' },
    );
    // Their rows are the marks: what an operator has settled before this read is looked up by its body.
    const settled = await runAlone(database, SETTLED_UNREAD, [consumer], { id: 'text' });
    const unreadableSettled = new Set(settled.map(({ id }) => unreadableMark(id)));
    memory.history = { retentions: rows.map(({ as_json }) => JSON.parse(as_json)), unreadableSettled };
  };
  return openedNow(rules, read);
}
