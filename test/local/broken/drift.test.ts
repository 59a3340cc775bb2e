import {
  DeleteRuleCommand,
  DisableRuleCommand,
  EnableRuleCommand,
  EventBridgeClient,
  ListRulesCommand,
  ListTargetsByRuleCommand,
  PutPermissionCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemovePermissionCommand,
  RemoveTargetsCommand,
  type Target,
} from '@aws-sdk/client-eventbridge';
import { CreateKeyCommand, DisableKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  CreateEventSourceMappingCommand,
  DeleteEventSourceMappingCommand,
  DeleteFunctionConcurrencyCommand,
  GetFunctionConfigurationCommand,
  LambdaClient,
  ListEventSourceMappingsCommand,
  PutFunctionConcurrencyCommand,
  paginateListFunctions,
  UpdateEventSourceMappingCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
import { GetQueueAttributesCommand, SetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { expect, inject, onTestFinished, test } from 'vitest';
import { required } from '../../../demo/readings.ts';
import { ruleName } from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { readDirectory } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';

const settings = {
  endpoint: inject('endpoint'),
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
};
const sqs = new SQSClient({ ...settings, useQueueUrlAsEndpoint: false });
const lambda = new LambdaClient(settings);
const bridge = new EventBridgeClient(settings);
const kms = new KMSClient(settings);
const TableName = required(inject('outputs'), 'TableName');

/** A setting changed by hand, which stops or loses events without an error anywhere. */
interface Change {
  readonly what: string;
  /** As {@link found} returns them. */
  readonly findings: readonly string[];
  plant(): Promise<unknown>;
  undo(): Promise<unknown>;
}

interface Problem {
  readonly part: string;
  readonly problem: string;
  readonly type?: string;
  readonly member?: string;
}

/** The problems of `doctor`: `part: type member` of a difference, `part: problem` of others. */
async function found(): Promise<string[]> {
  const { json } = await mailroom('doctor', '--json');
  const problems: readonly Problem[] = json().problems;
  return problems
    .map(
      ({ part, problem, type, member }) => `${part}: ${type === undefined ? problem : `${type} ${member}`}`,
    )
    .sort();
}

/** Changes the variables of a function. */
async function variables(FunctionName: string, change: Readonly<Record<string, string>>) {
  const { Environment } = await lambda.send(new GetFunctionConfigurationCommand({ FunctionName }));
  const before = Environment?.Variables ?? {};
  const set = (Variables: Record<string, string>) => () =>
    lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment: { Variables } }));
  return { plant: set({ ...before, ...change }), undo: set(before) };
}

function noConcurrency(FunctionName: string) {
  return {
    plant: () =>
      lambda.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: 0 })),
    undo: () => lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName })),
  };
}

/** Changes the mapping of a function. */
async function mapping(FunctionName: string, change: object, before: object) {
  const { EventSourceMappings: [{ UUID } = {}] = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName }),
  );
  const set = (members: object) => () =>
    lambda.send(new UpdateEventSourceMappingCommand({ UUID, ...members }));
  return { plant: set(change), undo: set(before) };
}

/** Changes the target of a consumer's rule. */
async function target(EventBusName: string, consumer: ConsumerEntry, change: Partial<Target>) {
  const named = { EventBusName, Rule: ruleName(consumer) };
  const { Targets = [] } = await bridge.send(new ListTargetsByRuleCommand(named));
  const set = (targets: Target[]) => () => bridge.send(new PutTargetsCommand({ ...named, Targets: targets }));
  return { plant: set(Targets.map((one) => ({ ...one, ...change }))), undo: set(Targets) };
}

async function attributesOf(QueueUrl: string): Promise<Readonly<Record<string, string>>> {
  const all = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] });
  return (await sqs.send(all)).Attributes ?? {};
}

const setAttributes = (QueueUrl: string, Attributes: Record<string, string>) => () =>
  sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes }));

async function functionNamed(part: string): Promise<string> {
  for await (const { Functions = [] } of paginateListFunctions({ client: lambda }, {}))
    for (const { FunctionName = '' } of Functions) if (FunctionName.includes(part)) return FunctionName;
  throw new Error(`There is no function ${part}`);
}

