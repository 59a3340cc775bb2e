import { systemClock } from '../base/clock.ts';
import { MailroomError, PoisonMessage, RetryLater } from '../base/errors.ts';
import { nothingHappened } from '../base/nothing-happened.ts';
import { DELAY_MAX_MS } from '../base/retry-schedule.ts';

/** The part of a provider's response that {@link throwForStatus} reads: a `Response` of `fetch`, or that of another HTTP client. */
export interface ProviderResponse {
  readonly status: number;
  /** A `Headers` object, or values by name in any case. Only `Retry-After` is read. */
  readonly headers?:
    | { readonly get: (name: string) => string | null }
    | Readonly<Record<string, unknown>>
    | undefined;
}

/**
 * Turns the status of a provider's HTTP response into the outcome of the message: returns if the provider has done its work, and throws
 * otherwise. Call it in an effect of `ctx.once`, before you read the body.
 *
 * | status | outcome | the effect |
 * | --- | --- | --- |
 * | 2xx | returns `'done'` | |
 * | 409 | retried: an earlier call under this key may be in progress | may have happened |
 * | 409 without `Retry-After`, with the option `conflictIsDone` | returns `'already-done'`: there may be no result in the body | |
 * | 405, 411, 413, 414, 415, 417, 431 | rejected (`PoisonMessage`): the provider does not accept such a request | has not happened |
 * | any other 4xx: 400, 404, 422, … | rejected (`PoisonMessage`) | may have happened: many providers answer so, too, if the idempotency key was used with another payload |
 * | 401, 403, 407, 408, 421, 423, 424, 425, 429 | retried: a credential, a limit or a lock can change | may have happened in an earlier call |
 * | 5xx, and 1xx and 3xx | retried | may have happened |
 *
 * Retries follow the consumer's `retry` schedule. A `Retry-After` replaces its delay (`RetryLater`, 30 seconds to 11 hours), and such a
 * wait counts no attempt for a day.
 *
 * If your provider uses a status in another sense, check that status first, such as 422 for a declined card. If it proves that nothing
 * happened, mark the error with `nothingHappened`.
 *
 * @param response - a response of `fetch`, or its `status` and `headers`
 * @param provider - the subject of the error's message; the message contains nothing of the response but its status
 * @param options.conflictIsDone - the provider answers 409 only if it has completed the work of an earlier call. Most answer so while that call
 * runs, too; then the work could be recorded although it fails. @default false
 * @throws `PoisonMessage`, `RetryLater` or an `Error`, as the table says
 * @throws `BAD_ARGUMENT` if `status` is not a whole number from 100 to 599
 *
 * @example
 * ```ts
 * const { chargeId } = await ctx.once('charge', async (idempotencyKey, signal) => {
 *   const headers = { 'Idempotency-Key': idempotencyKey };
 *   const response = await fetch(url, { method: 'POST', headers, body, signal });
 *   throwForStatus(response, 'The bank');
 *   return response.json();
 * });
 * ```
 */
export function throwForStatus(
  { status, headers }: ProviderResponse,
  provider = 'The provider',
  { conflictIsDone = false }: { readonly conflictIsDone?: boolean | undefined } = {},
): 'done' | 'already-done' {
  if (!(Number.isInteger(status) && status >= 100 && status <= 599)) {
    const message = `throwForStatus received the status ${status}; allowed: a whole number from 100 to 599. Pass a response of fetch, or { status, headers }.`;
    throw new MailroomError('BAD_ARGUMENT', message);
  }
  if (status >= 200 && status <= 299) return 'done';
  const retryAfter = headerOf(headers, 'retry-after');
  if (status === 409 && conflictIsDone && retryAfter === undefined) return 'already-done';

  const message = `${provider} answered ${status}.`;
  if (UNACCEPTABLE.includes(status)) throw nothingHappened(new PoisonMessage(message));
  if (status >= 400 && status <= 499 && !REPEATABLE.includes(status)) throw new PoisonMessage(message);
  const afterMs = delayMs(retryAfter);
  if (afterMs > 0)
    throw new RetryLater(Math.min(Math.max(afterMs, RETRY_AFTER_MIN_MS), DELAY_MAX_MS), message);
  throw new Error(message);
}

/** The form of the request is refused, before its key and its content matter. */
const UNACCEPTABLE = [405, 411, 413, 414, 415, 417, 431];

/** Client errors after which the same request may succeed. */
const REPEATABLE = [401, 403, 407, 408, 409, 421, 423, 424, 425, 429];

/** A shorter wait is extended to this: each uses up a receive of the message. */
const RETRY_AFTER_MIN_MS = 30_000;

function headerOf(headers: ProviderResponse['headers'], name: string): string | undefined {
  if (typeof headers?.get === 'function') return headers.get(name) ?? undefined;
  const [, value] = Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name) ?? [];
  return value === undefined || value === null ? undefined : String(value);
}

/** Reads `Retry-After`, which is a number of seconds or a date. @returns `NaN` if it is neither */
function delayMs(retryAfter = ''): number {
  return /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - systemClock.now();
}
