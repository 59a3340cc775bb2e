import type { DeclaredResource } from '../../deployment/declared-resources.ts';
import { ANY, type ResourceKind } from './resource-kind.ts';
import { isNone } from './same-value.ts';

const onTable = (command: string, { physicalId }: DeclaredResource, ...options: readonly string[]) => [
  ...['aws', 'dynamodb', command, '--table-name', physicalId],
  ...options,
];

const REPLICA = 'Replicas.*.';

/** All that an alarm does must be done. A person may add an action. */
function hasAll(declared: unknown, deployed: unknown): boolean {
  const found = Array.isArray(deployed) ? deployed : [];
  return (
    !isNone(deployed) && (Array.isArray(declared) ? declared : []).every((action) => found.includes(action))
  );
}

const alarmMembers: ResourceKind['members'] = {
  ActionsEnabled: {
    default: true,
    level: 'surroundings',
    effect: 'no one is notified',
    call: 'DisableAlarmActions',
    saidBy: ['alarm-actions-disabled'],
    set: ({ physicalId }) => ['aws', 'cloudwatch', 'enable-alarm-actions', '--alarm-names', physicalId],
  },
  AlarmActions: {
    level: 'surroundings',
    effect: 'others are notified than declared, or no one is',
    allowed: hasAll,
    saidBy: ['alarm-without-action'],
  },
  OKActions: { level: 'surroundings', allowed: hasAll },
  InsufficientDataActions: { level: 'surroundings', allowed: hasAll },
};

/**
 * Tables, parameters and alarms: defaults of
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-globaltable.html and of the pages beside it.
 */
export const storedKinds: Readonly<Record<string, ResourceKind>> = {
  'AWS::DynamoDB::GlobalTable': {
    noun: 'table',
    identity: ['TableName'],
    call: 'UpdateTable',
    gone: { level: 'flow', effect: 'events and inbox rows are lost', call: 'DeleteTable' },
    members: {
      BillingMode: { default: 'PROVISIONED', effect: 'it throttles above its provisioned capacity' },
      'SSESpecification.SSEEnabled': { default: false },
      StreamSpecification: {
        level: 'flow',
        effect: 'the stream relay cannot read events, and each waits for the sweep',
        saidBy: ['stream-off'],
      },
      TimeToLiveSpecification: {
        default: { Enabled: false },
        effect: 'rows do not expire as declared, and the table grows and costs more every day',
        call: 'UpdateTimeToLive',
        set: (resource, value) => {
          const { AttributeName, Enabled } = { ...(value as Readonly<Record<string, unknown>>) };
          const on = `Enabled=${Enabled},AttributeName=${AttributeName}`;
          return onTable('update-time-to-live', resource, '--time-to-live-specification', on);
        },
      },
      'Replicas.*': { level: 'flow' },
      [`${REPLICA}DeletionProtectionEnabled`]: {
        default: false,
        effect: 'one call deletes every event and inbox row',
        set: (resource, value) =>
          onTable(
            'update-table',
            resource,
            value ? '--deletion-protection-enabled' : '--no-deletion-protection-enabled',
          ),
      },
      [`${REPLICA}PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled`]: {
        default: false,
        effect: 'rows that are deleted or overwritten by mistake cannot be restored',
        call: 'UpdateContinuousBackups',
        set: (resource, value) => {
          const specification = [
            '--point-in-time-recovery-specification',
            `PointInTimeRecoveryEnabled=${value}`,
          ];
          return onTable('update-continuous-backups', resource, ...specification);
        },
      },
      [`${REPLICA}ResourcePolicy.PolicyDocument`]: {
        form: 'policy',
        level: 'flow',
        effect:
          'an event whose inbox row is deleted or replaced can be processed twice, or callers that need the table are refused',
        call: 'PutResourcePolicy',
      },
      [`${REPLICA}SSESpecification.KMSMasterKeyId`]: {
        form: 'key',
        level: 'flow',
        effect: 'callers that may not use the other key are refused',
      },
      [`${REPLICA}TableClass`]: { default: 'STANDARD', effect: 'it costs another price than declared' },
    },
  },
  'AWS::SSM::Parameter': {
    noun: 'parameter',
    identity: ['Name'],
    call: 'PutParameter',
    gone: {
      level: 'flow',
      effect: 'no command, alarm or audit sees what it describes',
      call: 'DeleteParameter',
      saidBy: ['no-entry'],
    },
    members: {
      Value: {
        level: 'flow',
        effect: 'commands, the sweep and the audit work with what it describes',
        saidBy: ['bad-entry'],
      },
    },
  },
  'AWS::CloudWatch::Alarm': {
    noun: 'alarm',
    identity: ['AlarmName'],
    call: 'PutMetricAlarm',
    gone: {
      level: 'surroundings',
      effect: 'no one is notified',
      call: 'DeleteAlarms',
      saidBy: ['no-alarms'],
    },
    members: {
      ...alarmMembers,
      AlarmDescription: { allowed: ANY },
      TreatMissingData: { default: 'missing', level: 'surroundings' },
      DatapointsToAlarm: {
        default: ({ properties }: DeclaredResource) => properties.EvaluationPeriods,
        level: 'surroundings',
      },
    },
  },
  'AWS::CloudWatch::CompositeAlarm': {
    noun: 'alarm',
    identity: ['AlarmName'],
    call: 'PutCompositeAlarm',
    gone: {
      level: 'surroundings',
      effect: 'no one is notified',
      call: 'DeleteAlarms',
      saidBy: ['no-alarms'],
    },
    members: { ...alarmMembers, AlarmDescription: { allowed: ANY } },
  },
};
