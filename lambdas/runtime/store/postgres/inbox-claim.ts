import { errorCode } from '../../base/errors.ts';
import {
  type ClaimOptions,
  type ClaimResult,
  claimedFree,
  fromNow,
  granted,
  isSuspect,
  readmittedFrom,
  takenOver,
  type Wanted,
  wantedClaim,
} from '../../inbox/claim-transitions.ts';
import type { Claim, InboxRefusal, Message } from '../../inbox/inbox.ts';
import { admissionOf, refusalBy } from '../../inbox/inbox-admission.ts';
import { abandoned, claimable, readmissible, rejectable } from '../../inbox/inbox-conditions.ts';
import { rejected, rejectedUnclaimed } from '../../inbox/inbox-transitions.ts';
import type { EffectStates } from '../../inbox/past-attempts.ts';
import type { RowsBefore, RowTransition } from '../../inbox/row-transition.ts';
import { mintToken } from '../event-id.ts';
import { passingOver } from '../sql/passing-over.ts';
import { isLocked, type PostgresInboxContext, readRow, run, runAlone } from './inbox-row.ts';
import { transitionOf, underFence, writeTransition } from './inbox-writes.ts';
import { readLastSequence } from './last-sequence.ts';

const KEY = 'i.consumer = $1::text AND i.event_id = $2::text';

/** True if a statement that inserts or updates has inserted. */
const INSERTED = "(i.xmax::text = '0')::text AS inserted";

/** No row, FAILED, PROCESSING under a lease that has passed, or REJECTED and redriven -> PROCESSING. */
export async function claim<Tx>(
  ctx: PostgresInboxContext<Tx>,
  message: Message,
  options: ClaimOptions,
): Promise<ClaimResult> {
  const { rules, database } = ctx;
  const { eventId } = message;
  const wanted = wantedClaim(rules, message, options);
  const from = claimable(rules, message, options.alone || options.firstReceive);
  const inserted = from.absent ? INSERTED : "'false' AS inserted";
  try {
    const statement = transitionOf(rules, eventId, from, claimedFree(wanted), inserted);
    const [written] = await runAlone(database, ...statement, { inserted: 'boolean' });
    if (written?.inserted === true) return granted(wanted, { attempts: 1 });
    const row = await readRow(ctx, database, eventId);
    if (written !== undefined) return granted(wanted, { ...row });
    const admission = admissionOf(rules, message, row);
    if (admission.status === 'abandoned') return await takeOver(ctx, wanted);
    if (admission.status !== 'readmit') return refusalBy(rules, message, row);
    const redriven = fromNow(rules, wanted);
    if (await writeTransition(ctx, eventId, readmissible(message, admission.row), readmittedFrom(redriven)))
      return granted(redriven, { ...admission.row, attempts: 1 });
    return refusalNow(ctx, message);
  } catch (error) {
    if (isLocked(error)) return leasedNow(ctx);
    throw error;
  }
}

/** The row and its effects are locked, so that neither the old holder nor another worker changes them between the judgement and the write. */
function takeOver<Tx>(ctx: PostgresInboxContext<Tx>, refused: Wanted): Promise<ClaimResult> {
  const { rules, database } = ctx;
  const { message } = refused;
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
    const wanted = fromNow(rules, refused); // the locks were waited for
    if (isSuspect(wanted, admission.row)) return { status: 'suspect' };
    const transition = takenOver(rules, wanted, admission.row);
    const from = abandoned(message, admission.row);
    const taken = await run(sql, ...transitionOf(rules, message.eventId, from, transition, '1'), {});
    if (taken.length === 0) return leasedNow(ctx);
    return granted(wanted, { ...admission.row, ...transition.set }, true);
  });
}

/** PROCESSING -> REJECTED. Returns the refusal if the write was refused. @param effects - those that the attempt ran */
export async function reject<Tx>(
  ctx: PostgresInboxContext<Tx>,
  held: Claim,
  error: unknown,
  effects: EffectStates,
): Promise<InboxRefusal | undefined> {
  const rejection = rejected(ctx.rules, held, error, effects);
  const lastSequence = (key: string) => readLastSequence(ctx.database, key);
  const refusal = await passingOver(held.message.place, rejection, lastSequence, (raise) =>
    underFence(ctx, held, rejection, raise),
  );
  return refusal?.status === 'rejected' ? undefined : refusal;
}

/** As `rejectUnclaimed` of the inbox in DynamoDB. */
export async function rejectUnclaimed<Tx>(
  ctx: PostgresInboxContext<Tx>,
  message: Message,
  error: unknown,
): Promise<InboxRefusal> {
  const { rules, database } = ctx;
  const { eventId } = message;
  const reason = errorCode(error);
  const rejection = (fence: string) => rejectedUnclaimed(rules, message, error, fence);
  try {
    const free = rejectable(rules, message, reason);
    if (await writeRejection(ctx, message, free, rejection(mintToken(rules.random))))
      return { status: 'rejected', reason };
    const row = await readRow(ctx, database, eventId);
    const admission = admissionOf(rules, message, row);
    if (admission.status !== 'readmit') return refusalBy(rules, message, row);
    // It was rejected before under another message id, and stays REJECTED.
    const again = readmissible(message, admission.row);
    return (await writeRejection(ctx, message, again, rejection(admission.row.fence)))
      ? { status: 'rejected', reason }
      : refusalNow(ctx, message);
  } catch (failure) {
    if (isLocked(failure)) return leasedNow(ctx);
    throw failure;
  }
}

function writeRejection<Tx>(
  ctx: PostgresInboxContext<Tx>,
  message: Message,
  from: RowsBefore,
  rejection: RowTransition,
): Promise<boolean> {
  const lastSequence = (key: string) => readLastSequence(ctx.database, key);
  return passingOver(message.place, rejection, lastSequence, (raise) =>
    writeTransition(ctx, message.eventId, from, rejection, raise),
  );
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
