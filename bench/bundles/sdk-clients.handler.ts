import {
  BatchExecuteStatementCommand,
  DynamoDBClient,
  GetItemCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { clientSettings } from '../../lambdas/runtime/base/client-settings.ts';

const dynamo = new DynamoDBClient(clientSettings);
const bridge = new EventBridgeClient({ logger: clientSettings.logger, maxAttempts: 1 });

/** Only the two clients of the relay's live path and the four commands that it sends. */
export const handler = async () => {
  await dynamo.send(new GetItemCommand({ TableName: 'Mailroom', Key: { PK: { S: 'A' }, SK: { S: 'B' } } }));
  await dynamo.send(new BatchExecuteStatementCommand({ Statements: [] }));
  await dynamo.send(new TransactWriteItemsCommand({ TransactItems: [] }));
  await bridge.send(new PutEventsCommand({ Entries: [] }));
};
