import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createMeteredAws } from '../../bench/aws/metered-aws.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { describeTable } from './table-contract.ts';

describeTable('the table on the metered AWS', async () => {
  const aws = createMeteredAws([{ name: 'Mailroom', keys: ['PK', 'SK'] }]);
  const client = new DynamoDBClient(aws.client);
  return { subject: dynamoTable({ client, tableName: 'Mailroom' }), remove: async () => client.destroy() };
});
