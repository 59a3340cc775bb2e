import type { Inbox } from '../consume/inbox-port.ts';
import type { Claim } from '../inbox/inbox.ts';
import { ALONE_FROM } from '../inbox/inbox-conditions.ts';
import { releasedAttempt } from '../inbox/inbox-failure.ts';
import { attemptCause, rowCause } from '../inbox/inbox-writes.ts';
import { underFence } from './postgres-inbox-claim.ts';
import { inMs, type PostgresInboxContext } from './postgres-inbox-row.ts';

const RELEASED = `status = 'FAILED', retry_at = ${inMs('$4::float8')}, lease_until = NULL, ends_by = NULL, out_of_time = false`;

const CAUSE = 'last_error = $5::text, fingerprint = $6::text, past_attempts = $7::text';

/** The transitions of a message whose handler did not end its work, as in DynamoDB. */
export function failures<Tx>(
  ctx: PostgresInboxContext<Tx>,
): Pick<Inbox, 'fail' | 'release' | 'cutOff' | 'markOutOfTime'> {
  const { rules } = ctx;
  const inFuture = (at: number) => at - rules.clock.now();
  const caused = (held: Claim, end: Parameters<typeof attemptCause>[2]) => {
    const { lastError, fingerprint, pastAttempts } = attemptCause(rules, held, end);
    return [lastError, fingerprint, JSON.stringify(pastAttempts)];
  };
  const isFailed = (row: { readonly status: string }) => row.status === 'FAILED';

  return {
    fail: (held, error, retryAt, effects) =>
      underFence(
        ctx,
        held,
        `${RELEASED}, ${CAUSE}, unfinished = 0`,
        [inFuture(retryAt), ...caused(held, { ended: 'failed', error, effects })],
        isFailed,
      ),
    release: (held, retryAt, effects, cause, wait) => {
      const { lastError, fingerprint } = cause === undefined ? {} : rowCause(rules, cause);
      const past = releasedAttempt(rules, held, effects, cause, wait);
      return underFence(
        ctx,
        held,
        `${RELEASED}, attempts = attempts - 1, last_error = coalesce($5::text, last_error),
          fingerprint = coalesce($6::text, fingerprint), past_attempts = coalesce($7::text, past_attempts)`,
        [
          inFuture(retryAt),
          lastError ?? null,
          fingerprint ?? null,
          past === undefined ? null : JSON.stringify(past.pastAttempts),
        ],
        isFailed,
      );
    },
    cutOff: (held, error, retryAt, effects) =>
      underFence(
        ctx,
        held,
        `${RELEASED}, ${CAUSE}, unfinished = $8::int, attempts = attempts - $9::int`,
        [
          inFuture(retryAt),
          ...caused(held, { ended: 'failed', error, effects }),
          held.unfinished + 1,
          held.unfinished >= ALONE_FROM ? 0 : 1,
        ],
        isFailed,
      ),
    markOutOfTime: (held, error, lostTimeToTable) => {
      const { lastError, fingerprint } = rowCause(rules, error);
      return underFence(
        ctx,
        held,
        `out_of_time = true, last_error = $4::text, fingerprint = $5::text,
          unfinished = CASE WHEN $6::boolean THEN 0 ELSE unfinished END`,
        [lastError, fingerprint, lostTimeToTable],
        (row) => row.status === 'PROCESSING' && row.outOfTime === true,
      );
    },
  };
}
