import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { eventBridgeBus } from '../runtime/bus/eventbridge-bus.ts';
import { clientSettings } from '../runtime/client-settings.ts';
import { readRelayConfig } from '../runtime/config.ts';
import { createRelayStream } from '../runtime/relay/relay-stream.ts';
import { dynamoTable } from '../runtime/store/dynamo-table.ts';

const config = readRelayConfig(process.env);

/** The live path: publishes new outbox rows as they come out of the table's stream. */
export const handler = createRelayStream({
  config,
  table: dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName }),
  // One try a call: the relay decides itself whether a publish may be tried again.
  bus: eventBridgeBus({
    client: new EventBridgeClient({ logger: clientSettings.logger, maxAttempts: 1 }),
    busName: config.busName,
  }),
});
