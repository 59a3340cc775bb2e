import { randomUUID } from 'node:crypto';
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { createTable, dynamoClient } from '../support/aws.ts';

/** A new table at an endpoint. */
export interface EngineTable {
  readonly table: Table;
  /** The items whose partition key begins like this. */
  items(prefix: string): Promise<Item[]>;
  remove(): Promise<void>;
}

/** Makes a table with the Mailroom table's keys. @param made - receives it, for its removal after the tests */
export async function engineTable(endpoint: string, made: EngineTable[]): Promise<EngineTable> {
  const client = dynamoClient(endpoint);
  const tableName = `contract-${randomUUID()}`;
  const remove = await createTable(client, tableName);
  const engine: EngineTable = {
    table: dynamoTable({ client, tableName }),
    items: async (prefix) => {
      const { Items = [] } = await client.send(
        new ScanCommand({ TableName: tableName, ConsistentRead: true }),
      );
      return Items.map((item) => unmarshall(item)).filter(({ PK }) => PK.startsWith(prefix));
    },
    remove,
  };
  made.push(engine);
  return engine;
}
