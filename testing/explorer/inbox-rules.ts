import { isDeepStrictEqual } from 'node:util';
import { CLOCK_SKEW_MS } from '../../lambdas/runtime/base/clock.ts';
import { isUnreadableId } from '../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { INBOX_PREFIX, LAST_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { asRow } from '../../lambdas/runtime/store/row-schema.ts';
import type { Change } from './past-items.ts';

/**
 * The invariants of an inbox row, which hold for every writer at all times. Those of a handler are in `observed-handler.ts`, of TTL in `expiry.ts`. Returns a sentence if one is violated.
 *
 * @param actorIndex - the caller; the first byte of a fencing token identifies its owner
 * @param now - the true time in epoch milliseconds
 * @param mayForce - allows an operator to settle a message that a worker holds
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
  const after = asRow<InboxRow>(afterItem);
  const before = beforeItem && asRow<InboxRow>(beforeItem);
  const wrong = before && effectViolation(before, after, actorIndex);
  if (wrong !== undefined) return wrong;
  if (before !== undefined && isSettled(before) && after.status !== before.status)
    return `A ${before.status.toLowerCase()} message became ${after.status}`;
  if (afterItem.expiresAt !== undefined && !mayExpire(after))
    return `TTL may delete a message that is ${after.status}`;
  if (before?.status !== 'PROCESSING') return before && attemptViolation(before, after);
  if (before.fence === after.fence) {
    const same = after.status === 'PROCESSING' && before.leaseUntil === after.leaseUntil;
    return same || fenceOwner(before.fence) === actorIndex
      ? attemptViolation(before, after)
      : `A worker changed a message that another worker holds: ${before.status} to ${after.status}`;
  }
  const forced = mayForce && after.status === 'PROCESSED' && after.resolvedBy !== undefined;
  return !forced && (before.leaseUntil ?? 0) > now + CLOCK_SKEW_MS
    ? 'A message was taken over while its lease was valid'
    : attemptViolation(before, after);
}

/** The last applied sequence of an aggregate only increases: for every writer, at all times. */
export function lastViolation({ key, before, after }: Change): string | undefined {
  if (!key.PK.startsWith(LAST_PREFIX)) return undefined;
  if (after === undefined) return before && 'A last sequence was deleted';
  return Number(after.last) > Number(before?.last ?? 0) || isDeepStrictEqual(before, after)
    ? undefined
    : `A last sequence went from ${String(before?.last)} to ${String(after.last)}`;
}

function effectViolation(before: InboxRow, after: InboxRow, actorIndex: number): string | undefined {
  for (const [name, effect] of Object.entries(after.effects ?? {})) {
    const was = before.effects?.[name];
    const running = was?.status === 'IN_PROGRESS' && was.fence === effect.fence && was.run === effect.run;
    const started = effect.status === 'IN_PROGRESS' && !running;
    if (started && (after.status !== 'PROCESSING' || after.fence !== effect.fence))
      return 'An effect was started by a worker that does not hold the message';
  }
  for (const [name, was] of Object.entries(before.effects ?? {})) {
    const effect = after.effects?.[name];
    if (effect === undefined) return `The effect "${name}" was forgotten`;
    if (was.status === 'COMPLETED' && !isDeepStrictEqual(effect, was))
      return 'An effect whose result is stored was changed';
    const same = was.fence === effect.fence;
    if (same && was.status === 'RELEASED' && effect.status !== 'RELEASED' && effect.run <= was.run)
      return 'An effect that its call had released was started again by the same call';
    const finished = same && was.status !== effect.status;
    if (finished && fenceOwner(effect.fence) !== actorIndex)
      return 'A worker finished the effect of another worker';
  }
  return undefined;
}

/** Finds a past attempt, or an effect that one ran, that a change forgets. */
function attemptViolation(before: InboxRow, after: InboxRow): string | undefined {
  const { pastAttempts: attempts = [] } = after;
  const last = before.pastAttempts?.at(-1);
  const known = last === undefined ? -1 : attempts.findIndex((attempt) => isDeepStrictEqual(attempt, last));
  const isExtended = (attempts.at(-1)?.wait?.times ?? 0) === (last?.wait?.times ?? Number.NaN) + 1;
  if (last !== undefined && known < 0 && !isExtended) return 'A past attempt was forgotten';
  const isHeld = after.status === 'PROCESSING' && before.fence === after.fence;
  if (before.status !== 'PROCESSING' || isHeld || isSettled(after)) return undefined;
  const recorded = attempts.slice(known + 1).flatMap(({ effects = {} }) => Object.keys(effects));
  for (const [name, { fence }] of Object.entries(before.effects ?? {})) {
    if (fence === before.fence && !recorded.includes(name))
      return `An attempt ended that ran the effect "${name}", and is not among the past attempts`;
  }
  return undefined;
}

/** Returns true if TTL may delete a row: nothing may change it, or its event could not be read, so no handler runs under its id. */
export function mayExpire(row: InboxRow): boolean {
  return isSettled(row) || isUnreadableId(row.PK.slice(row.PK.lastIndexOf('#') + 1));
}

/** Returns true if no later change is allowed, except TTL's deletion. */
function isSettled({ status }: InboxRow): boolean {
  return status === 'PROCESSED' || status === 'DISCARDED';
}

/** The owner of a token. */
function fenceOwner(fence: string): number {
  return Number.parseInt(fence.slice(0, 2), 16);
}
