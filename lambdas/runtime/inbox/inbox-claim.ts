import { MailroomError } from '../base/errors.ts';
import { fingerprint } from '../base/fingerprint.ts';
import { mintToken } from '../store/event-id.ts';
import type { ProcessingRow, RejectedRow } from '../store/inbox-row.ts';
import { rejectedKey } from '../store/keys.ts';
import { asRow, SCHEMA } from '../store/row-schema.ts';
import type { RowChange } from '../store/row-update.ts';
import type { Item } from '../store/table.ts';
import type { Claim, InboxContext, InboxRefusal, InboxRules, Message } from './inbox.ts';
import { admissionOf, isOurs, mustRunAlone, refusalOf, rowOf } from './inbox-admission.ts';
import { ALONE_FROM, abandoned, claimable, readmissible } from './inbox-conditions.ts';
import { placeChange, transactRow, type Written, writeRow } from './inbox-writes.ts';
import { effectsOfClaim, withAttempt } from './past-attempts.ts';

/** Options of a claim. */
export interface ClaimOptions {
  /** No other message runs in this invocation; otherwise, a message whose last claims ended without a result is `suspect`. */
  readonly alone: boolean;
  /** The time at which the function is stopped, epoch milliseconds. */
  readonly endsBy: number;
  /**
   * This is the first counted run of this message: its attempts begin at 1, even for a redriven dead letter that was never
   * rejected.
   */
  readonly firstReceive: boolean;
}

/** The result of a claim. */
export type ClaimResult = { readonly status: 'claimed'; readonly claim: Claim } | InboxRefusal;

/** A claim in progress. */
export interface Wanted extends ClaimOptions {
  readonly message: Message;
  readonly fence: string;
  readonly leaseUntil: number;
  readonly claimedAt: number;
}

/** No row, FAILED, PROCESSING under a lease that has passed, or REJECTED and redriven -> PROCESSING. */
export async function claimMessage(
  inbox: InboxContext,
  message: Message,
  options: ClaimOptions,
): Promise<ClaimResult> {
  const { alone, endsBy, firstReceive } = options;
  const claimedAt = inbox.clock.now();
  const leaseUntil = Math.min(claimedAt + inbox.leaseMs, endsBy);
  const wanted = { ...options, message, fence: mintToken(inbox.random), leaseUntil, claimedAt };
  const change = firstReceive
    ? claimedRow(wanted, {
        computed: { attempts: ':one' },
        values: { ':one': 1 },
        remove: ['retryAt', 'unfinished'],
      })
    : claimedRow(wanted, {
        computed: { attempts: 'if_not_exists(attempts, :zero) + :one' },
        values: { ':zero': 0, ':one': 1 },
        remove: ['retryAt'],
      });
  const claimed = await writeRow(
    inbox,
    message.eventId,
    change,
    claimable(inbox, message, alone || firstReceive),
  );
  if (isGranted(claimed, wanted)) return granted(wanted, claimed.item);
  const admission = admissionOf(inbox, message, rowOf(claimed.item));
  if (admission.status === 'abandoned') return takeOver(inbox, wanted, admission.row);
  if (admission.status === 'readmit') return readmit(inbox, wanted, admission.row);
  return refusalOf(inbox, message, claimed.item);
}

/**
 * PROCESSING under a lease that has passed -> PROCESSING. If the previous claim ended without a result, it counts as an attempt
 * only if it ran alone, because only then did its message have the process and the function's full time to itself. Otherwise, the
 * attempt is repeated under the same number.
 */
async function takeOver(inbox: InboxContext, wanted: Wanted, row: ProcessingRow): Promise<ClaimResult> {
  const { message, firstReceive, alone } = wanted;
  if (!firstReceive && !alone && mustRunAlone(row)) return { status: 'suspect' };
  const change = claimedRow(wanted, { set: takenOver(inbox, wanted, row), remove: ['outOfTime', 'retryAt'] });
  const taken = await writeRow(inbox, message.eventId, change, abandoned(inbox, message, row));
  if (isGranted(taken, wanted)) return granted(wanted, taken.item, true);
  return refusalOf(inbox, message, taken.item);
}

