import { isMailroomError } from '../errors.ts';
import { mintToken, type RandomBytes } from './event-id.ts';
import { asRow, SCHEMA, type UnsettledPointer, unsettledKey } from './rows.ts';
import type { Table } from './table.ts';
import { pagesOf } from './table-requests.ts';

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
export async function removeUnsettled(table: Table, { PK, SK, token }: UnsettledPointer): Promise<void> {
  try {
    await table.write({
      Delete: {
        Key: { PK, SK },
        ExpressionAttributeNames: { '#token': 'token' },
        // A pointer without a token was written by hand.
        ...(token === undefined
          ? { ConditionExpression: 'attribute_not_exists(#token)' }
          : { ConditionExpression: '#token = :token', ExpressionAttributeValues: { ':token': token } }),
      },
    });
  } catch (error) {
    if (!isMailroomError(error, 'CONDITION_FAILED')) throw error;
  }
}
