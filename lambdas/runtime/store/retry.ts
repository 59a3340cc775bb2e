import { type Clock, systemClock } from '../clock.ts';
import { errorCode, isMailroomError, type TransactionCancelled } from '../errors.ts';
import { mintToken, type RandomBytes, systemRandomBytes } from './event-id.ts';
import type { Table, TransactAction } from './table.ts';

/**
 * How long to wait before the next try: exponential with full jitter, so that many who failed together do not
 * come back together.
 *
 * @param attempt - the attempt that failed, from 1
 * @returns milliseconds from `baseMs` / 2 to `capMs`
 */
export function backoffMs(attempt: number, baseMs: number, capMs: number, random: RandomBytes): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(ceiling / 2 + (ceiling / 2) * fraction(random));
}

/** A random number from 0 to just below 1, for jitter. */
export function fraction(random: RandomBytes): number {
  return (random(1)[0] ?? 0) / 256;
}

/** How a try failed that may be followed by another one: how many tries that allows in all, and the pause before the next. */
const RETRIES = {
  /** It met another transaction: normal on a hot row, and over in milliseconds. */
  conflict: { tries: 6, baseMs: 25, capMs: 400 },
  /** It was turned away before it was looked at, mostly by a throttle. Tries and pauses are those of the SDK for a throttle. */
  unread: { tries: 3, baseMs: 500, capMs: 1_000 },
  /** It may have happened: a time-out, a lost connection, a 5xx, or a try under this token that is still in progress. */
  lost: { tries: 3, baseMs: 100, capMs: 400 },
} as const;

/** The parts that a transaction needs. */
export interface TransactDeps {
  readonly table: Table;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
}

/**
 * Makes a transaction, and makes it again where that is safe and useful: when it only met another transaction, when it was
 * throttled, and when its answer was lost. The table sends each try once, so every decision to try again is made here. Every
 * try carries the same token, so the transaction happens once, also when an earlier try was only late. A transaction of which
 * any action was refused, or throttled, is for the caller to judge; but once an answer was lost, a refusal proves nothing, and
 * the loss is what is thrown.
 *
 * @throws {@link TransactionCancelled} when a condition was not met or an action was throttled: nothing was written
 * @throws any other error when the request was refused as a whole, or when it is unknown whether it was written
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
 * Makes a transaction whose first action carries its condition.
 *
 * @returns `false` when that condition was not met: nothing was written
 * @throws whatever else {@link transactWithRetry} throws
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

/** Whether a transaction was cancelled because the condition of its first action was not met. */
export function isRefused(error: unknown): boolean {
  return (
    isMailroomError(error, 'TRANSACTION_CANCELLED') && error.reasons[0]?.code === 'ConditionalCheckFailed'
  );
}

/** The server turned the request away unread. A wrong signature is one of a wrong clock, which the SDK has corrected by now. */
const UNREAD = /^(\w*Throttl\w*|ProvisionedThroughputExceeded\w*|RequestLimitExceeded|InvalidSignature\w*)$/;

/** Nothing was done, and trying again does not help: the server refused the request, or the table did not send it. */
const REFUSED =
  /^(ValidationException|AccessDenied\w*|UnrecognizedClient\w*|ExpiredToken\w*|ResourceNotFound\w*|IdempotentParameterMismatch\w*|BAD_\w+)$/;

function failureOf(error: unknown): keyof typeof RETRIES | 'refused' {
  if (isMailroomError(error, 'TRANSACTION_CANCELLED')) return isConflictOnly(error) ? 'conflict' : 'refused';
  const code = errorCode(error);
  if (code === 'TransactionConflictException') return 'conflict';
  if (UNREAD.test(code)) return 'unread';
  return REFUSED.test(code) ? 'refused' : 'lost';
}

/** Whether every action that was not fine only met another transaction. */
function isConflictOnly(error: TransactionCancelled): boolean {
  const codes = error.reasons.map((reason) => reason.code);
  return (
    codes.includes('TransactionConflict') &&
    codes.every((code) => code === 'None' || code === 'TransactionConflict')
  );
}
