import type { OutboxReaderDeps } from '../../deployment/published-events.ts';
import { createEventCursor } from './event-cursor.ts';
import { createFollower, type FollowerDeps, type TailedEvent } from './event-follower.ts';

/** The events that changed since the step before, and those that were left out because there are too many. */
export interface TailStep {
  readonly events: readonly TailedEvent[];
  readonly skipped: number;
  /** More than `skipped` were left out. */
  readonly more: boolean;
}

/** Dependencies of {@link createTail}. */
export interface TailDeps extends OutboxReaderDeps, Pick<FollowerDeps, 'directory'> {}

/**
 * Follows new events until every consumer has finished them. Each step returns the events that are new or whose state changed: see
 * `createFollower`.
 *
 * @param since - epoch milliseconds
 */
export function createTail(deps: TailDeps, since: number): (now: number) => Promise<TailStep> {
  const read = createEventCursor(deps, since);
  const follow = createFollower(deps);
  return async (now) => {
    const { rows, more } = await read(now);
    const { events, skipped } = await follow(rows, now);
    return {
      events: events.map(({ eventId, at, type, source, status, consumers }) => ({
        eventId,
        at,
        type,
        source,
        status,
        consumers,
      })),
      skipped,
      more,
    };
  };
}
