import { isMailroomError } from '../../base/errors.ts';
import { mintToken, type RandomBytes } from '../event-id.ts';
import { unsettledKey, unsettledMinuteOf } from '../keys.ts';
import type { LeftPending, UnsettledPointer } from '../outbox-row.ts';
import { asRow, SCHEMA } from '../row-schema.ts';
import { pagesOf, type Table, type Write } from '../table.ts';

/** No rows. */
export const NOTHING_LEFT: LeftPending = { rows: 0, undeclared: 0 };

/** Makes the pointer to a minute of a shard that may still hold PENDING rows, with a new token. */
export function unsettledPointer(shard: number, minute: string, random?: RandomBytes): UnsettledPointer {
  return { ...unsettledKey(shard, minute), schema: SCHEMA, token: mintToken(random) };
}

/** Reads all pointers of a shard. */
export async function listUnsettled(table: Table, shard: number): Promise<UnsettledPointer[]> {
  const pointers: UnsettledPointer[] = [];
  for await (const { items } of pagesOf(table, { pk: unsettledKey(shard, '').PK }))
    pointers.push(...items.map((item) => asRow<UnsettledPointer>(item)));
  return pointers;
}

/** Removes a pointer, unless it was rewritten since it was read: its writer has left more PENDING rows. */
export async function removeUnsettled(table: Table, pointer: UnsettledPointer): Promise<void> {
  const { PK, SK } = pointer;
  await unlessRefused(table, { Delete: { Key: { PK, SK }, ...asRead(pointer) } });
}

/** The part of a minute that a walk of several passes has read. */
export interface WalkedPart {
  /** The last sort key that was read. Absent: nothing yet. */
  readonly after?: string | undefined;
  /** The rows left PENDING up to there. */
  readonly left: LeftPending;
}

/** Returns the part of its minute that the walk of a pointer has read. */
export function walkedPart({ after, left }: UnsettledPointer): WalkedPart {
  return typeof after === 'string' ? { after, left: left ?? NOTHING_LEFT } : { left: NOTHING_LEFT };
}

/**
 * Stores how far a walk has come, unless the pointer was rewritten since it was read: the part that was read may hold new PENDING
 * rows, for example a requeued one.
 *
 *     token 1 ── walk ──▶ time is up: token 2, after ── walk ──▶ time is up: token 3, after ── walk ──▶ the end: removed
 *              if 1 still            if 2 still                           if 3 still
 *
 * Invariant: a pointer is removed only by a walk that read the whole minute from its beginning, found nothing PENDING in any
 * part, and during which nothing else wrote the pointer. So every row that was PENDING when the first token was put was read.
 *
 * @returns false if it was rewritten
 */
export async function storeWalk(
  table: Table,
  pointer: UnsettledPointer,
  { after, left }: WalkedPart,
  random?: RandomBytes,
): Promise<boolean> {
  const { shard, minute } = unsettledMinuteOf(pointer);
  const Item = {
    ...unsettledPointer(shard, minute, random),
    after,
    ...(left.rows > 0 && { left: { ...left } }),
  };
  return unlessRefused(table, { Put: { Item, ...asRead(pointer) } });
}

/** The pointer is as it was read. One without a token was written by hand. */
function asRead({ token }: UnsettledPointer) {
  return {
    ExpressionAttributeNames: { '#token': 'token' },
    ...(token === undefined
      ? { ConditionExpression: 'attribute_not_exists(#token)' }
      : { ConditionExpression: '#token = :token', ExpressionAttributeValues: { ':token': token } }),
  };
}

async function unlessRefused(table: Table, write: Write): Promise<boolean> {
  try {
    await table.write(write);
    return true;
  } catch (error) {
    if (isMailroomError(error, 'CONDITION_FAILED')) return false;
    throw error;
  }
}
