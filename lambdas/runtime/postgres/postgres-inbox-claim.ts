import { errorCode } from '../base/errors.ts';
import type { Claim, InboxRefusal, Message } from '../inbox/inbox.ts';
import { admissionOf, mustRunAlone, refusalBy } from '../inbox/inbox-admission.ts';
import {
  type ClaimOptions,
  type ClaimResult,
  granted,
  takenOver,
  type Wanted,
} from '../inbox/inbox-claim.ts';
import { ALONE_FROM, TOO_OLD } from '../inbox/inbox-conditions.ts';
import { mayHaveRunBecause } from '../inbox/inbox-history.ts';
import { rejectionCause } from '../inbox/inbox-writes.ts';
import { isUnreadableId, mintToken } from '../store/event-id.ts';
import { SPARE_DAYS } from '../store/row-expiry.ts';
import { inMs, isLocked, type PostgresInboxContext, readRow, run, runAlone } from './postgres-inbox-row.ts';

const KEY = 'i.consumer = $1::text AND i.event_id = $2::text';

/** The changes of every claim: $4 its fence, $5 its lease and $6 its function's time, milliseconds. */
const CLAIMED = `type = $3::text, status = 'PROCESSING', fence = $4::text, claimed_at = clock_timestamp(),
  lease_until = ${inMs('least($5::float8, $6::float8)')}, ends_by = ${inMs('$6::float8')},
  retry_at = NULL, out_of_time = false, changed_at = clock_timestamp()`;

/** It failed and need not run alone, and was not rejected under this message id. $8: the first receive, $9: it runs alone. */
const CLAIM = `${CLAIMED},
  attempts = CASE WHEN $8::boolean THEN 1 ELSE i.attempts + 1 END,
  unfinished = CASE WHEN $8::boolean THEN 0 ELSE i.unfinished END
  WHERE i.status = 'FAILED' AND ($8::boolean OR $9::boolean OR i.unfinished < ${ALONE_FROM}) AND NOT ($7::text = ANY (i.rejected_ids))`;

const INSERT_OR_CLAIM = `INSERT INTO mailroom.inbox AS i (consumer, event_id, type, status, fence, attempts, claimed_at, lease_until, ends_by)
  VALUES ($1::text, $2::text, $3::text, 'PROCESSING', $4::text, 1, clock_timestamp(),
    ${inMs('least($5::float8, $6::float8)')}, ${inMs('$6::float8')})
  ON CONFLICT (consumer, event_id) DO UPDATE SET ${CLAIM}
  RETURNING (i.xmax::text = '0')::text AS inserted`;

const CLAIM_ONLY = `UPDATE mailroom.inbox AS i SET ${CLAIM} AND ${KEY} RETURNING 'false' AS inserted`;

const TAKE_OVER = `UPDATE mailroom.inbox AS i SET ${CLAIMED}, attempts = $7::int, unfinished = $8::int, past_attempts = $9::text,
  last_error = coalesce($10::text, last_error), fingerprint = coalesce($11::text, fingerprint) WHERE ${KEY} RETURNING 1`;

/** In exactly the state that was read, under another message id. */
const READMISSIBLE = "i.status = 'REJECTED' AND i.fence = $4::text AND NOT ($3::text = ANY (i.rejected_ids))";

const READMIT = `UPDATE mailroom.inbox AS i SET ${CLAIMED}, attempts = 1, unfinished = 0, reason = NULL, rejected_at = NULL
  WHERE ${KEY} AND i.status = 'REJECTED' AND i.fence = $8::text AND NOT ($7::text = ANY (i.rejected_ids)) RETURNING 1`;

