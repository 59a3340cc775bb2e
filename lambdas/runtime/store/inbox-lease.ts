import { storedCause } from '../redaction.ts';
import type { Inbox } from './inbox.ts';
import { ALONE_FROM } from './inbox-conditions.ts';
import { fenceLost, type InboxDeps, type InboxRows } from './inbox-row.ts';

/** Makes what a claim does with its lease: keep it (PROCESSING), or let go of the message (FAILED). */
export function createLeasing(
  { clock, consumer, leaseMs, redact }: InboxDeps,
  rows: InboxRows,
): Pick<Inbox, 'renew' | 'fail' | 'release' | 'cutOff' | 'markOutOfTime'> {
  const isFailed = (row: { readonly status: string }) => row.status === 'FAILED';
  const cause = (error: unknown) => {
    const { lastError, fingerprint } = storedCause(error, redact);
    return { ':lastError': lastError, ':fingerprint': `${consumer} ${fingerprint}` };
  };

  return {
    renew: async (current) => {
      const leaseUntil = Math.min(clock.now() + leaseMs, current.endsBy);
      const refusal = await rows.underFence(
        current,
        'SET leaseUntil = :leaseUntil',
        { ':leaseUntil': leaseUntil },
        (row) => row.status === 'PROCESSING',
      );
      if (refusal !== undefined) throw fenceLost(current, refusal);
      return { ...current, leaseUntil };
    },
    fail: (current, error, retryAt) =>
      rows.underFence(
        current,
        `${FAILED}, ${CAUSE} REMOVE leaseUntil, endsBy, unfinished, outOfTime`,
        { ':FAILED': 'FAILED', ':retryAt': retryAt, ...cause(error) },
        isFailed,
      ),
    // How many claims ended without a result stays: a message that kills its process must not hide behind a release.
    release: (current, retryAt, error) =>
      rows.underFence(
        current,
        `${FAILED}, attempts = attempts - :one${error === undefined ? '' : `, ${CAUSE}`} REMOVE leaseUntil, endsBy, outOfTime`,
        {
          ':FAILED': 'FAILED',
          ':retryAt': retryAt,
          ':one': 1,
          ...(error === undefined ? {} : cause(error)),
        },
        isFailed,
      ),
    cutOff: (current, error, retryAt) =>
      rows.underFence(
        current,
        `${FAILED}, ${CAUSE}, unfinished = :unfinished, attempts = attempts - :uncounted REMOVE leaseUntil, endsBy, outOfTime`,
        {
          ':FAILED': 'FAILED',
          ':retryAt': retryAt,
          ':unfinished': current.unfinished + 1,
          ':uncounted': current.unfinished >= ALONE_FROM ? 0 : 1,
          ...cause(error),
        },
        isFailed,
      ),
    markOutOfTime: (current, error, robbed) =>
      rows.underFence(
        current,
        `SET outOfTime = :true, ${CAUSE}${robbed ? ' REMOVE unfinished' : ''}`,
        { ':true': true, ...cause(error) },
        (row) => row.outOfTime === true,
      ),
  };
}

const FAILED = 'SET #status = :FAILED, retryAt = :retryAt';
const CAUSE = 'lastError = :lastError, fingerprint = :fingerprint';
