import { MailroomError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/units.ts';
import { PUT_EVENTS_BYTES_MAX } from '../bus/event-bus.ts';
import type { BusBreaker } from './bus-breaker.ts';
import type { ClaimedEvent, DatabaseTransitions } from './database-transitions.ts';
import type { DeclaredSources } from './declared-sources.ts';
import { type PublishContext, type PublishOutcome, publishEvents, withOutcome } from './publish-events.ts';

/** Events that the bus did not accept, or whose source it refuses, are due again after at most this time, milliseconds. */
const BUS_BACKOFF_MS = 10_000;

/** Events of an undeclared source are looked at again after at most this time, milliseconds: by then it may be declared. */
const UNDECLARED_WAIT_MS = 5 * MINUTE_MS;

/** Dependencies of {@link publishGroup}. */
export interface GroupContext extends PublishContext<ClaimedEvent> {
  readonly transitions: DatabaseTransitions;
  readonly declared: DeclaredSources;
}

/** Publishes claimed events, and releases what was not published. @returns the number that the bus accepted */
export async function publishGroup(
  context: GroupContext,
  rows: readonly ClaimedEvent[],
  breaker: BusBreaker,
  hasTime: () => boolean,
): Promise<number> {
  const { declared, transitions } = context;
  await transitions.release(
    rows.filter(({ unread }) => unread === 'later'),
    0,
  );
  for (const row of rows)
    if (row.unread === 'too-large') await transitions.failEvent(row, tooLarge(row), true);
  const read = rows.filter(({ unread }) => unread === undefined);
  const undeclared = read.filter((row) => !declared.has(row));
  declared.report(undeclared);
  await transitions.release(undeclared, UNDECLARED_WAIT_MS, 'The source is not declared');
  const outcomes = await publishEvents(context, read.filter(declared.has), breaker, hasTime);
  await releaseRefused(context, outcomes);
  const late = withOutcome(outcomes, 'leaseTooShort');
  if (hasTime()) outcomes.push(...(await publishEach(context, late, breaker, hasTime)));
  else await transitions.release(late, 0);
  return withOutcome(outcomes, 'published', 'unmarked').length;
}

/**
 * Publishes each event of a group that outlasted its lease under its own lease. Only an event that outlasts this, too, is counted
 * as failed: so one event neither blocks the others nor is tried without end.
 */
async function publishEach(
  context: GroupContext,
  rows: readonly ClaimedEvent[],
  breaker: BusBreaker,
  hasTime: () => boolean,
): Promise<PublishOutcome<ClaimedEvent>[]> {
  const { transitions } = context;
  const outcomes: PublishOutcome<ClaimedEvent>[] = [];
  for (const row of rows) {
    if (!hasTime()) {
      await transitions.release([row], 0);
      continue;
    }
    // Another relay may have claimed it by now.
    const held = await transitions.renew(row);
    if (held === undefined) continue;
    const alone = await publishEvents(context, [held], breaker, hasTime);
    await releaseRefused(context, alone);
    const late = withOutcome(alone, 'leaseTooShort');
    if (!hasTime()) await transitions.release(late, 0);
    else for (const event of late) await transitions.failEvent(event, outOfLease(event), false);
    outcomes.push(...alone);
  }
  return outcomes;
}

async function releaseRefused(
  { transitions }: GroupContext,
  outcomes: readonly PublishOutcome<ClaimedEvent>[],
): Promise<void> {
  const refused = outcomes.filter(({ is }) => is === 'bus' || is === 'access');
  const error = refused.find((outcome) => outcome.error !== undefined)?.error;
  await transitions.release(withOutcome(refused, 'bus', 'access'), BUS_BACKOFF_MS, error);
  // Due later, or this pass would claim them again before those of other sources.
  await transitions.release(withOutcome(outcomes, 'skipped'), BUS_BACKOFF_MS);
}

function tooLarge({ eventId }: ClaimedEvent): MailroomError {
  return new MailroomError(
    'EVENT_TOO_LARGE',
    `Event ${eventId} takes ${PUT_EVENTS_BYTES_MAX} bytes or more as an EventBridge entry, which must have fewer. It was not written by the outbox, which refuses such an event.`,
  );
}

function outOfLease({ eventId }: ClaimedEvent): MailroomError {
  return new MailroomError(
    'PUBLISH_TIMEOUT',
    `Event ${eventId} could not be published within its own lease. Raise MAILROOM_CLAIM_LEASE_MS, or find out what stops the relay.`,
  );
}
