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
import { admissionOf, isOurs, refusalBy } from '../../inbox/inbox-admission.ts';
import { abandoned, claimable, readmissible, rejectable } from '../../inbox/inbox-conditions.ts';
import { rejected, rejectedUnclaimed } from '../../inbox/inbox-transitions.ts';
import type { EffectStates } from '../../inbox/past-attempts.ts';
import type { RowsBefore, RowTransition } from '../../inbox/row-transition.ts';
import { mintToken } from '../event-id.ts';
import type { InboxRow } from '../inbox-row.ts';
import { passingOver } from '../sql/passing-over.ts';
import { isLocked, keyOf, type MysqlInboxContext, readRow, repeated, run } from './inbox-row.ts';
import { underFence, updateOf, writeTransition } from './inbox-writes.ts';
import { readLastSequence } from './last-sequence.ts';
import { joined } from './statement.ts';

/** No row, FAILED, PROCESSING under a lease that has passed, or REJECTED and redriven -> PROCESSING. */
export async function claim<Tx>(
  ctx: MysqlInboxContext<Tx>,
  message: Message,
  options: ClaimOptions,
): Promise<ClaimResult> {
  const { rules } = ctx;
  const { eventId } = message;
  const wanted = wantedClaim(rules, message, options);
  const from = claimable(rules, message, options.alone || options.firstReceive);
  try {
    const row = await writeTransition(ctx, eventId, from, claimedFree(wanted));
    if (isOurs(row, wanted.fence)) return granted(wanted, { ...row });
    const admission = admissionOf(rules, message, row);
    if (admission.status === 'abandoned') return await repeated(() => takeOver(ctx, wanted));
    if (admission.status !== 'readmit') return refusalBy(rules, message, row);
    const redriven = fromNow(rules, wanted);
    const again = readmissible(message, admission.row);
    const now = await writeTransition(ctx, eventId, again, readmittedFrom(redriven));
    if (isOurs(now, redriven.fence)) return granted(redriven, { ...now });
    return refusalBy(rules, message, now);
  } catch (error) {
    if (isLocked(error)) return leasedNow(ctx);
    throw error;
  }
}

/** The row and its effects are locked, so that neither the old holder nor another worker changes them between the judgement and the write. */
function takeOver<Tx>(ctx: MysqlInboxContext<Tx>, refused: Wanted): Promise<ClaimResult> {
  const { rules, database } = ctx;
  const { message } = refused;
  const { eventId } = message;
  const key = keyOf(rules, eventId);
  return database.transaction(async (tx): Promise<ClaimResult> => {
    const sql = database.in(tx);
    const held = joined(['SELECT 1 FROM mailroom.inbox i WHERE ', key, ' FOR UPDATE SKIP LOCKED']);
    if ((await run(sql, held, {})).length === 0) return leasedNow(ctx);
    await run(
      sql,
      joined(['SELECT 1 FROM mailroom.effect i WHERE ', key, ' ORDER BY i.name FOR UPDATE']),
      {},
    );
    const row = await readRow(ctx, sql, eventId);
    const admission = admissionOf(rules, message, row);
    if (admission.status !== 'abandoned') return refusalBy(rules, message, row);
    const wanted = fromNow(rules, refused); // the locks were waited for
    if (isSuspect(wanted, admission.row)) return { status: 'suspect' };
    const transition = takenOver(rules, wanted, admission.row);
    await run(sql, updateOf(rules, eventId, abandoned(message, admission.row), transition), {});
    const taken = await readRow(ctx, sql, eventId);
    return isOurs(taken, wanted.fence) ? granted(wanted, { ...taken }, true) : leasedNow(ctx);
  });
}

/** PROCESSING -> REJECTED. Returns the refusal if the write was refused. @param effects - those that the attempt ran */
export async function reject<Tx>(
  ctx: MysqlInboxContext<Tx>,
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
  ctx: MysqlInboxContext<Tx>,
  message: Message,
  error: unknown,
): Promise<InboxRefusal> {
  const { rules } = ctx;
  const { messageId } = message;
  const reason = errorCode(error);
  const rejection = (fence: string) => rejectedUnclaimed(rules, message, error, fence);
  try {
    const fence = mintToken(rules.random);
    const row = await writeRejection(ctx, message, rejectable(rules, message, reason), rejection(fence));
    if (row?.status === 'REJECTED' && row.fence === fence) return { status: 'rejected', reason };
    const admission = admissionOf(rules, message, row);
    if (admission.status !== 'readmit') return refusalBy(rules, message, row);
    // It was rejected before under another message id, and stays REJECTED.
    const again = readmissible(message, admission.row);
    const now = await writeRejection(ctx, message, again, rejection(admission.row.fence));
    return now?.status === 'REJECTED' && now.rejectedIds?.has(messageId)
      ? { status: 'rejected', reason }
      : refusalBy(rules, message, now);
  } catch (failure) {
    if (isLocked(failure)) return leasedNow(ctx);
    throw failure;
  }
}

function writeRejection<Tx>(
  ctx: MysqlInboxContext<Tx>,
  message: Message,
  from: RowsBefore,
  rejection: RowTransition,
): Promise<InboxRow | undefined> {
  const lastSequence = (key: string) => readLastSequence(ctx.database, key);
  return passingOver(message.place, rejection, lastSequence, (raise) =>
    writeTransition(ctx, message.eventId, from, rejection, raise),
  );
}

/** Another transaction holds the row: it ends soon. */
export function leasedNow({ rules }: Pick<MysqlInboxContext<never>, 'rules'>): InboxRefusal {
  const now = rules.clock.now();
  return { status: 'leased', until: now, endsBy: now };
}
