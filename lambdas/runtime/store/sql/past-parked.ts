import type { Clock } from '../../base/clock.ts';
import type { ClaimedEvent } from '../../relay/database-transitions.ts';

/** The longest time for which a call only puts off events that wait for others of their aggregate, milliseconds. */
const PARKING_MAX_MS = 5_000;

/** The results of one claim. */
export interface ClaimedGroup {
  readonly events: ClaimedEvent[];
  /** The number of events that it has put off, because they wait for others of their aggregate. */
  readonly parked: number;
}

/** Claims again while a claim has only put events off: those of other aggregates may be behind them. @param limit - the most events of one claim */
export async function pastParked(
  clock: Clock,
  limit: number,
  claim: () => Promise<ClaimedGroup>,
): Promise<ClaimedEvent[]> {
  if (limit < 1) return [];
  const until = clock.now() + PARKING_MAX_MS;
  for (;;) {
    const { events, parked } = await claim();
    if (events.length > 0 || parked < limit || clock.now() >= until) return events;
  }
}
