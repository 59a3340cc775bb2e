import type { AwsReads } from './aws-reads.ts';
import {
  type Properties,
  type PropertiesReader,
  type ResourceAddress,
  setMembers,
  setMembersIfAny,
} from './properties-reader.ts';

/** Attributes of a queue that a template sets as numbers. */
const QUEUE_NUMBERS = [
  'DelaySeconds',
  'KmsDataKeyReusePeriodSeconds',
  'MaximumMessageSize',
  'MessageRetentionPeriod',
  'ReceiveMessageWaitTimeSeconds',
  'VisibilityTimeout',
] as const;

const QUEUE_FLAGS = ['ContentBasedDeduplication', 'FifoQueue', 'SqsManagedSseEnabled'] as const;

const QUEUE_TEXTS = ['DeduplicationScope', 'FifoThroughputLimit', 'KmsMasterKeyId'] as const;

/** The readers of the resources of SQS and EventBridge. */
export const messagingReaders: Readonly<Record<string, PropertiesReader>> = {
  'AWS::SQS::Queue': {
    members: [...QUEUE_NUMBERS, ...QUEUE_FLAGS, ...QUEUE_TEXTS, 'RedriveAllowPolicy', 'RedrivePolicy'],
    actions: ['sqs:GetQueueAttributes'],
    read: readQueue,
  },
  'AWS::SQS::QueuePolicy': {
    members: ['PolicyDocument'],
    actions: ['sqs:GetQueueAttributes'],
    read: readQueuePolicy,
  },
  'AWS::Events::Rule': {
    members: ['EventPattern', 'RoleArn', 'ScheduleExpression', 'State', 'Targets'],
    actions: ['events:DescribeRule', 'events:ListTargetsByRule'],
    read: readRule,
  },
  'AWS::Events::EventBus': {
    members: ['DeadLetterConfig', 'KmsKeyIdentifier', 'Policy'],
    actions: ['events:DescribeEventBus'],
    read: readBus,
  },
  'AWS::Events::EventBusPolicy': {
    members: ['Statement'],
    actions: ['events:DescribeEventBus'],
    read: readBusPolicy,
  },
};

async function readQueue(
  { queue }: AwsReads,
  { physicalId }: ResourceAddress,
): Promise<Properties | undefined> {
  const found = await queue(physicalId);
  if (found === undefined) return undefined;
  const each = <Name extends keyof typeof found>(names: readonly Name[], as: (text: string) => unknown) =>
    names.flatMap((name) => {
      const text = found[name];
      return text === undefined ? [] : [[name, as(text)] as const];
    });
  return {
    ...Object.fromEntries([
      ...each(QUEUE_NUMBERS, Number),
      ...each(QUEUE_FLAGS, (text) => text === 'true'),
      ...each(QUEUE_TEXTS, (text) => text),
    ]),
    RedriveAllowPolicy: json(found.RedriveAllowPolicy),
    RedrivePolicy: redriveOf(found.RedrivePolicy),
  };
}

/** SQS stores the count as it was written: as a number, or as its text. */
function redriveOf(text: string | undefined): unknown {
  const policy = json(text);
  return policy && { ...policy, maxReceiveCount: Number(policy.maxReceiveCount) };
}

/** A policy is read from its queues; if they have several, all are returned. */
async function readQueuePolicy(
  { queue }: AwsReads,
  { properties }: ResourceAddress,
): Promise<Properties | undefined> {
  const queues = Array.isArray(properties.Queues) ? properties.Queues.map(String) : [];
  const found = await Promise.all(queues.map((url) => queue(url)));
  const texts = [...new Set(found.flatMap((attributes) => attributes?.Policy || []))];
  if (texts.length === 0) return undefined;
  return { PolicyDocument: texts.length === 1 ? json(texts[0]) : texts.map(json) };
}

async function readRule(
  { rule, targets }: AwsReads,
  resource: ResourceAddress,
): Promise<Properties | undefined> {
  const { bus, name } = ruleAt(resource);
  const found = await rule(bus, name);
  if (found === undefined) return undefined;
  return {
    EventPattern: json(found.EventPattern),
    RoleArn: found.RoleArn,
    ScheduleExpression: found.ScheduleExpression,
    State: found.State,
    Targets: (await targets(bus, name))?.map((target) => setMembers({ ...target })),
  };
}

/** The id of a rule: its ARN, `bus|name`, or its name. */
function ruleAt({ physicalId, properties }: ResourceAddress) {
  const path = physicalId.startsWith('arn:')
    ? physicalId.slice(physicalId.indexOf('/') + 1).split('/')
    : physicalId.split('|');
  const { EventBusName = 'default' } = properties;
  const [bus = '', name] = path.length > 1 ? path : [String(EventBusName), ...path];
  return { bus, name: name ?? '' };
}

async function readBus({ bus }: AwsReads, { physicalId }: ResourceAddress): Promise<Properties | undefined> {
  const found = await bus(physicalId);
  if (found === undefined) return undefined;
  const { DeadLetterConfig, KmsKeyIdentifier, Policy } = found;
  return {
    DeadLetterConfig: setMembersIfAny({ Arn: DeadLetterConfig?.Arn }),
    KmsKeyIdentifier: KmsKeyIdentifier,
    Policy: json(Policy),
  };
}

/** A policy is a statement of its bus, found by its id. */
async function readBusPolicy(
  { bus }: AwsReads,
  { properties }: ResourceAddress,
): Promise<Properties | undefined> {
  const { EventBusName = 'default', StatementId } = properties;
  const found = await bus(String(EventBusName));
  const statements: readonly { readonly Sid?: string }[] = json(found?.Policy)?.Statement ?? [];
  const Statement = statements.find(({ Sid }) => Sid === StatementId);
  return Statement && { Statement };
}

// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
function json(text: string | undefined): any {
  return text ? JSON.parse(text) : undefined;
}
