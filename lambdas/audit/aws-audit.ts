import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { clientSettings, portClientSettings } from '../runtime/base/client-settings.ts';
import type { AuditConfig } from '../runtime/base/config.ts';
import type { AuditHandlerDeps } from '../runtime/operations/audit/audit-handler.ts';
import { cloudWatchQueueAges } from '../runtime/operations/audit/audit-queue-age.ts';
import { eventBridgeRules } from '../runtime/operations/audit/eventbridge-rules.ts';
import { sqsQueues } from '../runtime/operations/sqs-queues.ts';
import { readDirectory, readEntryVersions, readNeighbors } from '../runtime/operations/ssm-directory.ts';
import { dynamoTable } from '../runtime/store/dynamo/dynamo-table.ts';

/** The clients of AWS that both audits use. */
export function awsAudit(config: AuditConfig) {
  const sqs = new SQSClient(clientSettings);
  const ssm = new SSMClient(clientSettings);
  const dynamo = new DynamoDBClient(portClientSettings);
  const tableOf = (tableName: string) => dynamoTable({ client: dynamo, tableName });
  return {
    config,
    table: tableOf(config.tableName),
    queues: sqsQueues(sqs),
    rules: eventBridgeRules(new EventBridgeClient(clientSettings)),
    ages: cloudWatchQueueAges({ cloudwatch: new CloudWatchClient(clientSettings), sqs }),
    versions: ({ name, elsewhere }) =>
      readEntryVersions(ssm, elsewhere?.table ?? config.tableName, elsewhere?.name ?? name),
    directory: () => readDirectory(ssm, config.tableName),
    bus: async (own) => {
      const { neighbors, ...bus } = await readNeighbors(ssm, own);
      return {
        ...bus,
        neighbors: neighbors.map((directory) => ({ directory, table: tableOf(directory.mailroom.table) })),
      };
    },
  } satisfies AuditHandlerDeps;
}
