import { systemClock } from '../base/clock.ts';
import { mintToken } from './event-id.ts';
import { operationKey } from './keys.ts';
import type { TransactDeps } from './retry.ts';
import { expiresAt, type OperationRow, SCHEMA } from './rows.ts';
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