/** Every change, each of which was silent before the deployment was compared with its stacks. */
async function changes(): Promise<Change[]> {
  const { mailroom: entry, consumers } = await readDirectory(new SSMClient(settings), TableName);
  const named = (name: string): ConsumerEntry => {
    const consumer = consumers.find((one) => one.name === name);
    if (consumer === undefined) throw new Error(`There is no consumer ${name}`);
    return consumer;
  };
  const [payments, inventory] = [named('payments'), named('inventory')];
  const [notifications, orderStatus] = [named('notifications'), named('order-status')];
  const [audit, producer] = [await functionNamed('AuditFunction'), await functionNamed('orders-Api')];
  const { Rules = [] } = await bridge.send(new ListRulesCommand({}));
  const Name = Rules.find((rule) => rule.Name?.includes('AuditSchedule'))?.Name;
  const queue = await attributesOf(notifications.queue);
  const policy = JSON.parse(queue.Policy ?? '{}');
  const deny = {
    Sid: 'Deny',
    Effect: 'Deny',
    Principal: '*',
    Action: 'sqs:SendMessage',
    Resource: queue.QueueArn,
  };
  const dead = await attributesOf(payments.deadLetterQueue);
  const { KeyMetadata: { KeyId = '' } = {} } = await kms.send(new CreateKeyCommand({}));
  const inventoryQueue = (await attributesOf(inventory.queue)).QueueArn;
  let foreign: string | undefined;
  const second = { Name: 'a-second-rule', EventBusName: entry.bus };
  // The engine takes a policy only statement by statement, each an Allow.
  const permit = (StatementId: string, Principal: string) =>
    bridge.send(
      new PutPermissionCommand({
        ...{ EventBusName: entry.bus, StatementId, Principal },
        Action: 'events:PutEvents',
      }),
    );
  return [
    {
      what: 'InputPath of a target',
      findings: ['payments: target-input'],
      ...(await target(entry.bus, payments, { InputPath: '$.detail' })),
    },
    {
      what: 'InputTransformer of a target',
      findings: ['inventory: target-input'],
      ...(await target(entry.bus, inventory, {
        InputTransformer: { InputPathsMap: { id: '$.id' }, InputTemplate: '{"id":<id>}' },
      })),
    },
    {
      what: 'an extra Deny in a queue policy',
      findings: ['notifications: AWS::SQS::QueuePolicy PolicyDocument'],
      plant: setAttributes(notifications.queue, {
        Policy: JSON.stringify({ ...policy, Statement: [...policy.Statement, deny] }),
      }),
      undo: setAttributes(notifications.queue, { Policy: queue.Policy ?? '' }),
    },
    {
      what: "an Allow for everyone in the policy of the bus, beside another account's",
      findings: ['bus: AWS::Events::EventBus Policy'],
      plant: async () => {
        await permit('Everyone', '*');
        await permit('Team', '999999999999');
      },
      undo: async () => {
        for (const StatementId of ['Everyone', 'Team'])
          await bridge.send(new RemovePermissionCommand({ EventBusName: entry.bus, StatementId }));
      },
    },
    {
      what: "a foreign function's mapping on a consumer's queue",
      findings: ['inventory: foreign-mapping'],
      plant: async () => {
        const EventSourceArn = inventoryQueue;
        const FunctionName = await functionNamed('bank-Bank');
        const made = await lambda.send(new CreateEventSourceMappingCommand({ EventSourceArn, FunctionName }));
        foreign = made.UUID;
      },
      undo: () => lambda.send(new DeleteEventSourceMappingCommand({ UUID: foreign })),
    },
    {
      what: 'a disabled KMS key',
      findings: ['account: key-disabled', 'order-status: AWS::SQS::Queue KmsMasterKeyId'],
      plant: async () => {
        await setAttributes(orderStatus.queue, { KmsMasterKeyId: KeyId })();
        await kms.send(new DisableKeyCommand({ KeyId }));
      },
      undo: setAttributes(orderStatus.queue, { KmsMasterKeyId: '', SqsManagedSseEnabled: 'true' }),
    },
    {
      what: 'concurrency 0 of a producer',
      findings: ['producer: AWS::Lambda::Function ReservedConcurrentExecutions'],
      ...noConcurrency(producer),
    },
    {
      what: 'concurrency 0 of the audit',
      findings: ['audit: AWS::Lambda::Function ReservedConcurrentExecutions'],
      ...noConcurrency(audit),
    },
    {
      what: "the audit's schedule off",
      findings: ['audit: AWS::Events::Rule State'],
      plant: () => bridge.send(new DisableRuleCommand({ Name })),
      undo: () => bridge.send(new EnableRuleCommand({ Name })),
    },
    {
      what: 'LEASE_MS above the visibility',
      findings: ['payments: AWS::Lambda::Function Environment.Variables.MAILROOM_LEASE_MS'],
      ...(await variables(payments.function, { MAILROOM_LEASE_MS: '600000' })),
    },
    {
      what: 'MAX_ATTEMPTS above maxReceiveCount',
      findings: ['inventory: AWS::Lambda::Function Environment.Variables.MAILROOM_MAX_ATTEMPTS'],
      ...(await variables(inventory.function, { MAILROOM_MAX_ATTEMPTS: '90' })),
    },
    {
      what: 'another inbox retention',
      findings: ['notifications: AWS::Lambda::Function Environment.Variables.MAILROOM_INBOX_RETENTION_DAYS'],
      ...(await variables(notifications.function, { MAILROOM_INBOX_RETENTION_DAYS: '3' })),
    },
    {
      what: 'RedriveAllowPolicy denyAll',
      findings: ['payments: AWS::SQS::Queue RedriveAllowPolicy'],
      plant: setAttributes(payments.deadLetterQueue, {
        RedriveAllowPolicy: '{"redrivePermission":"denyAll"}',
      }),
      undo: setAttributes(payments.deadLetterQueue, { RedriveAllowPolicy: dead.RedriveAllowPolicy ?? '' }),
    },
    {
      what: 'a record age of 60 s',
      findings: ['stream relay: AWS::Lambda::EventSourceMapping MaximumRecordAgeInSeconds'],
      ...(await mapping(
        entry.streamFunction,
        { MaximumRecordAgeInSeconds: 60 },
        { MaximumRecordAgeInSeconds: 3_600 },
      )),
    },
    {
      what: 'shards of the sweep',
      findings: ['sweep: AWS::Lambda::Function Environment.Variables.MAILROOM_SHARDS'],
      ...(await variables(entry.sweepFunction, { MAILROOM_SHARDS: '1' })),
    },
    {
      what: 'shards of a producer',
      findings: ['producer: AWS::Lambda::Function Environment.Variables.MAILROOM_SHARDS'],
      ...(await variables(producer, { MAILROOM_SHARDS: '200' })),
    },
    {
      what: 'a batching window of 300 s',
      findings: ['notifications: AWS::Lambda::EventSourceMapping MaximumBatchingWindowInSeconds'],
      ...(await mapping(
        notifications.function,
        { MaximumBatchingWindowInSeconds: 300 },
        { MaximumBatchingWindowInSeconds: 0 },
      )),
    },
    {
      what: "a second rule that sends others' events",
      findings: ['order-status: foreign-rule'],
      plant: async () => {
        await bridge.send(new PutRuleCommand({ ...second, EventPattern: '{"source":["anything"]}' }));
        const Targets = [{ Id: 'T', Arn: (await attributesOf(orderStatus.queue)).QueueArn }];
        const { Name: Rule, EventBusName } = second;
        await bridge.send(new PutTargetsCommand({ Rule, EventBusName, Targets }));
      },
      undo: async () => {
        const { Name: Rule, EventBusName } = second;
        await bridge.send(new RemoveTargetsCommand({ Rule, EventBusName, Ids: ['T'] }));
        await bridge.send(new DeleteRuleCommand(second));
      },
    },
  ];
}

test('the doctor finds each of 18 settings that were changed by hand, and nothing else', async () => {
  await eventually(async () => {
    expect(await found()).toEqual([]);
  });
  const all = await changes();
  expect(all).toHaveLength(18);
  const planted: Change[] = [];
  const restore = async () => {
    for (const { undo } of planted.splice(0)) await undo();
  };
  onTestFinished(restore);
  for (const change of all) {
    planted.push(change);
    await change.plant();
  }
  expect(await found()).toEqual(all.flatMap(({ findings }) => findings).sort());

  await restore();
  await eventually(async () => {
    expect(await found()).toEqual([]);
  });
});
