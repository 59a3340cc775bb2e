import type { DestinationConfig, FunctionConfiguration } from '@aws-sdk/client-lambda';
import type { AwsReads } from './aws-reads.ts';
import { UNKNOWN } from './declared-resources.ts';
import {
  listIfAny,
  type Properties,
  type PropertiesReader,
  type ResourceAddress,
  setMembers,
  setMembersIfAny,
} from './properties-reader.ts';

/** States in which a mapping reads, or is about to. `Disabling`, `Disabled` and `Deleting` are the others. */
export const READING: ReadonlySet<string> = new Set(['Enabled', 'Enabling', 'Creating', 'Updating']);

/** The readers of Lambda's resources. */
export const lambdaReaders: Readonly<Record<string, PropertiesReader>> = {
  'AWS::Lambda::Function': {
    members: [
      'Architectures',
      'DeadLetterConfig',
      'Environment',
      'EphemeralStorage',
      'FileSystemConfigs',
      'Handler',
      'KmsKeyArn',
      'Layers',
      'LoggingConfig',
      'MemorySize',
      'PackageType',
      'ReservedConcurrentExecutions',
      'Role',
      'Runtime',
      'SnapStart',
      'Timeout',
      'TracingConfig',
      'VpcConfig',
    ],
    actions: ['lambda:GetFunctionConfiguration', 'lambda:GetFunctionConcurrency', 'kms:Decrypt'],
    read: readFunction,
  },
  'AWS::Lambda::EventSourceMapping': {
    members: [
      'BatchSize',
      'BisectBatchOnFunctionError',
      'DestinationConfig',
      'Enabled',
      'EventSourceArn',
      'FilterCriteria',
      'FunctionName',
      'FunctionResponseTypes',
      'KmsKeyArn',
      'MaximumBatchingWindowInSeconds',
      'MaximumRecordAgeInSeconds',
      'MaximumRetryAttempts',
      'MetricsConfig',
      'ParallelizationFactor',
      'ProvisionedPollerConfig',
      'ScalingConfig',
      'StartingPosition',
      'TumblingWindowInSeconds',
    ],
    actions: ['lambda:GetEventSourceMapping'],
    read: readMapping,
  },
  'AWS::Lambda::EventInvokeConfig': {
    members: ['DestinationConfig', 'MaximumEventAgeInSeconds', 'MaximumRetryAttempts'],
    actions: ['lambda:GetFunctionEventInvokeConfig'],
    read: readInvokeConfig,
  },
  'AWS::Lambda::Permission': {
    members: [
      'Action',
      'FunctionUrlAuthType',
      'InvokedViaFunctionUrl',
      'Principal',
      'SourceAccount',
      'SourceArn',
    ],
    actions: ['lambda:GetPolicy'],
    read: readPermission,
  },
};

async function readFunction(
  { function: describe, reservedConcurrency }: AwsReads,
  { physicalId }: ResourceAddress,
): Promise<Properties | undefined> {
  const [found, reserved] = await Promise.all([describe(physicalId), reservedConcurrency(physicalId)]);
  if (found === undefined) return undefined;
  const { Architectures, FileSystemConfigs, Handler, MemorySize, PackageType, Role, Runtime, Timeout } =
    found;
  const { ApplicationLogLevel, LogFormat, LogGroup, SystemLogLevel } = found.LoggingConfig ?? {};
  const { SubnetIds = [], SecurityGroupIds = [], Ipv6AllowedForDualStack } = found.VpcConfig ?? {};
  return {
    Architectures,
    DeadLetterConfig: setMembersIfAny({ TargetArn: found.DeadLetterConfig?.TargetArn }),
    Environment: environmentOf(found),
    EphemeralStorage: found.EphemeralStorage && { Size: found.EphemeralStorage.Size },
    FileSystemConfigs: listIfAny(FileSystemConfigs),
    Handler,
    KmsKeyArn: found.KMSKeyArn,
    Layers: listIfAny(found.Layers?.map(({ Arn }) => Arn)),
    LoggingConfig: setMembersIfAny({ ApplicationLogLevel, LogFormat, LogGroup, SystemLogLevel }),
    MemorySize,
    PackageType,
    ReservedConcurrentExecutions: reserved ?? undefined,
    Role,
    Runtime,
    SnapStart: found.SnapStart && { ApplyOn: found.SnapStart.ApplyOn },
    Timeout,
    TracingConfig: found.TracingConfig && { Mode: found.TracingConfig.Mode },
    // Lambda answers with empty lists about a function outside of every VPC.
    VpcConfig:
      SubnetIds.length + SecurityGroupIds.length === 0
        ? undefined
        : setMembers({ SubnetIds, SecurityGroupIds, Ipv6AllowedForDualStack }),
  };
}

