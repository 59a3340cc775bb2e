import type { Clock } from './clock.ts';
import { isTransactionCancelled, MailroomError } from './errors.ts';
import type { Envelope } from './event.ts';
import type { RandomBytes } from './event-id.ts';
import type { LeasedHandler, TransactionalContext, TransactionalHandler } from './handler.ts';
import type { Commit } from './outbox.ts';
import { backoffMs } from './retry.ts';

/** How often a transactional handler is run at once while its conditions are refused. */
const CONDITION_TRIES = 4;

/** With less time than this left, it is not run at once again. */
const TRY_MIN_MS = 2_000;

interface FreshReadDeps {
  readonly clock: Clock;
  readonly random: RandomBytes;
}

/**
 * Runs a handler and commits what it returns; again, on fresh reads, when only conditions (or conflicts) refused
 * the transaction.
 *
 * @throws what the last try threw
 */
export async function onFreshReads<T>(
  deps: FreshReadDeps & { readonly remainingMs: () => number },
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const again = isConditionRefused(error) && attempt < CONDITION_TRIES && deps.remainingMs() > TRY_MIN_MS;
      if (!again) throw error;
      await deps.clock.sleep(backoffMs(attempt, 20, 500, deps.random));
    }
  }
}

/** What the handler wants to be committed. @throws `NO_COMMIT` when it returns something else */
export async function commitOf(
  handler: TransactionalHandler,
  event: Envelope,
  ctx: TransactionalContext,
): Promise<Commit> {
  const commit: unknown = await handler.handle(event as never, ctx);
  if (typeof commit === 'object' && commit !== null) return commit;
  throw new MailroomError(
    'NO_COMMIT',
    `The handler of ${event.type} returned ${commit}; it must return { writes, events }`,
  );
}

/**
 * The handler as one that works under a claim. So it is run when its message comes again: a message that kills its
 * process leaves no trace without a claim, would never count an attempt, and would take its batch along.
 */
export function asLeased(handler: TransactionalHandler, deps: FreshReadDeps): LeasedHandler {
  return {
    kind: 'leased',
    definition: handler.definition,
    handle: async (event: Envelope, ctx) => {
      await onFreshReads({ ...deps, remainingMs: ctx.remainingMs }, async () =>
        ctx.commit(await commitOf(handler, event, ctx)),
      );
    },
  };
}

function isConditionRefused(error: unknown): boolean {
  if (!isTransactionCancelled(error)) return false;
  const codes = error.reasons.map((reason) => reason.code);
  return (
    codes.includes('ConditionalCheckFailed') &&
    codes.every(
      (code) => code === 'None' || code === 'ConditionalCheckFailed' || code === 'TransactionConflict',
    )
  );
}
