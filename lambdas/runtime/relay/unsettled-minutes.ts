import pMap from 'p-map';
import { isConditionFailed } from '../errors.ts';
import { mintToken, type RandomBytes } from '../event-id.ts';
import { asRow, SCHEMA, type UnsettledPointer, unsettledKey } from '../rows.ts';
import type { Item, Table } from '../table.ts';

/** The pointers to the minutes in which a pass left something PENDING. */
export interface UnsettledMinutes {
  /** Says that a minute of a shard is unsettled, under a new token. */
  put(shard: number, minute: string): Promise<void>;
  /**
   * All pointers, by shard.
   *
   * @param shards - how many shards there are
   * @param atOnce - how many of them are read at once
   */
  list(shards: number, atOnce: number): Promise<UnsettledPointer[][]>;
  /** Takes a pointer out, unless somebody put it anew since it was read: whoever did knows of more. */
  remove(pointer: UnsettledPointer): Promise<void>;
}

/** Makes the pointers of one table. */
export function createUnsettledMinutes(deps: {
  readonly table: Table;
  readonly random: RandomBytes;
}): UnsettledMinutes {
  const { table, random } = deps;

  async function ofShard(pk: string): Promise<UnsettledPointer[]> {
    const pointers: UnsettledPointer[] = [];
    let cursor: Item | undefined;
    do {
      const page = await table.query({ pk, cursor });
      pointers.push(...page.items.map((item) => asRow<UnsettledPointer>(item)));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return pointers;
  }

  return {
    put: async (shard, minute) => {
      const pointer: UnsettledPointer = {
        ...unsettledKey(shard, minute),
        schema: SCHEMA,
        token: mintToken(random),
      };
      await table.write({ Put: { Item: { ...pointer } } });
    },
    list: (shards, atOnce) =>
      pMap(
        Array.from({ length: shards }, (_, shard) => unsettledKey(shard, '').PK),
        ofShard,
        { concurrency: atOnce },
      ),
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
