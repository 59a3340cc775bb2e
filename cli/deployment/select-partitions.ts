import { type DynamoDBClient, ExecuteStatementCommand } from '@aws-sdk/client-dynamodb';
import { errorCode } from '../../lambdas/runtime/base/errors.ts';
import { attributeOf, itemOf } from '../../lambdas/runtime/store/dynamo/attributes.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { ReadPartitions } from './joined-reads.ts';
import { isDenied, isUnsupported } from './refusals.ts';

/** The pages of up to 1 MB that one read follows: beyond them, its partitions are read one by one, concurrently. */
const PAGES_MAX = 3;

/**
 * Reads partitions with PartiQL: an `IN` condition on the partition key reads only these partitions. It is not used again once it was
 * refused: a caller's policies may allow only Query, and a local engine may not have it.
 *
 * @example
 * ```ts
 * const rows = await selectPartitions({ client, tableName })(['DEAD#0', 'DEAD#1'], {});
 * ```
 */
export function selectPartitions({
  client,
  tableName,
}: {
  readonly client: DynamoDBClient;
  readonly tableName: string;
}): ReadPartitions {
  let isRefused = false;
  return async (pks, { skPrefix = '', where = {}, limit }) => {
    if (isRefused) return undefined;
    const equal = Object.entries(where);
    const Statement = [
      `SELECT * FROM "${tableName}" WHERE "PK" IN [${pks.map(() => '?').join(',')}]`,
      ...(skPrefix === '' ? [] : ['begins_with("SK", ?)']),
      ...equal.map(([name]) => `"${name}" = ?`),
    ].join(' AND ');
    const values = [...pks, ...(skPrefix === '' ? [] : [skPrefix]), ...equal.map(([, value]) => value)];
    const Parameters = values.map(attributeOf);
    // A caller that wants few rows of each partition must not read 1 MB of one.
    const Limit = limit === undefined ? undefined : limit * pks.length;
    const rows: Item[] = [];
    let NextToken: string | undefined;
    for (let page = 0; page < (limit === undefined ? PAGES_MAX : 1); page += 1) {
      try {
        const command = new ExecuteStatementCommand({ Statement, Parameters, Limit, NextToken });
        const answer = await client.send(command);
        rows.push(...(answer.Items ?? []).map(itemOf));
        NextToken = answer.NextToken;
        if (NextToken === undefined && answer.LastEvaluatedKey === undefined) return rows;
        if (NextToken === undefined) return undefined;
      } catch (error) {
        if (!isDenied(error) && !isUnsupported(error) && errorCode(error) !== 'ValidationException')
          throw error;
        isRefused = true;
        return undefined;
      }
    }
    return undefined;
  };
}
