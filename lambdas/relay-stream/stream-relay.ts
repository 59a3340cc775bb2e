import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { busClientSettings, portClientSettings } from '../runtime/base/client-settings.ts';
import { readRelayConfig } from '../runtime/base/config.ts';
import { eventBridgeBus } from '../runtime/bus/eventbridge-bus.ts';
import type { Tracer } from '../runtime/observe/tracer.ts';
import { createRelayStream } from '../runtime/relay/relay-stream.ts';
import { dynamoTable } from '../runtime/store/dynamo-table.ts';

/** Creates the stream relay of the function in which it is called. */
export function streamRelay(tracer?: Tracer): ReturnType<typeof createRelayStream> {
  const config = readRelayConfig(process.env);
  return createRelayStream({
    config,
    table: dynamoTable({ client: new DynamoDBClient(portClientSettings), tableName: config.tableName }),
    bus: eventBridgeBus({
      client: new EventBridgeClient(busClientSettings(config.publishTimeoutMs)),
      busName: config.busName,
    }),
    tracer,
  });
}
