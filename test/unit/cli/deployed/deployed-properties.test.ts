import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type AwsReads, awsReads } from '../../../../cli/deployment/aws-reads.ts';
import { UNKNOWN } from '../../../../cli/deployment/declared-resources.ts';
import { deployedProperties, READERS } from '../../../../cli/deployment/deployed-properties.ts';
import type { Properties, ResourceAddress } from '../../../../cli/deployment/properties-reader.ts';

interface Fixture {
  /** Answers of the local engine about the order system, by read and resource. */
  readonly answers: Readonly<Record<string, unknown>>;
  readonly resources: readonly (ResourceAddress & { readonly deployed: Properties })[];
}

const fixture: Fixture = JSON.parse(readFileSync(new URL('./engine-answers.json', import.meta.url), 'utf8'));

const QUEUE = 'https://sqs.eu-west-1.amazonaws.com/111122223333/things';

/** Reads that return stored answers, and the requests made. */
function answering(answers: Readonly<Record<string, unknown>>) {
  const requests: string[] = [];
  const read =
    (name: string) =>
    async (...of: string[]) => {
      const request = [name, ...of].join(' ');
      requests.push(request);
      return answers[request];
    };
  const reads = new Proxy(
    {},
    {
      get: (_, name) => read(String(name)),
      ownKeys: () => NAMES,
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    },
  );
  return { reads: reads as AwsReads, requests };
}

const NAMES = Object.keys(awsReads({} as never));

function read(
  type: string,
  physicalId: string,
  answers: Readonly<Record<string, unknown>>,
  properties: Properties = {},
) {
  return deployedProperties(answering(answers).reads).of({ type, physicalId, properties });
}

describe('the answers of the local engine', () => {
  test.each(fixture.resources)('$type $physicalId is read in the form of a template', async (resource) => {
    const { deployed, ...address } = resource;
    expect(await deployedProperties(answering(fixture.answers).reads).of(address)).toEqual(deployed);
    expect(READERS[resource.type]?.members).toEqual(expect.arrayContaining(Object.keys(deployed)));
  });

  test('a queue and its policy are read with one request', async () => {
    const { reads, requests } = answering({
      [`queue ${QUEUE}`]: { Policy: '{"Statement":[]}', VisibilityTimeout: '30' },
    });
    const port = deployedProperties(reads);
    const [queue, policy] = await Promise.all([
      port.of({ type: 'AWS::SQS::Queue', physicalId: QUEUE, properties: {} }),
      port.of({ type: 'AWS::SQS::QueuePolicy', physicalId: 'any', properties: { Queues: [QUEUE] } }),
    ]);
    expect(queue).toEqual({ VisibilityTimeout: 30 });
    expect(policy).toEqual({ PolicyDocument: { Statement: [] } });
    expect(requests).toEqual([`queue ${QUEUE}`]);
  });

  test('all alarms are read with one request', async () => {
    const { reads, requests } = answering({
      alarms: {
        metric: [{ AlarmName: 'stuck', Threshold: 1, StateValue: 'OK' }],
        composite: [{ AlarmName: 'page', AlarmRule: 'ALARM(stuck)', StateValue: 'OK' }],
      },
    });
    const port = deployedProperties(reads);
    const alarms = [
      await port.of({ type: 'AWS::CloudWatch::Alarm', physicalId: 'stuck', properties: {} }),
      await port.of({ type: 'AWS::CloudWatch::Alarm', physicalId: 'deleted', properties: {} }),
      await port.of({ type: 'AWS::CloudWatch::CompositeAlarm', physicalId: 'page', properties: {} }),
    ];
    expect(alarms).toEqual([{ Threshold: 1 }, undefined, { AlarmRule: 'ALARM(stuck)' }]);
    expect(requests).toEqual(['alarms']);
  });
});

