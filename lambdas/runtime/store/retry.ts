import { type AwsFault, awsFault } from '../base/aws-errors.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { errorCode, isMailroomError, type TransactionCancelled } from '../base/errors.ts';
import { backoffMs } from './backoff.ts';
import { mintToken, type RandomBytes, systemRandomBytes } from './event-id.ts';
import type { Item, Table, TransactAction } from './table.ts';

/** The kinds of failure that allow a retry, with the maximum number of tries and the pause before the next. */
const RETRIES = {
  /** A conflict with another transaction: normal on a hot row, and over within milliseconds. */
  conflict: { tries: 6, baseMs: 25, capMs: 400 },
  /** Refused before it was processed, mostly by throttling. The tries and pauses are the SDK's for throttling. */
  unread: { tries: 3, baseMs: 500, capMs: 1_000 },
  /** The outcome is unknown: a timeout, a lost connection, a 5xx, or a try with this token that is still in progress. */
  lost: { tries: 3, baseMs: 100, capMs: 400 },
} as const;

/** Dependencies of a transaction. */
export interface TransactDeps {
  readonly table: Table;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
}

/**
 * Makes a transaction, and retries it where that is safe and useful: after a conflict with another transaction, throttling, or a
 * lost response. The table sends each try once, so this function makes every decision to retry. All tries carry the same token,
 * so the transaction happens once even if an earlier try was only late. If any action was refused or throttled, the caller
 * decides what to do. After a lost response, however, a refusal proves nothing, and the error of the lost response is thrown.
 *
 * @throws {@link TransactionCancelled} if a condition failed or an action was throttled: nothing was written
 * @throws any other error if the request was refused as a whole, or if it is unknown whether it was written
 */
export async function transactWithRetry(
  deps: TransactDeps,
  actions: readonly TransactAction[],
): Promise<void> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const token = mintToken(random);
  const failures = { conflict: 0, unread: 0, lost: 0 };
  let loss: { readonly error: unknown } | undefined;
  for (;;) {
    try {
      await table.transact(actions, token);
      return;
    } catch (error) {
      const kind = failureOf(error);
      if (kind === 'lost') loss ??= { error };
      if (kind === 'refused') throw (loss ?? { error }).error;
      failures[kind] += 1;
      const { tries, baseMs, capMs } = RETRIES[kind];
      if (failures[kind] >= tries) throw (loss ?? { error }).error;
      await clock.sleep(backoffMs(failures[kind], baseMs, capMs, random));
    }
  }
}

/**
 * Makes one write, and retries it after a conflict with a transaction: a try that conflicted has changed nothing.
 *
 * @returns the item after an update
 */
export async function writeWithRetry(deps: TransactDeps, write: TransactAction): Promise<Item | undefined> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const { tries, baseMs, capMs } = RETRIES.conflict;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await table.write(write);
    } catch (error) {
      if (failureOf(error) !== 'conflict' || attempt >= tries) throw error;
      await clock.sleep(backoffMs(attempt, baseMs, capMs, random));
    }
  }
}

/**
 * Makes a transaction whose first action carries its condition.
 *
 * @returns `false` if that condition failed: nothing was written
 * @throws any other error of {@link transactWithRetry}
 */
export async function happens(deps: TransactDeps, actions: readonly TransactAction[]): Promise<boolean> {
  try {
    await transactWithRetry(deps, actions);
    return true;
  } catch (error) {
    if (isRefused(error)) return false;
    throw error;
  }
}

/** Returns true if a transaction was cancelled because the condition of its first action failed. */
export function isRefused(error: unknown): boolean {
  return (
    isMailroomError(error, 'TRANSACTION_CANCELLED') && error.reasons[0]?.code === 'ConditionalCheckFailed'
  );
}

/** Refused before processing. A wrong signature comes from a wrong clock, which the SDK has corrected by now. */
const UNREAD: ReadonlySet<AwsFault | undefined> = new Set(['throttled', 'signature']);

/** Nothing was written, and a retry cannot succeed: the server refused the request, or the table did not send it. */
const REFUSED: ReadonlySet<AwsFault | undefined> = new Set([
  'denied',
  'unknown-identity',
  'expired',
  'missing',
]);

/** The same, of requests that are invalid. */
const INVALID = /^(ValidationException|IdempotentParameterMismatch\w*|BAD_\w+)$/;

/** Returns true if an error of the table proves that nothing was written. */
export function wroteNothing(error: unknown): boolean {
  return failureOf(error) === 'refused';
}

function failureOf(error: unknown): keyof typeof RETRIES | 'refused' {
  if (isMailroomError(error, 'TRANSACTION_CANCELLED')) return isConflictOnly(error) ? 'conflict' : 'refused';
  const code = errorCode(error);
  if (code === 'TransactionConflictException') return 'conflict';
  const fault = awsFault(code);
  if (UNREAD.has(fault)) return 'unread';
  return REFUSED.has(fault) || INVALID.test(code) ? 'refused' : 'lost';
}

/** Returns true if every failed action only conflicted with another transaction. */
function isConflictOnly(error: TransactionCancelled): boolean {
  const codes = error.reasons.map((reason) => reason.code);
  return (
    codes.includes('TransactionConflict') &&
    codes.every((code) => code === 'None' || code === 'TransactionConflict')
  );
}
