import type { CompositeAlarm, MetricAlarm } from '@aws-sdk/client-cloudwatch';
import {
  type EventBridgeClient,
  ListRuleNamesByTargetCommand,
  type ListRuleNamesByTargetRequest,
  ListRulesCommand,
  ListTargetsByRuleCommand,
  type Rule,
} from '@aws-sdk/client-eventbridge';
import {
  type EventSourceMappingConfiguration,
  type FunctionConfiguration,
  GetAccountSettingsCommand,
  type LambdaClient,
  type ListEventSourceMappingsRequest,
  paginateListEventSourceMappings,
  paginateListFunctions,
} from '@aws-sdk/client-lambda';
import { GetParametersByPathCommand } from '@aws-sdk/client-ssm';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { eventBridgeRules } from '../../lambdas/runtime/operations/audit/eventbridge-rules.ts';
import { directoryPath } from '../../lambdas/runtime/operations/directory.ts';
import { readBacklog, readInvocations, readPeak } from './aws-metrics.ts';
import { type AwsReads, awsReads, orMissing } from './aws-reads.ts';
import type { Clients } from './clients.ts';
import { sharedMappings } from './function-mappings.ts';
import { READING } from './lambda-properties.ts';
import type {
  DeployedAlarm,
  DeployedForward,
  DeployedFunction,
  DeployedQueue,
  DeployedTable,
  Mapping,
  Resources,
  WritingFunction,
} from './resources.ts';
import { eachOf } from './rows-reader.ts';
import { sharedRules } from './shared-rules.ts';

/** The resources port on AWS. @param TableName - of the Mailroom table */
export function awsResources(clients: Clients, TableName: string, clock: Clock): Resources {
  const { events, lambdaReads: lambda, cloudwatch } = clients;
  const reads = awsReads(clients);
  const rules = eventBridgeRules(events, sharedRules(events));
  const mappings = sharedMappings(
    lambda,
    async (FunctionName) => (await orMissing(() => readMappings(lambda, { FunctionName }))) ?? [],
  );
  return {
    table: () => readTable(reads, TableName),
    queue: (url) => readQueue(reads, url),
    hasBus: async (name) => (await reads.bus(name)) !== undefined,
    rule: (bus, name) => rules.describe(bus, name),
    mappings: async (name) => (await mappings(name)).map(mappingOf),
    readers: async (EventSourceArn) =>
      (await readMappings(lambda, { EventSourceArn }))
        .filter(({ State = '' }) => READING.has(State))
        .map(({ UUID = '', FunctionArn = '' }) => ({
          uuid: UUID,
          function: FunctionArn.split(':')[6] ?? '',
        })),
    rulesTo: async (EventBusName, TargetArn) =>
      (await orMissing(() => readRulesTo(events, { EventBusName, TargetArn }))) ?? [],
    forwards: async (EventBusName) => (await orMissing(() => readForwards(events, EventBusName))) ?? [],
    keyState: (id) => readKeyState(clients.settings, id),
    function: async (name) => {
      const found = await reads.function(name);
      return found && functionOf(found);
    },
    writers: () => readWriters(lambda),
    hasMailroom: async (table) => {
      const { Parameters = [] } = await clients.ssm.send(
        new GetParametersByPathCommand({ Path: directoryPath(table), MaxResults: 1 }),
      );
      return Parameters.length > 0;
    },
    reservedConcurrency: reads.reservedConcurrency,
    concurrency: async () => {
      const { AccountLimit } = await lambda.send(new GetAccountSettingsCommand({}));
      const { ConcurrentExecutions: limit = 0, UnreservedConcurrentExecutions: unreserved = limit } =
        AccountLimit ?? {};
      return { limit, unreserved };
    },
    concurrencyPeak: () => readPeak(cloudwatch, clock.now()),
    invocations: (name) => readInvocations(cloudwatch, name, clock.now()),
    backlog: (url) => readBacklog(cloudwatch, url, clock.now()),
    alarms: async () => {
      const { metric, composite } = await reads.alarms();
      return [...metric, ...composite].map(alarmOf);
    },
  };
}

async function readTable(reads: AwsReads, name: string): Promise<DeployedTable> {
  const found = await reads.table(name);
  const { StreamEnabled } = found?.StreamSpecification ?? {};
  return {
    arn: found?.TableArn ?? '',
    streamArn: StreamEnabled ? found?.LatestStreamArn : undefined,
    key: found?.SSEDescription?.KMSMasterKeyArn,
  };
}

async function readQueue(reads: AwsReads, url: string): Promise<DeployedQueue | undefined> {
  const found = await reads.queue(url);
  if (found === undefined) return undefined;
  return {
    url,
    arn: found.QueueArn ?? '',
    messages:
      Number(found.ApproximateNumberOfMessages ?? 0) +
      Number(found.ApproximateNumberOfMessagesNotVisible ?? 0),
    visibilityS: Number(found.VisibilityTimeout),
    retentionS: Number(found.MessageRetentionPeriod),
    redrive: found.RedrivePolicy,
    key: found.KmsMasterKeyId || undefined,
  };
}

