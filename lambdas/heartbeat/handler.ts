import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SSMClient } from '@aws-sdk/client-ssm';
import { clientSettings, portClientSettings } from '../runtime/base/client-settings.ts';
import { heartbeatSettings } from '../runtime/base/config.ts';
import { createHeartbeatHandler } from '../runtime/operations/heartbeat/heartbeat-handler.ts';
import { readDirectory } from '../runtime/operations/ssm-directory.ts';
import { dynamoTable } from '../runtime/store/dynamo/dynamo-table.ts';

const config = heartbeatSettings.read(process.env);
const ssm = new SSMClient(clientSettings);

/** The heartbeat, on a schedule: an event that every consumer acknowledges. */
export const handler = createHeartbeatHandler({
  config,
  table: dynamoTable({ client: new DynamoDBClient(portClientSettings), tableName: config.tableName }),
  directory: () => readDirectory(ssm, config.tableName),
});
