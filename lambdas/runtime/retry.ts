import type { Clock } from './clock.ts';
import { errorCode, isTransactionCancelled, type TransactionCancelled } from './errors.ts';
import { mintToken, type RandomBytes } from './event-id.ts';
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

/** How often a transaction that met another one is tried again at once. */
const CONFLICT_TRIES = 6;

/** How often a call whose answer is lost is made, beside the SDK's own retries. */
const LOST_ANSWER_TRIES = 2;

/**
 * Makes a transaction, and makes it again where that is safe and useful: at once with jitter when it only met
 * another transaction (normal on a hot row), and when its answer was lost. Every try carries the same token, so it
 * happens once, also when an earlier try was only late. A transaction of which any action was refused, or throttled,
 * is for the caller to judge; but once an answer was lost, a refusal proves nothing, and the loss is what is thrown.
 *
 * @throws {@link TransactionCancelled} when a condition was not met or the table throttled: nothing was written
 * @throws any other error when it is open whether it was
 */
export async function transactWithRetry(
  deps: { readonly table: Table; readonly clock: Clock; readonly random: RandomBytes },
  actions: readonly TransactAction[],
): Promise<void> {
  const { table, clock, random } = deps;
  const token = mintToken(random);
  const lost: unknown[] = [];
  for (let conflicts = 0; ; ) {
    try {
      await table.transact(actions, token);
      return;
    } catch (error) {
      const conflict = isTransactionCancelled(error) ? isConflictOnly(error) : isConflict(error);
      if (conflict) conflicts += 1;
      else if (isTransactionCancelled(error)) throw lost[0] ?? error;
      else if (mayHaveHappened(error)) lost.push(error);
      else throw lost[0] ?? error;
      if (conflicts >= CONFLICT_TRIES || lost.length >= LOST_ANSWER_TRIES) throw lost[0] ?? error;
      await clock.sleep(backoffMs(conflicts + lost.length, 25, 400, random));
    }
  }
}

/** Whether every action that was not fine only met another transaction. */
function isConflictOnly(error: TransactionCancelled): boolean {
  const codes = error.reasons.map((reason) => reason.code);
  return (
    codes.includes('TransactionConflict') &&
    codes.every((code) => code === 'None' || code === 'TransactionConflict')
  );
}

function isConflict(error: unknown): boolean {
  return errorCode(error) === 'TransactionConflictException';
}

/** Errors after which the server has certainly done nothing: it answered, and it refused the request. */
const CERTAINLY_REFUSED =
  /^(ValidationException|AccessDenied\w*|UnrecognizedClient\w*|ExpiredToken\w*|ResourceNotFound\w*|IdempotentParameterMismatch\w*|\w*Throttl\w*|ProvisionedThroughputExceeded\w*|RequestLimitExceeded)$/;

/** Whether a call that failed like this may have happened all the same: a time-out, a lost connection, a 5xx. */
function mayHaveHappened(error: unknown): boolean {
  return !CERTAINLY_REFUSED.test(errorCode(error));
}
