import { withDeadline } from '../deadline.ts';
import { expiresAt, type FailedHint, failedKey, SCHEMA } from '../store/rows.ts';
import type { Write } from '../store/table.ts';
import type { ConsumerContext } from './consumer-context.ts';

/** A hint outlives the next attempt by this much: one that was not taken back must not stay. */
const HINT_SPARE_DAYS = 1;

/** A hint is not waited for longer, nor for more than a quarter of what is left: the batch must be answered in time. */
const WAIT_MAX_MS = 2_000;

/**
 * Says that a message is FAILED, after its row does, so that failures can be listed without an index. Nothing depends on a hint:
 * writing and removing one never throws and never takes long, and whoever reads it asks the inbox row.
 *
 * @param retryAt - when the message is shown again, epoch milliseconds; a day later TTL may delete the hint
 * @param endsBy - when the function is stopped, epoch milliseconds
 */
export function putFailedHint(
  ctx: ConsumerContext,
  eventId: string,
  retryAt: number,
  endsBy: number,
): Promise<void> {
  const hint: FailedHint = {
    ...failedKey(ctx.config.consumer, eventId),
    schema: SCHEMA,
    failedAt: ctx.clock.now(),
    expiresAt: expiresAt(retryAt, HINT_SPARE_DAYS),
  };
  return attempt(ctx, eventId, endsBy, { Put: { Item: { ...hint } } });
}

/** Takes the hint back, after the message was processed or rejected. */
export function removeFailedHint(ctx: ConsumerContext, eventId: string, endsBy: number): Promise<void> {
  return attempt(ctx, eventId, endsBy, { Delete: { Key: { ...failedKey(ctx.config.consumer, eventId) } } });
}

async function attempt(
  { config, table, clock, telemetry }: ConsumerContext,
  eventId: string,
  endsBy: number,
  write: Write,
): Promise<void> {
  const written = table.write(write).then(
    () => {},
    (error: unknown) =>
      telemetry.log.warn('The hint of a failed message could not be kept', {
        consumer: config.consumer,
        eventId,
        error: error as Error,
      }),
  );
  await withDeadline(clock, Math.min(WAIT_MAX_MS, (endsBy - clock.now()) / 4), written, () => {});
}