/** No row, FAILED, PROCESSING under a lease that has passed, or REJECTED and redriven -> PROCESSING. */
export async function claim<Tx>(
  ctx: PostgresInboxContext<Tx>,
  message: Message,
  options: ClaimOptions,
): Promise<ClaimResult> {
  const { rules, database } = ctx;
  const { clock, leaseMs } = rules;
  const claimedAt = clock.now();
  const leaseUntil = Math.min(claimedAt + leaseMs, options.endsBy);
  const wanted: Wanted = { ...options, message, fence: mintToken(rules.random), leaseUntil, claimedAt };
  const mayInsert = mayHaveRunBecause(rules, message) === undefined;
  try {
    const values = [...claimedValues(ctx, wanted), message.messageId, options.firstReceive, options.alone];
    const [written] = await runAlone(database, mayInsert ? INSERT_OR_CLAIM : CLAIM_ONLY, values, {
      inserted: 'boolean',
    });
    if (written?.inserted === true) return granted(wanted, { attempts: 1 });
    const row = await readRow(ctx, database, message.eventId);
    if (written !== undefined) return granted(wanted, { ...row });
    const admission = admissionOf(rules, message, row);
    if (admission.status === 'abandoned') return await takeOver(ctx, wanted);
    if (admission.status !== 'readmit') return refusalBy(rules, message, row);
    const readmitted = await runAlone(
      database,
      READMIT,
      [...claimedValues(ctx, wanted), message.messageId, admission.row.fence],
      {},
    );
    if (readmitted.length === 0) return refusalNow(ctx, message);
    return granted(wanted, { ...admission.row, attempts: 1 });
  } catch (error) {
    if (isLocked(error)) return leasedNow(ctx);
    throw error;
  }
}

/** The row and its effects are locked, so that neither the old holder nor another worker changes them between the judgement and the write. */
function takeOver<Tx>(ctx: PostgresInboxContext<Tx>, wanted: Wanted): Promise<ClaimResult> {
  const { rules, database } = ctx;
  const { message, firstReceive, alone } = wanted;
  const key = [rules.consumer, message.eventId];
  return database.transaction(async (tx): Promise<ClaimResult> => {
    const sql = database.in(tx);
    const held = await run(
      sql,
      `SELECT 1 FROM mailroom.inbox i WHERE ${KEY} FOR NO KEY UPDATE SKIP LOCKED`,
      key,
      {},
    );
    if (held.length === 0) return leasedNow(ctx);
    await run(sql, `SELECT 1 FROM mailroom.effect i WHERE ${KEY} ORDER BY i.name FOR NO KEY UPDATE`, key, {});
    const row = await readRow(ctx, sql, message.eventId);
    const admission = admissionOf(rules, message, row);
    if (admission.status !== 'abandoned') return refusalBy(rules, message, row);
    if (!firstReceive && !alone && mustRunAlone(admission.row)) return { status: 'suspect' };
    const { attempts, unfinished, pastAttempts, lastError, fingerprint } = {
      lastError: undefined,
      fingerprint: undefined,
      ...takenOver(rules, wanted, admission.row),
    };
    const changes = [
      attempts,
      unfinished,
      JSON.stringify(pastAttempts),
      lastError ?? null,
      fingerprint ?? null,
    ];
    await run(sql, TAKE_OVER, [...claimedValues(ctx, wanted), ...changes], {});
    return granted(
      wanted,
      {
        ...admission.row,
        attempts,
        unfinished,
        pastAttempts,
        lastError: lastError ?? admission.row.lastError,
        fingerprint: fingerprint ?? admission.row.fingerprint,
      },
      true,
    );
  });
}

function claimedValues(
  { rules }: PostgresInboxContext<never> | Pick<PostgresInboxContext<never>, 'rules'>,
  { message, fence, endsBy, claimedAt }: Wanted,
): unknown[] {
  const { consumer, leaseMs } = rules;
  return [consumer, message.eventId, message.type ?? 'unknown', fence, leaseMs, endsBy - claimedAt];
}

/** The changes of every rejection: $3 the message id, $5 to $8 its reason, and $9 the days after which it may be deleted. */
const REJECTED = `status = 'REJECTED', type = $5::text, reason = $6::text, last_error = $7::text, fingerprint = $8::text,
  rejected_at = clock_timestamp(), expires_at = clock_timestamp() + $9::float8 * interval '1 day',
  rejected_ids = CASE WHEN $3::text = ANY (i.rejected_ids) THEN i.rejected_ids ELSE pg_catalog.array_append(i.rejected_ids, $3::text) END,
  lease_until = NULL, ends_by = NULL, retry_at = NULL, unfinished = 0, out_of_time = false, changed_at = clock_timestamp()`;

const REJECT_CLAIMED = `UPDATE mailroom.inbox AS i SET ${REJECTED}, past_attempts = $10::text
  WHERE ${KEY} AND i.status = 'PROCESSING' AND i.fence = $4::text RETURNING 1`;

