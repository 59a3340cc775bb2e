import { expect, test } from 'vitest';
import { READERS } from '../../cli/deployment/deployed-properties.ts';
import { STACKS, synthStage } from './synth.ts';

/** Types of the order system's templates that are not read. */
const TYPES_NOT_READ = [
  'AWS::CloudWatch::Dashboard',
  'AWS::Events::Archive',
  'AWS::IAM::ManagedPolicy', // `doctor` simulates what the roles may do
  'AWS::IAM::Role',
  'AWS::KMS::Key',
  'AWS::Lambda::Url',
  'AWS::Logs::LogGroup', // its retention is a person's choice
  'AWS::SNS::Topic',
  'AWS::SNS::TopicPolicy',
];

/** Members that are not read: what names a resource leads to it, and descriptions and tags change nothing that it does. */
const MEMBERS_NOT_READ: Readonly<Record<string, readonly string[]>> = {
  'AWS::CloudWatch::Alarm': [],
  'AWS::CloudWatch::CompositeAlarm': ['AlarmName'],
  'AWS::DynamoDB::GlobalTable': [],
  'AWS::Events::EventBus': ['Description', 'Name', 'Tags'],
  'AWS::Events::Rule': ['Description', 'EventBusName', 'Name', 'Tags'],
  'AWS::Lambda::EventInvokeConfig': ['FunctionName', 'Qualifier'],
  'AWS::Lambda::EventSourceMapping': ['Tags'],
  'AWS::Lambda::Function': ['Code', 'Description', 'Tags'],
  'AWS::Lambda::Permission': ['FunctionName'],
  'AWS::SQS::Queue': ['QueueName', 'Tags'],
  'AWS::SQS::QueuePolicy': ['Queues'],
  'AWS::SSM::Parameter': ['Description', 'Name', 'Tags', 'Tier'],
};

/** The members that the templates of the order system set, by type. */
function declaredMembers(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const stage of ['local', 'prod'] as const)
    for (const stack of STACKS)
      for (const resource of Object.values(synthStage(stage).templates[stack].toJSON().Resources)) {
        const { Type, Properties = {} } = resource as { Type: string; Properties?: object };
        const members = found.get(Type) ?? new Set();
        for (const name of Object.keys(Properties)) members.add(name);
        found.set(Type, members);
      }
  return found;
}

test('every type that the order system declares is read, or named as not read', () => {
  const types = [...declaredMembers().keys()].filter((type) => READERS[type] === undefined);
  expect(types.toSorted()).toEqual(TYPES_NOT_READ);
});

test('every member that the order system declares is read, or named as not read', () => {
  const notRead = [...declaredMembers()].flatMap(([type, members]) => {
    const reader = READERS[type];
    if (reader === undefined) return [];
    return [[type, [...members].filter((name) => !reader.members.includes(name)).toSorted()]];
  });
  expect(Object.fromEntries(notRead)).toEqual(MEMBERS_NOT_READ);
});
