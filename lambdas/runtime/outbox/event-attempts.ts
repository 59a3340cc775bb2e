import type { RelayConfig } from '../base/config.ts';
import { errorMessage, type MailroomError } from '../base/errors.ts';
import { fingerprint } from '../base/fingerprint.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import type { RandomBytes } from '../store/event-id.ts';
import { backoffMs } from '../store/retry.ts';
import type { PendingRow } from './pending-row.ts';

/** Backoff of a row whose own publish failed: from 5 s to 15 min. */
const RETRY_BASE_MS = 5_000;
const RETRY_CAP_MS = 900_000;

/** The consequence of an event's own failure for its row. */
export interface EventFailure {
  /** Those of the row, with this one. */
  readonly attempts: number;
  /** The event was refused, or its attempts are exhausted. */
  readonly dead: boolean;
  /** The time until it may be tried again, milliseconds; 0 if it is dead. */
  readonly retryMs: number;
  readonly cause: { readonly lastError: string; readonly fingerprint: string };
}

/** Dependencies of {@link eventFailure}. */
interface FailureContext {
  readonly config: Pick<RelayConfig, 'maxAttempts'>;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/** Judges, counts and logs an event's own failure: one more attempt and a backoff, or DEAD. */
export function eventFailure(
  { config, random, telemetry }: FailureContext,
  row: Pick<PendingRow, 'eventId' | 'attempts'>,
  error: MailroomError,
  refused: boolean,
): EventFailure {
  const attempts = row.attempts + 1;
  const dead = refused || attempts >= config.maxAttempts;
  telemetry.count('EventsRefused', refused ? 1 : 0);
  logFailure({ telemetry }, dead ? 'An event is DEAD' : 'An event could not be published', [row], error);
  return {
    attempts,
    dead,
    retryMs: dead ? 0 : backoffMs(attempts, RETRY_BASE_MS, RETRY_CAP_MS, random),
    cause: causeOf(error),
  };
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

/** The attributes that a row stores about an error. */
export function causeOf(error: unknown): EventFailure['cause'] {
  return { lastError: errorMessage(error), fingerprint: `relay ${fingerprint(error)}` };
}
