import type { Clock } from '../base/clock.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { backoffMs } from '../store/backoff.ts';
import { eventIdTime, type RandomBytes } from '../store/event-id.ts';
import type { PendingRow } from './pending-row.ts';

/** The maximum number of tries of a write that records the result of a publish. What stays unrecorded is published again. */
export const RECORD_TRIES = 5;

/** Logged for events that were published, and are published once more. */
export const UNMARKED = 'Events were published but not marked; a relay will publish them once more';

/** Logged for an event whose failure is not in its row. */
export const UNRECORDED = 'The failure of an event could not be recorded';

/** Waits before another try of such a write. */
export function beforeNextTry(
  { clock, random }: { readonly clock: Clock; readonly random: RandomBytes },
  failures: number,
): Promise<void> {
  return clock.sleep(backoffMs(failures, 50, 1_000, random));
}

/** Counts published events, and the time from their commits, or due times, to their publish. */
export function countPublished(
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Telemetry },
  rows: readonly Pick<PendingRow, 'eventId'>[],
): void {
  const now = clock.now();
  telemetry.count('EventsPublished', rows.length);
  // A producer's clock may be ahead of this one.
  for (const { eventId } of rows)
    telemetry.duration('PublishLatency', Math.max(0, now - eventIdTime(eventId)));
}

/** Logs a failure that concerns rows. */
export function logFailure(
  { telemetry }: { readonly telemetry: Telemetry },
  message: string,
  rows: readonly Pick<PendingRow, 'eventId'>[],
  error?: unknown,
): void {
  telemetry.log.error(message, { eventIds: rows.map((row) => row.eventId), error: error as Error });
}