/** The attributes by which a takeover records the claim before it. */
export function takenOver(inbox: InboxRules, wanted: Wanted, row: ProcessingRow) {
  const { firstReceive } = wanted;
  const { unfinished = 0 } = row;
  const counted = unfinished >= ALONE_FROM ? 1 : 0;
  const died = new MailroomError('FUNCTION_DIED', FUNCTION_DIED);
  const cause = { lastError: died.message, fingerprint: `${inbox.consumer} ${fingerprint(died)}` };
  return {
    attempts: firstReceive ? 1 : Math.max(1, attemptsOf(row)) + counted,
    pastAttempts: withAttempt(row.pastAttempts, {
      at: row.leaseUntil ?? wanted.claimedAt,
      attempt: attemptsOf(row),
      ended: 'no-result',
      error: row.outOfTime ? row.lastError : died.message,
      effects: effectsOfClaim(row.effects, row.fence),
    }),
    unfinished: firstReceive ? 1 : unfinished + 1,
    ...(row.outOfTime ? {} : cause),
  };
}

/** REJECTED and redriven -> PROCESSING, with its attempts reset and the pointer removed, in one transaction. */
async function readmit(inbox: InboxContext, wanted: Wanted, row: RejectedRow): Promise<ClaimResult> {
  const { message } = wanted;
  const change = claimedRow(wanted, {
    computed: { attempts: ':one' },
    values: { ':one': 1 },
    remove: ['reason', 'rejectedAt', 'unfinished', 'outOfTime'],
  });
  const readmitted = await transactRow(inbox, message.eventId, change, readmissible(message, row), [
    { Delete: { Key: { ...rejectedKey(inbox.consumer, message.eventId) } } },
  ]);
  if (isGranted(readmitted, wanted))
    return granted(wanted, { attempts: 1, effects: row.effects, pastAttempts: row.pastAttempts });
  return refusalOf(inbox, message, readmitted.item);
}

/** The reason why a claim ended without a result, if its worker could not record one. */
const FUNCTION_DIED =
  'The function ended before its handler did: it crashed, ran out of memory, or was stopped at its timeout.';

/** The change that every claim makes: it takes the row, and creates the map of effects only if it is missing. */
function claimedRow(wanted: Wanted, { set, computed, values, remove }: Partial<RowChange>): RowChange {
  const { message, fence, leaseUntil, endsBy, claimedAt } = wanted;
  const type = message.type ?? 'unknown';
  const { set: placed, remove: unplaced } = placeChange(message);
  const held = { status: 'PROCESSING', schema: SCHEMA, fence, leaseUntil, endsBy, claimedAt, type };
  return {
    set: { ...held, ...placed, ...set },
    computed: { ...computed, effects: 'if_not_exists(effects, :noEffects)' },
    values: { ...values, ':noEffects': {} },
    remove: [...(remove ?? []), ...unplaced],
  };
}

/** Returns true if this claim was written, either now or by an earlier try whose response was lost. */
function isGranted({ ok, item }: Written, { fence }: Wanted): boolean {
  return ok || isOurs(rowOf(item), fence);
}

/** The claim that a row shows. */
export function granted(wanted: Wanted, item: Item = {}, takenOver = false): ClaimResult {
  const { message, fence, leaseUntil, endsBy } = wanted;
  const row = asRow<ProcessingRow>(item);
  const { unfinished = 0, lastError, fingerprint: cause, pastAttempts } = row;
  const effects = row.effects ?? {}; // also if it was set to null by hand
  const attempt = attemptsOf(row);
  return {
    status: 'claimed',
    claim: {
      message,
      attempt,
      fence,
      leaseUntil,
      endsBy,
      takenOver,
      unfinished,
      effects,
      lastError,
      fingerprint: cause,
      pastAttempts,
    },
  };
}

/** Returns a row's attempts; 0 if they cannot be read. */
function attemptsOf({ attempts }: ProcessingRow): number {
  return Number.isSafeInteger(attempts) ? attempts : 0;
}
