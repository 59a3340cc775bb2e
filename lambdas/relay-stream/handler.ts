import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { busClientSettings, portClientSettings } from '../runtime/base/client-settings.ts';
import { readRelayConfig } from '../runtime/base/config.ts';
import { eventBridgeBus } from '../runtime/bus/eventbridge-bus.ts';
import { createRelayStream } from '../runtime/relay/relay-stream.ts';
import { dynamoTable } from '../runtime/store/dynamo/dynamo-table.ts';

const config = readRelayConfig(process.env);

/** The stream relay: publishes new outbox rows as they arrive in the table's stream. */
export const handler = createRelayStream({
  config,
  table: dynamoTable({ client: new DynamoDBClient(portClientSettings), tableName: config.tableName }),
  bus: eventBridgeBus({
    client: new EventBridgeClient(busClientSettings(config.publishTimeoutMs)),
    busName: config.busName,
  }),
});
