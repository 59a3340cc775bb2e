import { isConditionFailed } from '../errors.ts';
import { mintToken, type RandomBytes } from '../store/event-id.ts';
import { asRow, SCHEMA, type UnsettledPointer, unsettledKey } from '../store/rows.ts';
import type { Item, Table } from '../store/table.ts';

/** The pointers to the minutes in which a pass left something PENDING. */
export interface UnsettledMinutes {
  /** Says that a minute of a shard is unsettled, under a new token. */
  put(shard: number, minute: string): Promise<void>;
  /** All pointers of a shard. */
  list(shard: number): Promise<UnsettledPointer[]>;
  /** Takes a pointer out, unless somebody put it anew since it was read: whoever did knows of more. */
  remove(pointer: UnsettledPointer): Promise<void>;
}

/** Makes the pointers of one table. */
export function createUnsettledMinutes(deps: {
  readonly table: Table;
  readonly random: RandomBytes;
}): UnsettledMinutes {
  const { table, random } = deps;

  return {
    put: async (shard, minute) => {
      const pointer: UnsettledPointer = {
        ...unsettledKey(shard, minute),
        schema: SCHEMA,
        token: mintToken(random),
      };
      await table.write({ Put: { Item: { ...pointer } } });
    },
    list: async (shard) => {
      const pointers: UnsettledPointer[] = [];
      let cursor: Item | undefined;
      do {
        const page = await table.query({ pk: unsettledKey(shard, '').PK, cursor });
        pointers.push(...page.items.map((item) => asRow<UnsettledPointer>(item)));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return pointers;
    },
    remove: async ({ PK, SK, token }) => {
      try {
        await table.write({
          Delete: {
            Key: { PK, SK },
            ExpressionAttributeNames: { '#token': 'token' },
            // One without a token was put by hand.
            ...(token === undefined
              ? { ConditionExpression: 'attribute_not_exists(#token)' }
              : { ConditionExpression: '#token = :token', ExpressionAttributeValues: { ':token': token } }),
          },
        });
      } catch (error) {
        if (!isConditionFailed(error)) throw error;
      }
    },
  };
}
