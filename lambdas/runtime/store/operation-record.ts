import { systemClock } from '../clock.ts';
import { mintToken } from './event-id.ts';
import type { TransactDeps } from './retry.ts';
import { expiresAt, type OperationRow, operationKey, SCHEMA } from './rows.ts';

/** The parts that an operator's interventions need. */
export interface OperationDeps extends TransactDeps {
  /**
   * Whether `clock` keeps AWS's time: an operator's own machine may be ahead of it. If it does not, a lease counts as passed
   * only after it was seen unchanged for as long as it can last, which needs no clock. @default true
   */
  readonly clockIsTrusted?: boolean | undefined;
}

/** Who decided, and why: stored with what is changed. */
export interface Note {
  readonly by: string;
  readonly reason: string;
}

/** How long the record of an operation is kept, days. */
const OPERATION_RETENTION_DAYS = 400;

/**
 * Records what an operator is about to change. It is written before the change, so that an interrupted one leaves its trace.
 * Kept for 400 days.
 *
 * @param operation.command - what, e.g. `message resolve`
 * @param operation.subject - to what, e.g. a consumer and an event id
 */
export async function recordOperation(
  deps: OperationDeps,
  operation: Note & { readonly command: string; readonly subject: string },
): Promise<void> {
  const { table, clock = systemClock, random } = deps;
  const at = clock.now();
  const { by, reason, command, subject } = operation;
  const row: OperationRow = {
    ...operationKey(at, mintToken(random)),
    schema: SCHEMA,
    at,
    by,
    command,
    subject,
    reason,
    expiresAt: expiresAt(at, OPERATION_RETENTION_DAYS),
  };
  await table.write({ Put: { Item: { ...row } } });
}
