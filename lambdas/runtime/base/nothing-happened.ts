/** Marks errors after which nothing has happened, from any copy of this module. */
const NOTHING_HAPPENED = Symbol.for('cdk-mailroom.nothing-happened');

/**
 * Marks the error of a side effect as one after which nothing has happened: the provider refused the call, or was never reached. After
 * any other error of `ctx.once`, the effect may have happened: it is shown with its idempotency key, and an operator must ask the
 * provider before the message is discarded or resolved. Mark an error only if the provider says so; a timeout or a lost
 * connection does not.
 *
 * @param error - the error that the effect throws: any error, also a `PoisonMessage` or a `RetryLater`
 * @returns the same error
 *
 * @example
 * ```ts
 * await ctx.once('charge', async (idempotencyKey, signal) => {
 *   const response = await bank.charge({ amountCents, idempotencyKey }, signal);
 *   if (response.status === 422) throw nothingHappened(new PoisonMessage('the bank does not know this account'));
 *   return response.json();
 * });
 * ```
 */
export function nothingHappened<E extends Error>(error: E): E {
  return Object.defineProperty(error, NOTHING_HAPPENED, { value: true });
}

/** Returns true if an error was marked by {@link nothingHappened}. */
export function isNothingHappened(error: unknown): boolean {
  return error instanceof Error && (error as { [NOTHING_HAPPENED]?: boolean })[NOTHING_HAPPENED] === true;
}
