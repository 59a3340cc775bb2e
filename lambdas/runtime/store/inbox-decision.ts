import type { InboxAccess } from './inbox.ts';
import { FINAL_REMOVES } from './inbox-completion.ts';
import { TOO_OLD } from './inbox-conditions.ts';
import { transactRow } from './inbox-writes.ts';
import type { RowChange, RowCondition } from './row-update.ts';
import { expiresAt, type InboxRow, rejectedKey, SCHEMA } from './rows.ts';

/** What an operator decides about a message. */
export interface Decided {
  readonly eventId: string;
  readonly by: string;
  readonly reason: string;
}

/** The final status that an operator gives a message, and how long its row is kept before TTL may delete it. */
export interface FinalDecision extends Decided {
  readonly status: 'PROCESSED' | 'DISCARDED';
  readonly inboxRetentionDays: number;
  /** A token of the decision: a worker that still runs can write nothing any more. */
  readonly fence: string;
}

/**
 * Whatever it is -> PROCESSED or DISCARDED without being run, and the REJECTED pointer out, in one transaction.
 *
 * @param condition - which row may be taken: {@link asSeen}, or by force {@link NOT_FINAL}
 * @returns whether it happened
 */
export async function decideMessage(
  inbox: InboxAccess,
  decision: FinalDecision,
  condition: RowCondition,
): Promise<boolean> {
  const { eventId, status, fence, by, reason, inboxRetentionDays } = decision;
  const now = inbox.clock.now();
  const change: RowChange = {
    set: {
      status,
      schema: SCHEMA,
      fence,
      expiresAt: expiresAt(now, inboxRetentionDays),
      ...(status === 'PROCESSED'
        ? { processedAt: now, resolvedBy: by, resolvedReason: reason }
        : { discardedAt: now, discardedBy: by, discardedReason: reason }),
    },
    computed: { attempts: 'if_not_exists(attempts, :none)' },
    values: { ':none': 0 },
    remove: FINAL_REMOVES,
  };
  const { ok } = await transactRow(inbox, eventId, change, condition, [
    { Delete: { Key: { ...rejectedKey(inbox.consumer, eventId) } } },
  ]);
  return ok;
}

/** Whoever holds it, unless it is final, or a newer version wrote it. */
export const NOT_FINAL: RowCondition = {
  condition:
    'attribute_not_exists(PK) OR ' +
    '((attribute_not_exists(#schema) OR #schema <= :schema) AND NOT (#status IN (:PROCESSED, :DISCARDED)))',
  values: { ':PROCESSED': 'PROCESSED', ':DISCARDED': 'DISCARDED' },
};

/** The row is still the one that was seen. */
export function asSeen(row: InboxRow | undefined): RowCondition {
  if (row === undefined) return { condition: 'attribute_not_exists(PK)', values: {} };
  const { status, fence, leaseUntil } = row;
  return {
    condition: [
      '#status = :seenStatus',
      fence === '' ? 'attribute_not_exists(fence)' : 'fence = :seenFence',
      leaseUntil === undefined ? 'attribute_not_exists(leaseUntil)' : 'leaseUntil = :seenLeaseUntil',
    ].join(' AND '),
    values: {
      ':seenStatus': status,
      ...(fence === '' ? {} : { ':seenFence': fence }),
      ...(leaseUntil === undefined ? {} : { ':seenLeaseUntil': leaseUntil }),
    },
  };
}

/**
 * Lets a message run that was rejected because its event is older than the inbox retention.
 *
 * @returns whether it happened: `false` when it was not rejected for that
 */
export async function allowMessage(inbox: InboxAccess, { eventId, by, reason }: Decided): Promise<boolean> {
  const change = {
    set: { runAnyway: true, allowedBy: by, allowedAt: inbox.clock.now(), allowedReason: reason },
  };
  const tooOld = {
    condition: '#status = :REJECTED AND reason = :TOO_OLD',
    values: { ':REJECTED': 'REJECTED', ':TOO_OLD': TOO_OLD },
  };
  const { ok } = await transactRow(inbox, eventId, change, tooOld, []);
  return ok;
}