/** The variables; unknown if their key is disabled or the caller may not use it: Lambda then answers without them. */
function environmentOf({ Environment }: FunctionConfiguration): unknown {
  if (Environment?.Error?.ErrorCode !== undefined) return UNKNOWN;
  return Environment?.Variables && { Variables: Environment.Variables };
}

async function readMapping(
  { mapping }: AwsReads,
  { physicalId, properties }: ResourceAddress,
): Promise<Properties | undefined> {
  const found = await mapping(physicalId);
  if (found === undefined) return undefined;
  const { BatchSize, BisectBatchOnFunctionError, EventSourceArn, MaximumBatchingWindowInSeconds } = found;
  const { MaximumRecordAgeInSeconds, MaximumRetryAttempts, ParallelizationFactor } = found;
  const { MetricsConfig, ProvisionedPollerConfig, ScalingConfig, StartingPosition } = found;
  const filters = listIfAny(found.FilterCriteria?.Filters?.map(({ Pattern }) => ({ Pattern })));
  return {
    BatchSize,
    BisectBatchOnFunctionError,
    DestinationConfig: destinationsOf(found.DestinationConfig),
    Enabled: READING.has(found.State ?? ''),
    EventSourceArn,
    FilterCriteria: filters && { Filters: filters },
    FunctionName: found.FunctionArn && functionAs(properties.FunctionName, found.FunctionArn),
    FunctionResponseTypes: listIfAny(found.FunctionResponseTypes),
    KmsKeyArn: found.KMSKeyArn,
    MaximumBatchingWindowInSeconds,
    MaximumRecordAgeInSeconds,
    MaximumRetryAttempts,
    MetricsConfig: listIfAny(MetricsConfig?.Metrics) && MetricsConfig,
    ParallelizationFactor,
    ProvisionedPollerConfig: setMembersIfAny({ ...ProvisionedPollerConfig }),
    ScalingConfig: setMembersIfAny({ ...ScalingConfig }),
    StartingPosition,
    TumblingWindowInSeconds: found.TumblingWindowInSeconds,
  };
}

/** Lambda answers with an empty destination if there is none. */
function destinationsOf(config: DestinationConfig | undefined): Properties | undefined {
  return setMembersIfAny({
    OnFailure: setMembersIfAny({ Destination: config?.OnFailure?.Destination }),
    OnSuccess: setMembersIfAny({ Destination: config?.OnSuccess?.Destination }),
  });
}

async function readInvokeConfig(
  { invokeConfig }: AwsReads,
  { properties }: ResourceAddress,
): Promise<Properties | undefined> {
  const { FunctionName, Qualifier = '$LATEST' } = properties;
  const found = await invokeConfig(String(FunctionName), String(Qualifier));
  if (found === undefined) return undefined;
  const { MaximumEventAgeInSeconds, MaximumRetryAttempts } = found;
  return {
    DestinationConfig: destinationsOf(found.DestinationConfig),
    MaximumEventAgeInSeconds,
    MaximumRetryAttempts,
  };
}

/** A statement of a function's policy. */
interface PolicyStatement {
  readonly Sid?: string;
  readonly Action?: string;
  readonly Principal?: string | { readonly Service?: string; readonly AWS?: string };
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A permission is a statement of the function's policy, found by its id. */
async function readPermission(
  { functionPolicy }: AwsReads,
  { physicalId, properties }: ResourceAddress,
): Promise<Properties | undefined> {
  const policy = await functionPolicy(String(properties.FunctionName));
  const { Statement: statements = [] }: { Statement?: readonly PolicyStatement[] } = JSON.parse(
    policy ?? '{}',
  );
  const id = physicalId.split('|').at(-1);
  const found = statements.find(({ Sid }) => Sid === id);
  if (found === undefined) return undefined;
  const { Action, Principal, Condition = {} } = found;
  const conditions = Object.entries(Object.assign({}, ...Object.values(Condition)));
  const condition = (key: string) => conditions.find(([name]) => name.toLowerCase() === key)?.[1];
  return {
    Action,
    FunctionUrlAuthType: condition('lambda:functionurlauthtype'),
    InvokedViaFunctionUrl: condition('lambda:invokedviafunctionurl') === 'true' || undefined,
    Principal: typeof Principal === 'object' ? (Principal.Service ?? Principal.AWS) : Principal,
    SourceAccount: condition('aws:sourceaccount'),
    SourceArn: condition('aws:sourcearn'),
  };
}

/** A function as the template names it: by its ARN, or by its name, and the alias if one is invoked. */
function functionAs(declared: unknown, arn: string): string {
  return String(declared).startsWith('arn:') ? arn : arn.split(':').slice(6).join(':');
}