describe('resources that the order system on the local engine does not have', () => {
  test.each(Object.keys(READERS))('%s that does not exist is undefined', async (type) => {
    const properties = { FunctionName: 'any', Queues: [QUEUE], EventBusName: 'any', StatementId: 'any' };
    expect(await read(type, 'any', { alarms: { metric: [], composite: [] } }, properties)).toBeUndefined();
  });

  test('a function with all settings is read', async () => {
    const found = await read('AWS::Lambda::Function', 'pay', {
      'function pay': {
        Timeout: 30,
        KMSKeyArn: 'arn:aws:kms:x:1:key/k',
        Layers: [{ Arn: 'arn:aws:lambda:x:1:layer:l:3', CodeSize: 5 }],
        VpcConfig: { SubnetIds: ['subnet-1'], SecurityGroupIds: ['sg-1'], VpcId: 'vpc-1' },
        DeadLetterConfig: { TargetArn: 'arn:aws:sqs:x:1:q' },
        Environment: { Variables: { LEASE_MS: '6000' } },
        SnapStart: { ApplyOn: 'None', OptimizationStatus: 'Off' },
      },
      'reservedConcurrency pay': 0,
    });
    expect(found).toEqual({
      Timeout: 30,
      KmsKeyArn: 'arn:aws:kms:x:1:key/k',
      Layers: ['arn:aws:lambda:x:1:layer:l:3'],
      VpcConfig: { SubnetIds: ['subnet-1'], SecurityGroupIds: ['sg-1'] },
      DeadLetterConfig: { TargetArn: 'arn:aws:sqs:x:1:q' },
      Environment: { Variables: { LEASE_MS: '6000' } },
      SnapStart: { ApplyOn: 'None' },
      ReservedConcurrentExecutions: 0,
    });
  });

  test('a function without settings has none, although Lambda answers with empty ones', async () => {
    const found = await read('AWS::Lambda::Function', 'pay', {
      'function pay': { VpcConfig: { SubnetIds: [], SecurityGroupIds: [], VpcId: '' }, Layers: [] },
      'reservedConcurrency pay': null,
    });
    expect(found).toEqual({});
  });

  test('the variables of a function are unknown while Lambda cannot decrypt them', async () => {
    const Environment = { Error: { ErrorCode: 'KMSDisabledException', Message: 'The key is disabled' } };
    expect(await read('AWS::Lambda::Function', 'pay', { 'function pay': { Environment } })).toEqual({
      Environment: UNKNOWN,
    });
  });

  test('the attributes of a queue are numbers, flags and policies', async () => {
    const found = await read('AWS::SQS::Queue', QUEUE, {
      [`queue ${QUEUE}`]: {
        QueueArn: 'arn:aws:sqs:x:1:things',
        ApproximateNumberOfMessages: '7',
        KmsMasterKeyId: 'alias/k',
        SqsManagedSseEnabled: 'false',
        DelaySeconds: '0',
        RedrivePolicy: '{"deadLetterTargetArn":"arn:aws:sqs:x:1:dead","maxReceiveCount":"20"}',
        Policy: '',
      },
    });
    expect(found).toEqual({
      KmsMasterKeyId: 'alias/k',
      SqsManagedSseEnabled: false,
      DelaySeconds: 0,
      RedrivePolicy: { deadLetterTargetArn: 'arn:aws:sqs:x:1:dead', maxReceiveCount: 20 },
    });
  });

  test('queues of one policy that differ are both returned', async () => {
    const policies = { 'queue a': { Policy: '{"Version":"1"}' }, 'queue b': { Policy: '{"Version":"2"}' } };
    const properties = { Queues: ['a', 'b'] };
    expect(await read('AWS::SQS::QueuePolicy', 'any', policies, properties)).toEqual({
      PolicyDocument: [{ Version: '1' }, { Version: '2' }],
    });
  });

  test.each(['things|sent', 'arn:aws:events:eu-west-1:111122223333:rule/things/sent'])(
    'the targets of the rule %s are read with all settings',
    async (physicalId) => {
      const target = {
        Id: 'Target0',
        Arn: 'arn:aws:sqs:x:1:q',
        Input: undefined,
        InputPath: '$.detail',
        InputTransformer: { InputPathsMap: { id: '$.id' }, InputTemplate: '<id>' },
        SqsParameters: { MessageGroupId: 'g' },
      };
      const answers = { 'rule things sent': { State: 'DISABLED' }, 'targets things sent': [target] };
      const { Input: _, ...set } = target;
      expect(await read('AWS::Events::Rule', physicalId, answers)).toEqual({
        State: 'DISABLED',
        Targets: [set],
      });
    },
  );

  test('a bus and the statement of its policy are read', async () => {
    const statement = { Sid: 'put', Effect: 'Allow' };
    const answers = {
      'bus things': {
        KmsKeyIdentifier: 'k',
        DeadLetterConfig: { Arn: 'arn:aws:sqs:x:1:q' },
        Policy: JSON.stringify({ Statement: [{ Sid: 'other' }, statement] }),
      },
    };
    expect(await read('AWS::Events::EventBus', 'things', answers)).toEqual({
      KmsKeyIdentifier: 'k',
      DeadLetterConfig: { Arn: 'arn:aws:sqs:x:1:q' },
      Policy: { Statement: [{ Sid: 'other' }, statement] },
    });
    const properties = { EventBusName: 'things', StatementId: 'put' };
    expect(await read('AWS::Events::EventBusPolicy', 'any', answers, properties)).toEqual({
      Statement: statement,
    });
  });

  const TABLE = {
    TableArn: 'arn:aws:dynamodb:eu-west-1:1:table/t',
    DeletionProtectionEnabled: true,
    SSEDescription: { Status: 'ENABLED', SSEType: 'KMS', KMSMasterKeyArn: 'arn:aws:kms:x:1:key/k' },
    Replicas: [{ RegionName: 'us-east-1' }],
  };
  const ABOUT_TABLE = {
    region: 'eu-west-1',
    'table t': TABLE,
    'recovery t': { PointInTimeRecoveryStatus: 'ENABLED', RecoveryPeriodInDays: 35 },
    'expiry t': { TimeToLiveStatus: 'DISABLED' },
  };

  test('a table without a stream and TTL is read', async () => {
    expect(await read('AWS::DynamoDB::Table', 't', ABOUT_TABLE)).toEqual({
      BillingMode: 'PROVISIONED',
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true, RecoveryPeriodInDays: 35 },
      SSESpecification: { SSEEnabled: true, SSEType: 'KMS', KMSMasterKeyId: 'arn:aws:kms:x:1:key/k' },
    });
  });

  test('the replica in the region is read, another one is unknown, and a deleted one is absent', async () => {
    const Replicas = ['eu-west-1', 'us-east-1', 'ap-south-1'].map((Region) => ({
      Region,
      TableClass: 'STANDARD',
    }));
    const found = await read('AWS::DynamoDB::GlobalTable', 't', ABOUT_TABLE, { Replicas });
    expect(found).toEqual({
      BillingMode: 'PROVISIONED',
      SSESpecification: { SSEEnabled: true, SSEType: 'KMS' },
      Replicas: [
        {
          Region: 'eu-west-1',
          DeletionProtectionEnabled: true,
          PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true, RecoveryPeriodInDays: 35 },
          SSESpecification: { KMSMasterKeyId: 'arn:aws:kms:x:1:key/k' },
        },
        { Region: 'us-east-1', TableClass: UNKNOWN },
      ],
    });
  });
});
