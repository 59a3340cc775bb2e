import type { Clock } from '../clock.ts';
import { expiresAt, type FailedHint, failedKey, SCHEMA } from '../store/rows.ts';
import type { Table, Write } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';

/**
 * The hints of one consumer: which messages are FAILED, so that they can be listed without an index. Nothing depends on
 * one: writing and removing never throw, never take long, and whoever reads a hint asks the inbox row.
 */
export interface FailedHints {
  /**
   * Says that a message is FAILED, after its row does.
   *
   * @param retryAt - when the message is shown again, epoch milliseconds; a day later TTL may delete the hint
   * @param endsBy - when the function is stopped, epoch milliseconds
   */
  put(eventId: string, retryAt: number, endsBy: number): Promise<void>;
  /** Takes the hint back, after the message was processed or rejected. */
  remove(eventId: string, endsBy: number): Promise<void>;
}

/** What the hints need. */
export interface FailedHintsDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly consumer: string;
}

/** A hint outlives the next attempt by this much: one that was not taken back must not stay. */
const HINT_SPARE_DAYS = 1;

/** A hint is not waited for longer, nor for more than a quarter of what is left: the batch must be answered in time. */
const WAIT_MAX_MS = 2_000;

/** Makes the hints of one consumer. */
export function createFailedHints(deps: FailedHintsDeps): FailedHints {
  const { table, clock, telemetry, consumer } = deps;

  async function attempt(eventId: string, endsBy: number, write: Write): Promise<void> {
    const over = new AbortController();
    const tell = (error: unknown) =>
      telemetry.log.warn('The hint of a failed message could not be kept', {
        consumer,
        eventId,
        error: error as Error,
      });
    const written = table
      .write(write)
      .then(() => {}, tell)
      .finally(() => over.abort());
    const waitMs = Math.min(WAIT_MAX_MS, (endsBy - clock.now()) / 4);
    await Promise.race([written, clock.sleep(waitMs, over.signal)]);
  }

  return {
    put: (eventId, retryAt, endsBy) => {
      const hint: FailedHint = {
        ...failedKey(consumer, eventId),
        schema: SCHEMA,
        failedAt: clock.now(),
        expiresAt: expiresAt(retryAt, HINT_SPARE_DAYS),
      };
      return attempt(eventId, endsBy, { Put: { Item: { ...hint } } });
    },
    remove: (eventId, endsBy) =>
      attempt(eventId, endsBy, { Delete: { Key: { ...failedKey(consumer, eventId) } } }),
  };
}
