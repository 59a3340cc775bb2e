import { systemClock } from '../base/clock.ts';
import { mintToken } from './event-id.ts';
import { operationKey } from './keys.ts';
import type { TransactDeps } from './retry.ts';
import { expiresAt } from './row-expiry.ts';
import { SCHEMA } from './row-schema.ts';
import type { Key } from './table.ts';

/** Dependencies of an operator's changes. */
export interface OperationDeps extends TransactDeps {
  /**
   * `clock` agrees with AWS's time; an operator's own machine may be ahead of it. If false, a lease counts as passed only after it
   * was seen unchanged for as long as it can last, which needs no clock. @default true
   */
  readonly clockIsTrusted?: boolean | undefined;
}

/** The operator and the reason, stored with the change. */
export interface Note {
  readonly by: string;
  readonly reason: string;
}

/** The record of an operator's change: `OPERATIONS#<month>` / `<time>#<token>`. Kept for 400 days. */
export interface OperationRow extends Key {
  readonly schema: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The ARN of the caller. */
  readonly by: string;
  /** The command, e.g. `messages resolve`. */
  readonly command: string;
  /**
   * The object of the change, for people: an event id, a consumer and an event id, or a dead-letter source and the number of dead
   * letters. Programs read the attributes below.
   */
  readonly subject: string;
  readonly reason: string;
  readonly expiresAt: number;
  /** The consumer of a pause, a resume and a resend. */
  readonly consumer?: string | undefined;
  /** The dead-letter source of a resend. */
  readonly source?: string | undefined;
  /** The event that a resend replaces. */
  readonly eventId?: string | undefined;
  /** The event that a resend sends in its place. */
  readonly newEventId?: string | undefined;
  /** The finding of `status` that is acknowledged, or no longer, e.g. `dead-letters/consumer:payments`. */
  readonly finding?: string | undefined;
  /** The end of an acknowledgement, epoch milliseconds. */
  readonly until?: number | undefined;
  /** The count above which a finding is not acknowledged. Absent: it has none. */
  readonly upTo?: number | undefined;
}

/** An operator's change, before it is made. */
export type OperationToRecord = Omit<OperationRow, keyof Key | 'schema' | 'at' | 'expiresAt'>;

/** The time after which TTL may delete the record of an operation, days. */
const OPERATION_RETENTION_DAYS = 400;

/**
 * Records a change that an operator is about to make, before the change, so that an interrupted change leaves a trace. Kept for
 * 400 days.
 *
 * @param operation.command - the command, e.g. `messages resolve`
 * @param operation.subject - the object of the change for people, e.g. a consumer and an event id
 */
export async function recordOperation(deps: OperationDeps, operation: OperationToRecord): Promise<void> {
  const { table, clock = systemClock, random } = deps;
  const at = clock.now();
  const row: OperationRow = {
    ...operationKey(at, mintToken(random)),
    schema: SCHEMA,
    at,
    ...operation,
    expiresAt: expiresAt(at, OPERATION_RETENTION_DAYS),
  };
  await table.write({ Put: { Item: { ...row } } });
}
