import { CLOCK_SKEW_MS } from '../base/clock.ts';
import type { ProcessingConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import { DAY_MS } from '../base/units.ts';
import { hasNoEffect } from '../inbox/started-effects.ts';
import { eventIdTime, isEventId } from '../store/event-id.ts';
import { isExternalEventId } from '../store/external-id.ts';
import type { ClaimedMessage, Received } from './consumer-context.ts';
import type { Handler } from './handler.ts';

/** The shortest time, milliseconds: a time in seconds is refused by it. */
const EXPIRES_IN_MIN_MS = 1_000;

/**
 * Returns the time from which a message waits, as the id of its event has it: when it was minted, shortly before its commit, or when a scheduled
 * event was due. An external event waits from its arrival in the queue. `undefined` if its source does not know that time, or its event could not be read.
 */
export function waitsSince({
  eventId,
  sentAt,
}: Pick<Received['delivery']['message'], 'eventId' | 'sentAt'>): number | undefined {
  if (isEventId(eventId)) return eventIdTime(eventId);
  return isExternalEventId(eventId) ? sentAt : undefined;
}

/**
 * Returns the time from which no attempt of a message starts, epoch milliseconds; `undefined` if its handler takes it however old. The worker's clock
 * decides, and may be ahead of the clock that wrote the time by the clock margin: none is stale too early.
 */
export function staleFrom(
  { expiresInMs }: Pick<Handler, 'expiresInMs'>,
  message: Parameters<typeof waitsSince>[0],
): number | undefined {
  const since = waitsSince(message);
  return expiresInMs === undefined || since === undefined ? undefined : since + expiresInMs + CLOCK_SKEW_MS;
}

/** Returns true if no attempt starts for a message that has no effect yet, and that no operator allowed. */
export function hasExpired({ clock, delivery }: Received, handler: Pick<Handler, 'expiresInMs'>): boolean {
  const from = staleFrom(handler, delivery.message);
  return from !== undefined && clock.now() > from;
}

/**
 * Returns true if a claimed message ends without a run. Invariant: no message is discarded as stale whose effect has happened, or may have. Its claim has
 * read the effects, only the holder of its fence starts another one, and the end is written under that fence. Nor one that an operator allowed to run.
 */
export function isStale(claimed: ClaimedMessage, handler: Pick<Handler, 'expiresInMs'>): boolean {
  return !claimed.claim.runAnyway && hasExpired(claimed, handler) && hasNoEffect(claimed.effects.before);
}

/**
 * Checks the times after which the messages of a consumer's handlers are stale.
 *
 * @throws `BAD_CONSUMER`, naming `expiresInMs`, if one cannot be used
 */
export function checkExpiry(handlers: readonly Handler[], config: ProcessingConfig): void {
  for (const handler of handlers) {
    const problem = handler.expiresInMs === undefined ? undefined : problemOf(handler, config);
    if (problem === undefined) continue;
    throw new MailroomError('BAD_CONSUMER', `The handler of ${handler.definition.type}: ${problem}`);
  }
}

function problemOf(
  { expiresInMs, rejected }: Handler,
  { inboxRetentionDays, order }: ProcessingConfig,
): string | undefined {
  if (rejected !== undefined)
    return 'expiresInMs cannot be combined with `rejected`: a stale message is discarded without it, so the event that waits for it would never be sent. Remove one of them, or compare the time in the handler, and commit the event there.';
  if (order?.mode === 'strict')
    return 'expiresInMs cannot be combined with a consumer of `order: strict`: the events behind a stale one would wait for it. Remove expiresInMs, or the order.';
  const longestMs = inboxRetentionDays * DAY_MS;
  const isTime = Number.isSafeInteger(expiresInMs) && Number(expiresInMs) >= EXPIRES_IN_MIN_MS;
  if (isTime && Number(expiresInMs) < longestMs) return undefined;
  const value = typeof expiresInMs === 'number' ? String(expiresInMs) : `of type ${typeof expiresInMs}`;
  return `expiresInMs is ${value}; it must be a whole number from ${EXPIRES_IN_MIN_MS} to less than ${longestMs}, the inbox retention of ${inboxRetentionDays} days: an older message is rejected as EVENT_TOO_OLD.`;
}
