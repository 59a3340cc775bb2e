import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SQSClient } from '@aws-sdk/client-sqs';

/**
 * How clients of a local AWS at an endpoint are made. The credentials are the ones it takes from anybody. Without an endpoint, the
 * environment names an account.
 */
function configuration(endpoint: string) {
  if (endpoint === '') return {};
  return { endpoint, region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
}

/** A DynamoDB client for a local AWS. */
export function dynamoClient(endpoint: string): DynamoDBClient {
  return new DynamoDBClient(configuration(endpoint));
}

/** An EventBridge client for a local AWS. */
export function eventBridgeClient(endpoint: string): EventBridgeClient {
  return new EventBridgeClient(configuration(endpoint));
}

/** An SQS client for a local AWS. */
export function sqsClient(endpoint: string): SQSClient {
  return new SQSClient(configuration(endpoint));
}

/** Whether the local AWS at an endpoint is MiniStack. */
export async function isMiniStack(endpoint: string): Promise<boolean> {
  return fetch(`${endpoint}/_ministack/health`).then(
    (response) => response.ok,
    () => false,
  );
}

/** Makes a table with the Mailroom table's keys, and waits until it is there. @returns its removal */
export async function createTable(client: DynamoDBClient, tableName: string): Promise<() => Promise<void>> {
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [
        { AttributeName: 'PK', AttributeType: 'S' },
        { AttributeName: 'SK', AttributeType: 'S' },
      ],
      KeySchema: [
        { AttributeName: 'PK', KeyType: 'HASH' },
        { AttributeName: 'SK', KeyType: 'RANGE' },
      ],
    }),
  );
  await waitUntilTableExists({ client, maxWaitTime: 300, minDelay: 1 }, { TableName: tableName });
  return async () => {
    await client.send(new DeleteTableCommand({ TableName: tableName }));
  };
}
