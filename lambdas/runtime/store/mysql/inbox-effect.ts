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
import { FROM_NOW, KEY, NOW, TEXT, textParameter } from './expressions.ts';
import { type MysqlInboxContext, readRow, repeated, run } from './inbox-row.ts';
import { part } from './statement.ts';

/**
 * Locks the message while this worker holds it, and the entry of the effect, if the effect may start. The lock on the message's row is
 * necessary: without it, a takeover that commits between the read of the fence and the write of the effect would leave an effect that
 * started under a lost fence.
 */
const MAY_START = `SELECT 1 FROM mailroom.inbox i
  LEFT JOIN mailroom.effect e ON e.consumer = i.consumer AND e.event_id = i.event_id AND e.name = ${KEY}
  WHERE i.consumer = ${KEY} AND i.event_id = ${KEY} AND i.status = 'PROCESSING' AND i.fence = ${KEY}
    AND ((e.name IS NULL AND (SELECT COUNT(*) FROM mailroom.effect s WHERE s.consumer = i.consumer AND s.event_id = i.event_id) < ${EFFECTS_MAX})
      OR (e.status = 'RELEASED' AND (e.fence <> i.fence OR e.run < ?))
      OR (e.status = 'IN_PROGRESS' AND ((e.fence = i.fence AND e.run <= ?)
        OR e.ends_by < ${NOW} - INTERVAL ${CLOCK_SKEW_MS * 1_000} MICROSECOND)))
  FOR UPDATE`;

/** The entry of an earlier start is replaced as a whole. */
const START = `REPLACE INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by)
  VALUES (${KEY}, ${KEY}, ${KEY}, 'IN_PROGRESS', ${KEY}, ?, ${NOW}, ${FROM_NOW})`;

const FINISH = `UPDATE mailroom.effect SET status = ${TEXT}, result = ${TEXT}, error = ${TEXT}, nothing_happened = ?, ended_at = ${NOW}
  WHERE consumer = ${KEY} AND event_id = ${KEY} AND name = ${KEY} AND status = 'IN_PROGRESS' AND fence = ${KEY} AND run = ?`;

/** As `startEffect` of the inbox in DynamoDB. */
export async function startEffect<Tx>(
  { rules, database }: MysqlInboxContext<Tx>,
  call: EffectCall,
): Promise<Pick<StoredEffect, 'result'> | undefined> {
  const { claim, run: number } = call;
  const { eventId } = claim.message;
  const { key, name, fence } = partsOf(rules, call);
  const mayStart = part(MAY_START, name, ...key, fence, number, number);
  const start = part(START, ...key, name, fence, number, claim.endsBy - rules.clock.now());
  const started = await repeated(() =>
    database.transaction(async (tx) => {
      const sql = database.in(tx);
      if ((await run(sql, mayStart, {})).length === 0) return false;
      await run(sql, start, {});
      return true;
    }),
  );
  return started ? undefined : notStarted(call, await readRow({ rules }, database, eventId));
}

/** As `finishEffect` of the inbox in DynamoDB. */
export async function finishEffect<Tx>(
  { rules, database }: MysqlInboxContext<Tx>,
  call: EffectCall,
  end: EffectEnd,
): Promise<void> {
  const { status, result, error, nothingHappened } = ended(rules, end);
  const { key, name, fence } = partsOf(rules, call);
  const set = [status, result, error].map(textParameter);
  const happened = nothingHappened === undefined ? null : Number(nothingHappened);
  await repeated(() => run(database, part(FINISH, ...set, happened, ...key, name, fence, call.run), {}));
  checkFinished(call, end, await readRow({ rules }, database, call.claim.message.eventId));
}

function partsOf(
  { consumer }: Pick<MysqlInboxContext<never>['rules'], 'consumer'>,
  { claim: { message, fence }, name }: EffectCall,
) {
  const key = [textParameter(consumer), textParameter(message.eventId)];
  return { key, name: textParameter(name), fence: textParameter(fence) };
}
