import { withDeadline } from '../base/clock.ts';
import type { Received } from './consumer-context.ts';

/** The maximum wait for a hint, milliseconds; also at most a quarter of the remaining time, to answer the batch in time. */
const WAIT_MAX_MS = 2_000;

/**
 * Records a hint that a message is FAILED, after its row is written, so that failures can be listed without an index. Nothing
 * depends on a hint: writing and removing one never throws and never takes long, and readers check the inbox row.
 *
 * @param retryAt - the time at which the message becomes visible again, epoch milliseconds; TTL may delete the hint a day later
 * @param endsBy - the time at which the function is stopped, epoch milliseconds
 */
export function putFailedHint(
  ctx: Received,
  eventId: string,
  retryAt: number,
  endsBy: number,
): Promise<void> {
  return attempt(ctx, endsBy, ctx.inbox.putHint(eventId, retryAt));
}

/** Removes the hint after the message was processed or rejected. */
export function removeFailedHint(ctx: Received, eventId: string, endsBy: number): Promise<void> {
  return attempt(ctx, endsBy, ctx.inbox.removeHint(eventId));
}

async function attempt(
  { clock, telemetry }: Received,
  endsBy: number,
  write: Promise<unknown>,
): Promise<void> {
  const written = write.then(
    () => {},
    (error: unknown) =>
      telemetry.log.warn('The hint of a failed message could not be updated', { error: error as Error }),
  );
  await withDeadline(clock, Math.min(WAIT_MAX_MS, (endsBy - clock.now()) / 4), written, () => {});
}
