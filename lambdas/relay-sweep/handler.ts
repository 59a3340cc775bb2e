import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { clientSettings } from '../runtime/client-settings.ts';
import { readRelayConfig } from '../runtime/config.ts';
import { createDeadLetterWatch } from '../runtime/dead-letter-watch.ts';
import { dynamoTable } from '../runtime/dynamo-table.ts';
import { eventBridgeBus } from '../runtime/eventbridge-bus.ts';
import { createRelaySweep } from '../runtime/relay-sweep.ts';
import { sqsQueues } from '../runtime/sqs-queues.ts';
import { readDirectory } from '../runtime/ssm-directory.ts';

const config = readRelayConfig(process.env);
const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
const ssm = new SSMClient(clientSettings);

/** The backstop: finds what the live path did not publish, and publishes it. */
export const { handler } = createRelaySweep({
  config,
  table,
  // One try a call: the relay decides itself whether a publish may be tried again.
  bus: eventBridgeBus({
    client: new EventBridgeClient({ logger: clientSettings.logger, maxAttempts: 1 }),
    busName: config.busName,
  }),
  watch: createDeadLetterWatch({
    table,
    queues: sqsQueues(new SQSClient(clientSettings)),
    directory: () => readDirectory(ssm, config.tableName),
  }),
});
