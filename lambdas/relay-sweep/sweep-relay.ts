import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { busClientSettings, clientSettings, portClientSettings } from '../runtime/base/client-settings.ts';
import { readRelayConfig } from '../runtime/base/config.ts';
import { eventBridgeBus } from '../runtime/bus/eventbridge-bus.ts';
import type { Tracer } from '../runtime/observe/tracer.ts';
import { createDeadLetterWatch } from '../runtime/operations/dead-letter-watch.ts';
import { sqsQueues } from '../runtime/operations/sqs-queues.ts';
import { readDirectory } from '../runtime/operations/ssm-directory.ts';
import { createRelaySweep, type RelaySweepHandler } from '../runtime/relay/relay-sweep.ts';
import { dynamoTable } from '../runtime/store/dynamo-table.ts';

/** Creates the sweep relay of the function in which it is called. */
export function sweepRelay(tracer?: Tracer): RelaySweepHandler {
  const config = readRelayConfig(process.env);
  const table = dynamoTable({ client: new DynamoDBClient(portClientSettings), tableName: config.tableName });
  const ssm = new SSMClient(clientSettings);
  return createRelaySweep({
    config,
    table,
    bus: eventBridgeBus({
      client: new EventBridgeClient(busClientSettings(config.publishTimeoutMs)),
      busName: config.busName,
    }),
    watch: createDeadLetterWatch({
      table,
      queues: sqsQueues(new SQSClient(clientSettings)),
      directory: () => readDirectory(ssm, config.tableName),
    }),
    tracer,
  });
}
