import { CLOCK_SKEW_MS } from '../../base/clock.ts';
import {
  checkFinished,
  EFFECTS_MAX,
  type EffectCall,
  type EffectEnd,
  ended,
  notStarted,
} from '../../inbox/inbox-effect.ts';
import type { StoredEffect } from '../stored-effect.ts';
import { inMs, type PostgresInboxContext, readRow, runAlone } from './inbox-row.ts';

/**
 * Starts an effect while this worker holds the message. The lock on the message's row is necessary: without it, a takeover that commits
 * between the read of the fence and the write of the effect would leave an effect that started under a lost fence.
 */
const START = `WITH held AS MATERIALIZED (
    SELECT 1 FROM mailroom.inbox WHERE consumer = $1::text AND event_id = $2::text AND status = 'PROCESSING' AND fence = $3::text
    FOR NO KEY UPDATE
  ), stored AS (
    SELECT count(*) AS effects, bool_or(name = $4::text) AS known FROM mailroom.effect
    WHERE consumer = $1::text AND event_id = $2::text
  )
  INSERT INTO mailroom.effect AS e (consumer, event_id, name, status, fence, run, started_at, ends_by)
  SELECT $1::text, $2::text, $4::text, 'IN_PROGRESS', $3::text, $5::int, clock_timestamp(), ${inMs('$6::float8')}
  FROM held, stored WHERE stored.known OR stored.effects < ${EFFECTS_MAX}
  ON CONFLICT (consumer, event_id, name) DO UPDATE SET status = 'IN_PROGRESS', fence = excluded.fence, run = excluded.run,
    started_at = excluded.started_at, ends_by = excluded.ends_by, ended_at = NULL, error = NULL, nothing_happened = NULL
  WHERE (e.status = 'RELEASED' AND (e.fence <> excluded.fence OR e.run < excluded.run))
    OR (e.status = 'IN_PROGRESS' AND ((e.fence = excluded.fence AND e.run <= excluded.run)
      OR e.ends_by < clock_timestamp() - interval '${CLOCK_SKEW_MS} ms'))
  RETURNING 1`;

const FINISH = `UPDATE mailroom.effect SET status = $6::text, result = $7::text, error = $8::text, nothing_happened = $9::boolean,
    ended_at = clock_timestamp()
  WHERE consumer = $1::text AND event_id = $2::text AND name = $4::text AND status = 'IN_PROGRESS' AND fence = $3::text AND run = $5::int
  RETURNING 1`;

/** As `startEffect` of the inbox in DynamoDB. */
export async function startEffect<Tx>(
  ctx: PostgresInboxContext<Tx>,
  call: EffectCall,
): Promise<Pick<StoredEffect, 'result'> | undefined> {
  const endsInMs = call.claim.endsBy - ctx.rules.clock.now();
  const started = await runAlone(ctx.database, START, [...callValues(ctx, call), endsInMs], {});
  if (started.length > 0) return undefined;
  return notStarted(call, await readRow(ctx, ctx.database, call.claim.message.eventId));
}

/** As `finishEffect` of the inbox in DynamoDB. */
export async function finishEffect<Tx>(
  ctx: PostgresInboxContext<Tx>,
  call: EffectCall,
  end: EffectEnd,
): Promise<void> {
  const { status, result = null, error = null, nothingHappened = null } = ended(ctx.rules, end);
  const values = [...callValues(ctx, call), status, result, error, nothingHappened];
  const finished = await runAlone(ctx.database, FINISH, values, {});
  if (finished.length === 0)
    checkFinished(call, end, await readRow(ctx, ctx.database, call.claim.message.eventId));
}

function callValues(
  { rules }: Pick<PostgresInboxContext<never>, 'rules'>,
  { claim: { message, fence }, name, run }: EffectCall,
): unknown[] {
  return [rules.consumer, message.eventId, fence, name, run];
}