/** The variables that every function has which writes events to a table. */
const WRITER_VARIABLES = ['MAILROOM_TABLE', 'MAILROOM_SERVICE', 'MAILROOM_SHARDS'];

async function readWriters(client: LambdaClient): Promise<WritingFunction[]> {
  const found: WritingFunction[] = [];
  for await (const { Functions = [] } of paginateListFunctions({ client }, {}))
    for (const { FunctionName: name = '', Environment } of Functions) {
      const variables = Object.entries(Environment?.Variables ?? {});
      // Other variables can be secrets, and no check needs them.
      const environment = Object.fromEntries(variables.filter(([key]) => key.startsWith('MAILROOM_')));
      if (WRITER_VARIABLES.every((key) => key in environment)) found.push({ name, environment });
    }
  return found;
}

function alarmOf(alarm: MetricAlarm & Pick<CompositeAlarm, 'AlarmRule'>): DeployedAlarm {
  return {
    name: alarm.AlarmName ?? '',
    arn: alarm.AlarmArn ?? '',
    description: alarm.AlarmDescription ?? '',
    isFiring: alarm.StateValue === 'ALARM',
    actionsEnabled: alarm.ActionsEnabled ?? true,
    actions: alarm.AlarmActions ?? [],
    rule: alarm.AlarmRule,
  };
}

function functionOf(found: FunctionConfiguration): DeployedFunction {
  const { State, LastUpdateStatus } = found;
  const failures = [
    ...(State === 'Failed' ? [found.StateReason ?? State] : []),
    ...(LastUpdateStatus === 'Failed' ? [found.LastUpdateStatusReason ?? LastUpdateStatus] : []),
  ];
  return {
    timeoutS: found.Timeout ?? 0,
    role: found.Role ?? '',
    environment: found.Environment?.Variables ?? {},
    memoryMb: found.MemorySize,
    runtime: found.Runtime,
    logGroup: found.LoggingConfig?.LogGroup,
    failure: failures[0],
  };
}

async function readMappings(
  client: LambdaClient,
  of: Pick<ListEventSourceMappingsRequest, 'FunctionName' | 'EventSourceArn'>,
): Promise<EventSourceMappingConfiguration[]> {
  const found: EventSourceMappingConfiguration[] = [];
  for await (const page of paginateListEventSourceMappings({ client }, of))
    found.push(...(page.EventSourceMappings ?? []));
  return found;
}

async function readRulesTo(
  client: EventBridgeClient,
  of: Pick<ListRuleNamesByTargetRequest, 'EventBusName' | 'TargetArn'>,
): Promise<string[]> {
  const found: string[] = [];
  let NextToken: string | undefined;
  do {
    const page = await client.send(new ListRuleNamesByTargetCommand({ ...of, NextToken }));
    found.push(...(page.RuleNames ?? []));
    NextToken = page.NextToken;
  } while (NextToken !== undefined);
  return found;
}

async function readForwards(client: EventBridgeClient, EventBusName: string): Promise<DeployedForward[]> {
  const rules: Rule[] = [];
  let NextToken: string | undefined;
  do {
    const page = await client.send(new ListRulesCommand({ EventBusName, NextToken }));
    rules.push(...(page.Rules ?? []));
    NextToken = page.NextToken;
  } while (NextToken !== undefined);
  const found = await eachOf(rules, async ({ Name = '', State }) => {
    const { Targets = [] } = await client.send(new ListTargetsByRuleCommand({ EventBusName, Rule: Name }));
    return Targets.filter(({ Arn = '' }) => BUS_ARN.test(Arn)).map(({ Arn: to = '', DeadLetterConfig }) => ({
      rule: Name,
      enabled: State !== 'DISABLED',
      to,
      deadLetterQueue: DeadLetterConfig?.Arn,
    }));
  });
  return found.flat();
}

/** The ARN of an event bus (EventBridge user guide, "Event bus targets"). */
const BUS_ARN = /^arn:[^:]+:events:[^:]*:[^:]*:event-bus\//;

/** Its client is loaded here, because only `doctor` needs it. */
async function readKeyState(settings: Clients['settings'], KeyId: string): Promise<string | undefined> {
  const { DescribeKeyCommand, KMSClient } = await import('@aws-sdk/client-kms');
  const found = await orMissing(() => new KMSClient(settings).send(new DescribeKeyCommand({ KeyId })));
  return found?.KeyMetadata?.KeyState;
}

function mappingOf(found: EventSourceMappingConfiguration): Mapping {
  const window = found.MaximumBatchingWindowInSeconds;
  return {
    uuid: found.UUID ?? '',
    source: found.EventSourceArn ?? '',
    enabled: READING.has(found.State ?? ''),
    state: found.State ?? '?',
    isSettled: found.State === 'Enabled' || found.State === 'Disabled',
    changedAt: found.LastModified?.getTime(),
    filters: (found.FilterCriteria?.Filters ?? []).map(({ Pattern = '' }) => Pattern),
    batchSize: found.BatchSize,
    batchingWindowMs: window && window * 1_000,
    concurrencyMax: found.ScalingConfig?.MaximumConcurrency,
  };
}
