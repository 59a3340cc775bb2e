import { MailroomError } from '../base/errors.ts';
import { fingerprint } from '../base/fingerprint.ts';
import { mintToken } from '../store/event-id.ts';
import type { ProcessingRow } from '../store/inbox-row.ts';
import { asRow } from '../store/row-schema.ts';
import type { Item } from '../store/table.ts';
import type { Claim, InboxRefusal, InboxRules, Message } from './inbox.ts';
import { mustRunAlone } from './inbox-admission.ts';
import { ALONE_FROM } from './inbox-conditions.ts';
import { placeOf } from './inbox-transitions.ts';
import { effectsOfClaim, withAttempt } from './past-attempts.ts';
import type { RowTransition } from './row-transition.ts';

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

/** A claim that begins now. */
export function wantedClaim(inbox: InboxRules, message: Message, options: ClaimOptions): Wanted {
  return fromNow(inbox, { ...options, message, fence: mintToken(inbox.random) });
}

/**
 * A claim whose lease begins now: a takeover or a readmission follows a refused write, which can take longer than a lease. The lease never
 * lasts longer than its function.
 */
export function fromNow(inbox: InboxRules, wanted: Omit<Wanted, 'claimedAt' | 'leaseUntil'>): Wanted {
  const claimedAt = inbox.clock.now();
  return { ...wanted, claimedAt, leaseUntil: Math.min(claimedAt + inbox.leaseMs, wanted.endsBy) };
}

/** The next attempt of a message that has no row, or failed: PROCESSING. */
export function claimedFree(wanted: Wanted): RowTransition {
  return wanted.firstReceive
    ? claimed(wanted, { set: { attempts: 1 }, clear: ['unfinished'] })
    : claimed(wanted, { set: {}, clear: [], count: 'next' });
}

/** A message that was rejected is redriven: PROCESSING, with its attempts reset. */
export function readmittedFrom(wanted: Wanted): RowTransition {
  return claimed(wanted, { set: { attempts: 1 }, clear: ['reason', 'rejectedAt', 'unfinished'] });
}

/**
 * A message is taken over: PROCESSING. If the claim before it ended without a result, that one counts as an attempt only if it ran alone,
 * because only then did its message have the process and the function's full time to itself. Otherwise, the attempt is repeated under
 * the same number.
 */
export function takenOver(inbox: InboxRules, wanted: Wanted, row: ProcessingRow): RowTransition {
  const { firstReceive } = wanted;
  const { unfinished = 0 } = row;
  const counted = unfinished >= ALONE_FROM ? 1 : 0;
  const died = new MailroomError('FUNCTION_DIED', FUNCTION_DIED);
  const cause = { lastError: died.message, fingerprint: `${inbox.consumer} ${fingerprint(died)}` };
  const set = {
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
  return claimed(wanted, { set, clear: [] });
}

/** The message must run alone, and does not: it is not taken over. */
export function isSuspect({ firstReceive, alone }: ClaimOptions, row: ProcessingRow): boolean {
  return !firstReceive && !alone && mustRunAlone(row);
}

/** The reason why a claim ended without a result, if its worker could not record one. */
const FUNCTION_DIED =
  'The function ended before its handler did: it crashed, ran out of memory, or was stopped at its timeout.';

/** The change that every claim makes. No claim changes the effects of earlier ones. */
function claimed(wanted: Wanted, { set, clear, ...more }: RowTransition): RowTransition {
  const { message, fence, leaseUntil, endsBy, claimedAt } = wanted;
  const { order, unplaced } = placeOf(message);
  const type = message.type ?? 'unknown';
  return {
    ...more,
    set: { status: 'PROCESSING', fence, leaseUntil, endsBy, claimedAt, type, order, ...set },
    clear: ['retryAt', 'outOfTime', ...clear, ...unplaced],
  };
}

/** The claim that a row shows. */
export function granted(wanted: Wanted, item: Item = {}, takenOver = false): ClaimResult {
  const { message, fence, leaseUntil, endsBy } = wanted;
  const row = asRow<ProcessingRow>(item);
  const { unfinished = 0, lastError, fingerprint: cause, pastAttempts, runAnyway } = row;
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
      runAnyway,
    },
  };
}

/** Returns a row's attempts; 0 if they cannot be read. */
function attemptsOf({ attempts }: ProcessingRow): number {
  return Number.isSafeInteger(attempts) ? attempts : 0;
}
