import type { CompositeAlarm, MetricAlarm } from '@aws-sdk/client-cloudwatch';
import type { TableDescription } from '@aws-sdk/client-dynamodb';
import { type AwsReads, orMissing } from './aws-reads.ts';
import { UNKNOWN } from './declared-resources.ts';
import {
  type Properties,
  type PropertiesReader,
  type ResourceAddress,
  setMembers,
  setMembersIfAny,
} from './properties-reader.ts';

const TABLE_ACTIONS = [
  'dynamodb:DescribeTable',
  'dynamodb:DescribeTimeToLive',
  'dynamodb:DescribeContinuousBackups',
  'dynamodb:GetResourcePolicy',
];

const TABLE_MEMBERS = [
  'AttributeDefinitions',
  'BillingMode',
  'GlobalSecondaryIndexes',
  'KeySchema',
  'SSESpecification',
  'StreamSpecification',
  'TimeToLiveSpecification',
];

/** Members of a table; in the template of a global table, members of its replica in the region. */
const REPLICA_MEMBERS = [
  'DeletionProtectionEnabled',
  'PointInTimeRecoverySpecification',
  'ResourcePolicy',
  'TableClass',
];

const ALARM_MEMBERS = [
  'ActionsEnabled',
  'AlarmActions',
  'AlarmDescription',
  'InsufficientDataActions',
  'OKActions',
];

const METRIC_ALARM_MEMBERS = [
  ...ALARM_MEMBERS,
  'ComparisonOperator',
  'DatapointsToAlarm',
  'Dimensions',
  'EvaluateLowSampleCountPercentile',
  'EvaluationPeriods',
  'ExtendedStatistic',
  'MetricName',
  'Metrics',
  'Namespace',
  'Period',
  'Statistic',
  'Threshold',
  'ThresholdMetricId',
  'TreatMissingData',
  'Unit',
];

const COMPOSITE_ALARM_MEMBERS = [
  ...ALARM_MEMBERS,
  'ActionsSuppressor',
  'ActionsSuppressorExtensionPeriod',
  'ActionsSuppressorWaitPeriod',
  'AlarmRule',
];

/** The readers of the resources of DynamoDB, Systems Manager and CloudWatch. */
export const storageReaders: Readonly<Record<string, PropertiesReader>> = {
  'AWS::DynamoDB::Table': {
    members: [...TABLE_MEMBERS, ...REPLICA_MEMBERS],
    actions: TABLE_ACTIONS,
    read: async (reads, { physicalId }) => {
      const found = await readTable(reads, physicalId);
      return found && { ...found.table, ...found.replica };
    },
  },
  'AWS::DynamoDB::GlobalTable': {
    members: [...TABLE_MEMBERS, 'Replicas'],
    actions: TABLE_ACTIONS,
    read: readGlobalTable,
  },
  'AWS::SSM::Parameter': {
    members: ['Type', 'Value'],
    actions: ['ssm:GetParameter'],
    read: async ({ parameter }, { physicalId }) => {
      const found = await parameter(physicalId);
      return found && { Type: found.Type, Value: found.Value };
    },
  },
  'AWS::CloudWatch::Alarm': {
    members: METRIC_ALARM_MEMBERS,
    actions: ['cloudwatch:DescribeAlarms'],
    read: async ({ alarms }, { physicalId }) =>
      alarmOf((await alarms()).metric, physicalId, METRIC_ALARM_MEMBERS),
  },
  'AWS::CloudWatch::CompositeAlarm': {
    members: COMPOSITE_ALARM_MEMBERS,
    actions: ['cloudwatch:DescribeAlarms'],
    read: async ({ alarms }, { physicalId }) =>
      alarmOf((await alarms()).composite, physicalId, COMPOSITE_ALARM_MEMBERS),
  },
};

/** An alarm by its name, or by the ARN that its physical id may be. */
function alarmOf(
  alarms: readonly (MetricAlarm | CompositeAlarm)[],
  id: string,
  members: readonly string[],
): Properties | undefined {
  const found = alarms.find(({ AlarmName, AlarmArn }) => AlarmName === id || AlarmArn === id);
  if (found === undefined) return undefined;
  return setMembers(Object.fromEntries(Object.entries(found).filter(([name]) => members.includes(name))));
}

async function readTable(reads: AwsReads, name: string) {
  const found = await orMissing(() => reads.table(name));
  if (found === undefined) return undefined;
  const [expiry, recovery, policy] = await Promise.all([
    reads.expiry(name),
    reads.recovery(name),
    reads.tablePolicy(found.TableArn ?? name),
  ]);
  const { StreamEnabled, StreamViewType } = found.StreamSpecification ?? {};
  const expires = expiry?.TimeToLiveStatus === 'ENABLED' || expiry?.TimeToLiveStatus === 'ENABLING';
  const table = {
    AttributeDefinitions: found.AttributeDefinitions,
    BillingMode: found.BillingModeSummary?.BillingMode ?? 'PROVISIONED',
    GlobalSecondaryIndexes: found.GlobalSecondaryIndexes?.map(({ IndexName, KeySchema, Projection }) => ({
      IndexName,
      KeySchema,
      Projection,
    })),
    KeySchema: found.KeySchema,
    SSESpecification: encryptionOf(found),
    StreamSpecification: StreamEnabled ? { StreamViewType } : undefined,
    TimeToLiveSpecification: expires ? { AttributeName: expiry.AttributeName, Enabled: true } : undefined,
  };
  const replica = {
    DeletionProtectionEnabled: found.DeletionProtectionEnabled ?? false,
    PointInTimeRecoverySpecification: setMembers({
      PointInTimeRecoveryEnabled: recovery?.PointInTimeRecoveryStatus === 'ENABLED',
      RecoveryPeriodInDays: recovery?.RecoveryPeriodInDays,
    }),
    ResourcePolicy: policy === undefined ? undefined : { PolicyDocument: JSON.parse(policy) },
    TableClass: found.TableClassSummary?.TableClass,
  };
  return { table, replica, replicas: found.Replicas ?? [] };
}

/** `SSEEnabled` is true with a key of the account, and false with a key that DynamoDB owns. */
function encryptionOf({ SSEDescription }: TableDescription) {
  const { Status, SSEType, KMSMasterKeyArn } = SSEDescription ?? {};
  const isOn = Status === 'ENABLED' || Status === 'ENABLING' || Status === 'UPDATING';
  return setMembers({ SSEEnabled: isOn, ...(isOn && { SSEType, KMSMasterKeyId: KMSMasterKeyArn }) });
}

/** The replica in the region is read. Those in other regions are unknown. */
async function readGlobalTable(
  reads: AwsReads,
  { physicalId, properties }: ResourceAddress,
): Promise<Properties | undefined> {
  const [found, region] = await Promise.all([readTable(reads, physicalId), reads.region()]);
  if (found === undefined) return undefined;
  const { KMSMasterKeyId, ...encryption } = found.table.SSESpecification;
  const own = { Region: region, ...found.replica, SSESpecification: setMembersIfAny({ KMSMasterKeyId }) };
  const declared: readonly Properties[] = Array.isArray(properties.Replicas) ? properties.Replicas : [own];
  const others = new Set(found.replicas.map(({ RegionName }) => RegionName));
  return {
    ...found.table,
    SSESpecification: encryption,
    Replicas: declared.flatMap((replica) => {
      if (replica.Region === region) return [setMembers(own)];
      if (!others.has(String(replica.Region))) return [];
      return [
        {
          ...Object.fromEntries(Object.keys(replica).map((name) => [name, UNKNOWN])),
          Region: replica.Region,
        },
      ];
    }),
  };
}
