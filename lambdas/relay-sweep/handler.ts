import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { clientSettings } from '../runtime/client-settings.ts';
import { readRelayConfig } from '../runtime/config.ts';
import { dynamoTable } from '../runtime/dynamo-table.ts';
import { eventBridgeBus } from '../runtime/eventbridge-bus.ts';
import { createRelaySweep } from '../runtime/relay-sweep.ts';

const config = readRelayConfig(process.env);

/** The backstop: finds what the live path did not publish, and publishes it. */
export const { handler } = createRelaySweep({
  config,
  table: dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName }),
  // One try a call: the relay decides itself whether a publish may be tried again.
  bus: eventBridgeBus({ client: new EventBridgeClient({ maxAttempts: 1 }), busName: config.busName }),
});
