import { CLOCK_SKEW_MS } from '../../lambdas/runtime/clock.ts';
import { asRow, type EffectRow, INBOX_PREFIX, type InboxRow } from '../../lambdas/runtime/store/rows.ts';
import type { Change } from './past-items.ts';

/**
 * What may never happen to an inbox row, whoever does it and whenever: one sentence when it did.
 *
 * @param actorIndex - whose call it was; the first byte of a fence says whose the fence is
 * @param now - the true time, epoch milliseconds
 * @param mayForce - whether an operator may settle a message while somebody holds it
 */
export function inboxViolation(
  { key, before: beforeItem, after: afterItem }: Change,
  actorIndex: number,
  now: number,
  mayForce: boolean,
): string | undefined {
  if (!key.PK.startsWith(INBOX_PREFIX) || afterItem === undefined) {
    return key.PK.startsWith(INBOX_PREFIX) && beforeItem !== undefined
      ? 'An inbox row was deleted'
      : undefined;
  }
  if (key.SK !== 'MESSAGE') {
    const effect = asRow<EffectRow>(afterItem);
    const was = beforeItem && asRow<EffectRow>(beforeItem);
    if (was?.status === 'COMPLETED' && effect.status !== 'COMPLETED')
      return 'An effect whose result is stored was opened again';
    const finished = was !== undefined && was.fence === effect.fence && was.status !== effect.status;
    return finished && fenceOwner(effect.fence) !== actorIndex
      ? 'A worker finished the effect of another one'
      : undefined;
  }
  const after = asRow<InboxRow>(afterItem);
  const before = beforeItem && asRow<InboxRow>(beforeItem);
  if (before !== undefined && isSettled(before) && after.status !== before.status)
    return `A ${before.status.toLowerCase()} message became ${after.status}`;
  if (after.expiresAt !== undefined && !isSettled(after))
    return `TTL may delete a message that is ${after.status}`;
  if (before?.status !== 'PROCESSING') return undefined;
  if (before.fence === after.fence) {
    const same = before.status === after.status && before.leaseUntil === after.leaseUntil;
    return same || fenceOwner(before.fence) === actorIndex
      ? undefined
      : `A worker changed a message that another one holds: ${before.status} to ${after.status}`;
  }
  const forced = mayForce && after.resolvedBy !== undefined;
  return !forced && (before.leaseUntil ?? 0) > now + CLOCK_SKEW_MS
    ? 'A message was taken over while its lease lasts'
    : undefined;
}

/** Whether nothing may ever change that again. */
function isSettled({ status }: InboxRow): boolean {
  return status === 'PROCESSED' || status === 'DISCARDED';
}

/** Whose token it is. */
function fenceOwner(fence: string): number {
  return Number.parseInt(fence.slice(0, 2), 16);
}
