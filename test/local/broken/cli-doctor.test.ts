import {
  CloudWatchClient,
  DescribeAlarmsCommand,
  DisableAlarmActionsCommand,
  EnableAlarmActionsCommand,
} from '@aws-sdk/client-cloudwatch';
import {
  DeleteResourcePolicyCommand,
  DescribeTableCommand,
  DynamoDBClient,
  GetResourcePolicyCommand,
  PutResourcePolicyCommand,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import { EventBridgeClient, ListTargetsByRuleCommand, PutTargetsCommand } from '@aws-sdk/client-eventbridge';
import {
  LambdaClient,
  ListEventSourceMappingsCommand,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { GetQueueAttributesCommand, SetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { expect, inject, onTestFinished, test } from 'vitest';
import { required } from '../../../demo/readings.ts';
import { ruleName } from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import { readDirectory } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import { awsLines, runAwsLine } from '../support/aws-line.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';

const settings = {
  endpoint: inject('endpoint'),
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
};
const dynamo = new DynamoDBClient(settings);
const sqs = new SQSClient({ ...settings, useQueueUrlAsEndpoint: false });
const lambda = new LambdaClient(settings);
const bridge = new EventBridgeClient(settings);
const cloudwatch = new CloudWatchClient(settings);
const TableName = required(inject('outputs'), 'TableName');

interface Found {
  readonly part: string;
  readonly problem: string;
  readonly member?: string;
}

async function found(): Promise<string[]> {
  const { json } = await mailroom('doctor', '--json');
  expect(json().notChecked).toEqual([]);
  const problems: Found[] = json().problems;
  return problems.map(({ part, problem, member = problem }) => `${part}: ${member}`);
}

/** A fault, and how the test undoes it whatever becomes of it. */
interface Fault {
  readonly finding: string;
  plant(): Promise<unknown>;
  undo(): Promise<unknown>;
  /** The printed command is `cdk deploy`: on an engine whose deployments repair no drift, the test undoes the fault. */
  readonly byDeploy?: boolean;
}

/** Every fault that a test can plant and the doctor can find. */
async function faults(): Promise<Fault[]> {
  const { mailroom: entry, consumers } = await readDirectory(new SSMClient(settings), TableName);
  const consumer = consumers.find(({ name }) => name === 'notifications');
  if (consumer === undefined) throw new Error('There is no consumer notifications');
  const { Table } = await dynamo.send(new DescribeTableCommand({ TableName }));
  const ResourceArn = Table?.TableArn ?? '';
  const { Policy = '' } = await dynamo.send(new GetResourcePolicyCommand({ ResourceArn }));
  const expiry = (Enabled: boolean) => () =>
    dynamo.send(
      new UpdateTimeToLiveCommand({
        TableName,
        TimeToLiveSpecification: { Enabled, AttributeName: 'expiresAt' },
      }),
    );
  const recovery = (PointInTimeRecoveryEnabled: boolean) =>
    dynamo.send(
      new UpdateContinuousBackupsCommand({
        TableName,
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled },
      }),
    );
  const protection = (DeletionProtectionEnabled: boolean) =>
    dynamo.send(new UpdateTableCommand({ TableName, DeletionProtectionEnabled }));

  const { EventSourceMappings: [mapping = {}] = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName: entry.streamFunction }),
  );
  const { UUID, FunctionResponseTypes, DestinationConfig } = mapping;
  const remap = (change: object) => () =>
    lambda.send(new UpdateEventSourceMappingCommand({ UUID, ...change }));

  const { EventSourceMappings: [own = {}] = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName: consumer.function }),
  );
  const filters = (Filters: readonly { readonly Pattern: string }[]) => () =>
    lambda.send(
      new UpdateEventSourceMappingCommand({ UUID: own.UUID, FilterCriteria: { Filters: [...Filters] } }),
    );

  const named = { EventBusName: entry.bus, Rule: ruleName(consumer) };
  const { Targets = [] } = await bridge.send(new ListTargetsByRuleCommand(named));
  const retarget = (targets: typeof Targets) => () =>
    bridge.send(new PutTargetsCommand({ ...named, Targets: targets }));

  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: consumer.undeliveredQueue, AttributeNames: ['Policy'] }),
  );
  const attribute = (QueueUrl: string, name: string, value: string) => () =>
    sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { [name]: value } }));
  const { queue, undeliveredQueue = '', deadLetterQueue } = consumer;

  const { MetricAlarms = [] } = await cloudwatch.send(new DescribeAlarmsCommand({ MaxRecords: 2 }));
  const AlarmNames = MetricAlarms.map(({ AlarmName = '' }) => AlarmName);

  return [
    { finding: 'table: TimeToLiveSpecification', plant: expiry(false), undo: expiry(true) },
    {
      finding: 'table: Replicas.us-east-1.ResourcePolicy.PolicyDocument',
      plant: () => dynamo.send(new DeleteResourcePolicyCommand({ ResourceArn })),
      undo: () => dynamo.send(new PutResourcePolicyCommand({ ResourceArn, Policy })),
      byDeploy: true,
    },
    {
      // A local table has neither.
      finding: 'table: Replicas.us-east-1.DeletionProtectionEnabled',
      plant: () => protection(true),
      undo: () => protection(false),
    },
    {
      finding: 'table: Replicas.us-east-1.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled',
      plant: () => recovery(true),
      undo: () => recovery(false),
    },
    {
      finding: 'stream relay: FunctionResponseTypes',
      plant: remap({ FunctionResponseTypes: [] }),
      undo: remap({ FunctionResponseTypes }),
    },
    {
      finding: 'stream relay: BisectBatchOnFunctionError',
      plant: remap({ BisectBatchOnFunctionError: false }),
      undo: remap({ BisectBatchOnFunctionError: true }),
    },
    {
      finding: 'stream relay: DestinationConfig',
      plant: remap({ DestinationConfig: { OnFailure: {} } }),
      undo: remap({ DestinationConfig }),
    },
    {
      finding: 'stream relay: MessageRetentionPeriod',
      plant: attribute(entry.failureQueue, 'MessageRetentionPeriod', '86400'),
      undo: attribute(entry.failureQueue, 'MessageRetentionPeriod', '1209600'),
    },
    {
      finding: 'alarms: alarm-actions-disabled',
      plant: () => cloudwatch.send(new DisableAlarmActionsCommand({ AlarmNames })),
      undo: () => cloudwatch.send(new EnableAlarmActionsCommand({ AlarmNames })),
    },
    {
      finding: 'notifications: MessageRetentionPeriod',
      plant: attribute(deadLetterQueue, 'MessageRetentionPeriod', '172800'),
      undo: attribute(deadLetterQueue, 'MessageRetentionPeriod', '1209600'),
    },
    {
      finding: 'notifications: MaximumMessageSize',
      plant: attribute(undeliveredQueue, 'MaximumMessageSize', '262144'),
      undo: attribute(undeliveredQueue, 'MaximumMessageSize', '1048576'),
    },
    {
      // The whole policy is gone.
      finding: 'notifications: differs',
      plant: attribute(undeliveredQueue, 'Policy', ''),
      undo: attribute(undeliveredQueue, 'Policy', Attributes.Policy ?? ''),
      byDeploy: true,
    },
    {
      finding: 'notifications: mapping-filter',
      plant: filters([{ Pattern: '{"body":{"detail":{"type":["None"]}}}' }]),
      undo: filters([]),
    },
    {
      finding: 'notifications: DelaySeconds',
      plant: attribute(queue, 'DelaySeconds', '900'),
      undo: attribute(queue, 'DelaySeconds', '0'),
    },
    {
      finding: 'notifications: VisibilityTimeout',
      plant: attribute(queue, 'VisibilityTimeout', '240'),
      undo: attribute(queue, 'VisibilityTimeout', '30'),
    },
    {
      finding: 'notifications: Targets.Target0.DeadLetterConfig',
      plant: retarget(Targets.map(({ Id, Arn }) => ({ Id, Arn }))),
      undo: retarget(Targets),
    },
  ];
}

test('the doctor finds nothing in a healthy system, each planted fault, and nothing once its commands have run', async () => {
  await eventually(async () => {
    expect(await found()).toEqual([]);
  });
  const planted = await faults();
  onTestFinished(async () => {
    for (const { undo } of planted) await undo();
  });
  for (const { plant } of planted) await plant();

  expect((await found()).sort()).toEqual(planted.map(({ finding }) => finding).sort());
  const { out, code } = await mailroom('doctor');
  expect(code).toBe(1);
  const lines = awsLines(out);
  expect(lines.length).toBeGreaterThanOrEqual(10);
  for (const line of lines) await runAwsLine(line);

  const left = planted.filter(({ byDeploy }) => byDeploy);
  expect((await found()).sort()).toEqual(left.map(({ finding }) => finding).sort());
  const { out: rest } = await mailroom('doctor');
  expect(rest).toContain('npx cdk deploy Mailroom --revert-drift');
  expect(rest).toContain('npx cdk deploy Notifications --revert-drift');
  for (const { undo } of left) await undo();
  expect(await found()).toEqual([]);
});
