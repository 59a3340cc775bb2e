import type { DeclaredResource } from '../../../../cli/deployment/declared-resources.ts';

const stack = { stack: 'mailroom-dev-things', stackPath: 'dev/Things' };

const QUEUE = 'https://sqs.eu-west-1.amazonaws.com/111122223333/worker-queue';
const QUEUE_ARN = 'arn:aws:sqs:eu-west-1:111122223333:worker-queue';
const KEY = 'arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555';

/** A policy with one statement. */
export function policyOf(...sids: readonly string[]) {
  return {
    Version: '2012-10-17',
    Statement: sids.map((Sid) => ({
      Sid,
      Effect: 'Allow',
      Action: `sqs:${Sid}`,
      Principal: { Service: 'events.amazonaws.com' },
      Resource: QUEUE_ARN,
    })),
  };
}

function sample(type: string, physicalId: string, properties: object): DeclaredResource {
  const logicalId = type.replace(/^.*::/, 'Worker');
  return { type, logicalId, physicalId, stack, part: 'worker', properties: { ...properties } };
}

/** A resource of each kind. */
export const samples: readonly DeclaredResource[] = [
  sample('AWS::SQS::Queue', QUEUE, {
    VisibilityTimeout: 180,
    MessageRetentionPeriod: 1_209_600,
    KmsMasterKeyId: KEY,
    RedrivePolicy: { deadLetterTargetArn: `${QUEUE_ARN}-dead`, maxReceiveCount: 105 },
    RedriveAllowPolicy: { redrivePermission: 'denyAll' },
  }),
  sample('AWS::SQS::QueuePolicy', 'policy', { Queues: [QUEUE], PolicyDocument: policyOf('SendMessage') }),
  sample('AWS::Lambda::Function', 'worker-function', {
    Environment: { Variables: { MAILROOM_LEASE_MS: '30000', MAILROOM_SHARDS: '8', API_KEY: 'secret' } },
    LoggingConfig: { LogFormat: 'JSON', LogGroup: 'worker-logs' },
    MemorySize: 512,
    Role: 'arn:aws:iam::111122223333:role/worker',
    Timeout: 30,
  }),
  sample('AWS::Lambda::EventSourceMapping', 'worker-mapping', {
    EventSourceArn: QUEUE_ARN,
    FunctionName: 'worker-function',
    FunctionResponseTypes: ['ReportBatchItemFailures'],
    ScalingConfig: { MaximumConcurrency: 100 },
  }),
  sample('AWS::Lambda::EventInvokeConfig', 'config', {
    FunctionName: 'worker-function',
    MaximumRetryAttempts: 0,
  }),
  sample('AWS::Lambda::Permission', 'permission', { FunctionName: 'worker-function' }),
  sample('AWS::Events::Rule', 'bus|worker-rule', {
    EventPattern: { source: ['orders'], 'detail-type': ['OrderPlaced', 'OrderExpired'] },
    State: 'ENABLED',
    Targets: [{ Id: 'Target0', Arn: QUEUE_ARN, DeadLetterConfig: { Arn: `${QUEUE_ARN}-undelivered` } }],
  }),
  sample('AWS::Events::EventBus', 'bus', {
    Name: 'bus',
    KmsKeyIdentifier: KEY,
    Policy: policyOf('PutEvents'),
  }),
  sample('AWS::Events::EventBusPolicy', 'guard', {
    EventBusName: 'bus',
    StatementId: 'Guard',
    Statement: { Effect: 'Deny', Action: 'events:PutEvents' },
  }),
  sample('AWS::DynamoDB::GlobalTable', 'Mailroom', {
    BillingMode: 'PAY_PER_REQUEST',
    SSESpecification: { SSEEnabled: true },
    StreamSpecification: { StreamViewType: 'NEW_IMAGE' },
    TimeToLiveSpecification: { AttributeName: 'expiresAt', Enabled: true },
    Replicas: [
      {
        Region: 'eu-west-1',
        DeletionProtectionEnabled: true,
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        ResourcePolicy: { PolicyDocument: policyOf('DeleteItem') },
        SSESpecification: { KMSMasterKeyId: KEY },
      },
    ],
  }),
  sample('AWS::SSM::Parameter', '/mailroom/Mailroom/consumers/worker', {
    Value: '{"name":"worker","shards":8}',
  }),
  sample('AWS::CloudWatch::Alarm', 'worker-stuck', {
    AlarmActions: ['arn:aws:sns:eu-west-1:111122223333:page'],
    AlarmDescription: 'Stuck.',
    EvaluationPeriods: 5,
  }),
  sample('AWS::CloudWatch::CompositeAlarm', 'worker-slow', {
    AlarmActions: ['arn:aws:sns:eu-west-1:111122223333:page'],
    AlarmRule: 'ALARM("a")',
  }),
];
