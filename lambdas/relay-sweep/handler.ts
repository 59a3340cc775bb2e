import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { busClientSettings, clientSettings, portClientSettings } from '../runtime/base/client-settings.ts';
import { readRelayConfig } from '../runtime/base/config.ts';
import { eventBridgeBus } from '../runtime/bus/eventbridge-bus.ts';
import { createDeadLetterWatch } from '../runtime/operations/dead-letter-watch.ts';
import { sqsQueues } from '../runtime/operations/sqs-queues.ts';
import { readDirectory } from '../runtime/operations/ssm-directory.ts';
import { createRelaySweep } from '../runtime/relay/relay-sweep.ts';
import { dynamoTable } from '../runtime/store/dynamo/dynamo-table.ts';

const config = readRelayConfig(process.env);
const table = dynamoTable({ client: new DynamoDBClient(portClientSettings), tableName: config.tableName });
const ssm = new SSMClient(clientSettings);

/** The sweep relay: finds and publishes events that the stream relay did not publish. */
export const handler = createRelaySweep({
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
});
