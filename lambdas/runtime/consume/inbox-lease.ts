import { errorMessage, fingerprint } from '../errors.ts';
import type { Inbox } from './inbox.ts';
import { fenceLost, type InboxDeps, type InboxRows } from './inbox-row.ts';

/** Makes what a claim does with its lease: keep it (PROCESSING), or let go of the message (FAILED). */
export function createLeasing(
  { clock, consumer, leaseMs }: InboxDeps,
  rows: InboxRows,
): Pick<Inbox, 'renew' | 'fail' | 'release'> {
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
        'SET #status = :FAILED, lastError = :lastError, fingerprint = :fingerprint, retryAt = :retryAt ' +
          'REMOVE leaseUntil, endsBy',
        {
          ':FAILED': 'FAILED',
          ':retryAt': retryAt,
          ':lastError': errorMessage(error),
          ':fingerprint': `${consumer} ${fingerprint(error)}`,
        },
        (row) => row.status === 'FAILED',
      ),
    release: (current, retryAt) =>
      rows.underFence(
        current,
        'SET #status = :FAILED, attempts = attempts - :one, retryAt = :retryAt REMOVE leaseUntil, endsBy',
        { ':FAILED': 'FAILED', ':one': 1, ':retryAt': retryAt },
        (row) => row.status === 'FAILED',
      ),
  };
}
