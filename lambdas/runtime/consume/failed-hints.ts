import { withDeadline } from '../base/clock.ts';
import type { Received } from './consumer-context.ts';

/** The maximum wait for a hint, milliseconds; also at most a quarter of the remaining time, to answer the batch in time. */
const WAIT_MAX_MS = 2_000;

/**
 * Records a hint that a message is FAILED, after its row is written, so that failures can be listed without an index; or removes it after
 * the message was processed or rejected. Nothing depends on a hint: this never throws and never takes long, and readers check the inbox row.
 *
 * @param retryAt - the time at which the message becomes visible again, epoch milliseconds; TTL may delete the hint a day later
 * @param endsBy - the time at which the function is stopped, epoch milliseconds
 */
export async function writeHint(
  { clock, telemetry, inbox }: Received,
  eventId: string,
  retryAt: number | 'never',
  endsBy: number,
): Promise<void> {
  const write = retryAt === 'never' ? inbox.removeHint(eventId) : inbox.putHint(eventId, retryAt);
  const written = write.then(
    () => {},
    (error: unknown) =>
      telemetry.log.warn('The hint of a failed message could not be updated', { error: error as Error }),
  );
  await withDeadline(clock, Math.min(WAIT_MAX_MS, (endsBy - clock.now()) / 4), written, () => {});
}
