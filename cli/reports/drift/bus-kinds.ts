import type { DeclaredResource } from '../../deployment/declared-resources.ts';
import { withoutOthers } from './bus-policy.ts';
import type { Member, ResourceKind } from './resource-kind.ts';
import { hasUnknown, isNone } from './same-value.ts';

const ruleName = ({ physicalId }: DeclaredResource) => physicalId.slice(physicalId.lastIndexOf('|') + 1);

/** The bus of a rule: its physical id is `bus|rule`, except on the default bus. */
function ruleWords({ physicalId }: DeclaredResource): string[] {
  const bus = physicalId.split('|').slice(0, -1);
  return [
    '--name',
    physicalId.slice(physicalId.lastIndexOf('|') + 1),
    ...bus.flatMap((name) => ['--event-bus-name', name]),
  ];
}

/** The words that put all declared targets. One that was added stays, and a deployment removes it. */
const putTargets: Member['set'] = (resource) => {
  const { Targets } = resource.properties;
  if (hasUnknown(Targets)) return [];
  const [, name = '', ...bus] = ruleWords(resource);
  return ['aws', 'events', 'put-targets', '--rule', name, ...bus, '--targets', JSON.stringify(Targets)];
};

const ALTERED: Member = {
  set: putTargets,
  level: 'flow',
  effect:
    'EventBridge changes what its target receives. Until this is restored, do not discard unreadable messages: they are events',
  call: 'PutTargets',
  saidBy: ['target-input'],
  losesEvents: true,
};

/** Buses and rules: defaults of https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_Events.html. */
export const busKinds: Readonly<Record<string, ResourceKind>> = {
  'AWS::Events::Rule': {
    noun: 'rule',
    identity: ['EventBusName', 'Name'],
    nameOf: ruleName,
    call: 'PutRule',
    gone: {
      level: 'flow',
      effect: 'it sends nothing',
      call: 'DeleteRule',
      saidBy: ['no-rule', 'no-bus'],
      losesEvents: true,
    },
    members: {
      State: {
        default: 'ENABLED',
        level: 'flow',
        effect: 'it sends nothing',
        call: 'DisableRule',
        saidBy: ['rule-disabled'],
        losesEvents: true,
        set: (resource) => ['aws', 'events', 'enable-rule', ...ruleWords(resource)],
      },
      EventPattern: {
        level: 'flow',
        effect: 'its target receives other events than declared',
        saidBy: ['pattern'],
        losesEvents: true,
      },
      ScheduleExpression: { level: 'flow', effect: 'it runs its target at other times than declared' },
      RoleArn: {},
      'Targets.*': {
        level: 'flow',
        effect: (declared) =>
          isNone(declared) ? 'what it matches is sent there, too' : 'what it matches is not sent there',
        call: 'PutTargets',
        saidBy: ['target'],
        losesEvents: true,
      },
      'Targets.*.*': { set: putTargets, level: 'flow', call: 'PutTargets' },
      'Targets.*.Arn': {
        set: putTargets,
        level: 'flow',
        effect: 'what it matches is sent elsewhere',
        call: 'PutTargets',
        saidBy: ['target'],
        losesEvents: true,
      },
      'Targets.*.DeadLetterConfig': {
        set: putTargets,
        level: 'flow',
        effect: 'events that its target does not accept are lost after 24 hours, or at once',
        call: 'PutTargets',
        losesEvents: true,
      },
      'Targets.*.Input': ALTERED,
      'Targets.*.InputPath': ALTERED,
      'Targets.*.InputTransformer': ALTERED,
      'Targets.*.RetryPolicy': {
        set: putTargets,
        default: { MaximumEventAgeInSeconds: 86_400, MaximumRetryAttempts: 185 },
        effect: 'EventBridge stops retrying a delivery earlier or later than declared',
        call: 'PutTargets',
      },
    },
  },
  'AWS::Events::EventBus': {
    noun: 'bus',
    identity: ['Name'],
    call: 'UpdateEventBus',
    gone: { level: 'flow', call: 'DeleteEventBus', saidBy: ['no-bus'], losesEvents: true },
    members: {
      DeadLetterConfig: {},
      KmsKeyIdentifier: {
        form: 'key',
        level: 'flow',
        effect: 'rules whose role may not use the other key send nothing',
      },
      Policy: {
        form: 'policy',
        level: 'flow',
        effect: 'publishers are refused, or others can forge events',
        call: 'PutPermission',
        without: withoutOthers,
      },
    },
  },
  'AWS::Events::EventBusPolicy': {
    noun: 'policy of the bus',
    identity: ['EventBusName', 'StatementId'],
    nameOf: ({ properties }) => String(properties.EventBusName),
    call: 'PutPermission',
    gone: {
      level: 'flow',
      effect: 'publishers are refused, or others can forge events',
      call: 'RemovePermission',
    },
    members: {
      Statement: { level: 'flow', effect: 'publishers are refused, or others can forge events' },
    },
  },
};