/** No worker holds it, and it was not rejected under this message id. */
const REJECT_FREE = `${REJECTED}, fence = $4::text
  WHERE (i.status = 'FAILED' OR (i.status = 'PROCESSING' AND NOT coalesce(i.lease_until >= clock_timestamp(), false)))
    AND NOT ($3::text = ANY (i.rejected_ids))`;

const INSERT_OR_REJECT = `INSERT INTO mailroom.inbox AS i
    (consumer, event_id, type, status, fence, reason, last_error, fingerprint, rejected_at, expires_at, rejected_ids)
  VALUES ($1::text, $2::text, $5::text, 'REJECTED', $4::text, $6::text, $7::text, $8::text, clock_timestamp(),
    clock_timestamp() + $9::float8 * interval '1 day', ARRAY[$3::text])
  ON CONFLICT (consumer, event_id) DO UPDATE SET ${REJECT_FREE} RETURNING 1`;

const REJECT_ONLY = `UPDATE mailroom.inbox AS i SET ${REJECT_FREE} AND ${KEY} RETURNING 1`;

const REJECT_AGAIN = `UPDATE mailroom.inbox AS i SET ${REJECTED} WHERE ${KEY} AND ${READMISSIBLE} RETURNING 1`;

/** PROCESSING -> REJECTED. Returns the refusal if the write was refused. @param pastAttempts - as JSON */
export async function reject<Tx>(
  ctx: PostgresInboxContext<Tx>,
  claim: Claim,
  error: unknown,
  pastAttempts: string,
): Promise<InboxRefusal | undefined> {
  const { message, fence } = claim;
  const values = [...rejectedValues(ctx, message, error, fence, claim), pastAttempts];
  const done = await runAlone(ctx.database, REJECT_CLAIMED, values, {});
  if (done.length > 0) return undefined;
  const refusal = await refusalNow(ctx, message);
  return refusal.status === 'rejected' ? undefined : refusal;
}

/** As `rejectUnclaimed` of the inbox in DynamoDB. */
export async function rejectUnclaimed<Tx>(
  ctx: PostgresInboxContext<Tx>,
  message: Message,
  error: unknown,
): Promise<InboxRefusal> {
  const { rules, database } = ctx;
  const reason = errorCode(error);
  const mayInsert = reason === TOO_OLD || mayHaveRunBecause(rules, message) === undefined;
  const values = (fence: string) => rejectedValues(ctx, message, error, fence);
  try {
    const first = await runAlone(
      database,
      mayInsert ? INSERT_OR_REJECT : REJECT_ONLY,
      values(mintToken(rules.random)),
      {},
    );
    if (first.length > 0) return { status: 'rejected', reason };
    const row = await readRow(ctx, database, message.eventId);
    const admission = admissionOf(rules, message, row);
    if (admission.status !== 'readmit') return refusalBy(rules, message, row);
    // It was rejected before under another message id, and stays REJECTED.
    const again = await runAlone(database, REJECT_AGAIN, values(admission.row.fence), {});
    return again.length > 0 ? { status: 'rejected', reason } : refusalNow(ctx, message);
  } catch (failure) {
    if (isLocked(failure)) return leasedNow(ctx);
    throw failure;
  }
}

function rejectedValues(
  { rules }: Pick<PostgresInboxContext<never>, 'rules'>,
  { eventId, messageId, type = 'unknown' }: Message,
  error: unknown,
  fence: string,
  claim?: Claim,
): unknown[] {
  const { lastError, fingerprint } = rejectionCause(rules, error, claim);
  // No handler runs under the id of an unreadable message, so its row may be deleted.
  const days = isUnreadableId(eventId) ? rules.inboxRetentionDays + SPARE_DAYS : null;
  return [rules.consumer, eventId, messageId, fence, type, errorCode(error), lastError, fingerprint, days];
}

/** The refusal by the current row. */
export async function refusalNow<Tx>(ctx: PostgresInboxContext<Tx>, message: Message): Promise<InboxRefusal> {
  return refusalBy(ctx.rules, message, await readRow(ctx, ctx.database, message.eventId));
}

/** Another transaction holds the row: it ends soon. */
export function leasedNow({ rules }: Pick<PostgresInboxContext<never>, 'rules'>): InboxRefusal {
  const now = rules.clock.now();
  return { status: 'leased', until: now, endsBy: now };
}
