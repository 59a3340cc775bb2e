import { RULES, withNames } from './cloudformation-parts.ts';
import { list, type Parts, type Properties } from './parts.ts';
import { type Configuration, Expressions, partName } from './terraform-configuration.ts';

/** Resources that Terraform has apart, and that complete another part. */
const COMPLETING = [
  'aws_dynamodb_resource_policy',
  'aws_cloudwatch_event_bus_policy',
  'aws_cloudwatch_event_target',
  'aws_sqs_queue_redrive_allow_policy',
];

/**
 * Reads the parts of a configuration.
 *
 * @throws Error if it has a resource of a type that is not known here
 */
export function terraformParts(configuration: Configuration): Parts {
  const expressions = new Expressions(configuration);
  const parts = Object.entries(configuration.resource).flatMap(([type, byName]) => {
    if (COMPLETING.includes(type)) return [];
    const convert = PARTS[type];
    if (convert === undefined) throw new Error(`${type} is not read here`);
    return Object.keys(byName).map((name) => {
      const get = (other: string) => expressions.block(other, name);
      return [partName(type, name), convert(get(type), get)] as const;
    });
  });
  // The policies of the queues name the rule without a reference.
  const rules = Object.keys(configuration.resource.aws_cloudwatch_event_rule ?? {}).map((name) => {
    const type = 'aws_cloudwatch_event_rule';
    return { text: expressions.block(type, name).name, name: partName(type, name), arn: RULES };
  });
  return Object.fromEntries(
    parts.map(([name, [type, properties]]) => [
      name,
      { type, properties: withNames(properties, rules) as Properties },
    ]),
  );
}

/** Leaves out what is `undefined`. */
const defined = (properties: Properties): Properties => JSON.parse(JSON.stringify(properties));

type Converted = readonly [type: string, properties: Properties];
type Get = (type: string) => Properties;

const first = (blocks: readonly Properties[] | undefined): Properties => blocks?.[0] ?? {};

const PARTS: Readonly<Record<string, (block: Properties, get: Get) => Converted>> = {
  aws_dynamodb_table: table,
  aws_cloudwatch_event_bus: (_, get) => [
    'AWS::Events::EventBus',
    get('aws_cloudwatch_event_bus_policy').policy,
  ],
  aws_cloudwatch_log_group: ({ retention_in_days }) => [
    'AWS::Logs::LogGroup',
    { RetentionInDays: retention_in_days },
  ],
  aws_iam_role: ({ assume_role_policy, tags }) => [
    'AWS::IAM::Role',
    {
      Trusts: list<Properties>(assume_role_policy.Statement).map(({ Action: [Action], Principal }) => ({
        Action,
        Principal,
      })),
      Tags: Object.keys(tags),
    },
  ],
  aws_iam_role_policy: ({ role, policy }) => ['AWS::IAM::ManagedPolicy', { Roles: [role], ...policy }],
  aws_lambda_function: lambdaFunction,
  aws_lambda_function_event_invoke_config: (block) => [
    'AWS::Lambda::EventInvokeConfig',
    {
      FunctionName: block.function_name,
      MaximumEventAgeInSeconds: block.maximum_event_age_in_seconds,
      MaximumRetryAttempts: block.maximum_retry_attempts,
      Qualifier: block.qualifier ?? '$LATEST',
    },
  ],
  aws_lambda_permission: (block) => [
    'AWS::Lambda::Permission',
    {
      Action: block.action,
      FunctionName: block.function_name,
      Principal: block.principal,
      SourceArn: block.source_arn,
    },
  ],
  aws_lambda_event_source_mapping: mapping,
  aws_sqs_queue: queue,
  aws_sqs_queue_policy: ({ queue_url, policy }) => [
    'AWS::SQS::QueuePolicy',
    { Queues: [queue_url], ...policy },
  ],
  aws_cloudwatch_event_rule: rule,
  aws_ssm_parameter: ({ name, value, type, tier }) => [
    'AWS::SSM::Parameter',
    { Name: name, Type: type, Tier: tier, Value: type === 'StringList' ? value : JSON.parse(value) },
  ],
};

function table(block: Properties, get: Get): Converted {
  const { Statement } = get('aws_dynamodb_resource_policy').policy as { readonly Statement: Properties[] };
  const properties = {
    AttributeDefinitions: block.attribute.map(({ name, type }: Properties) => ({
      AttributeName: name,
      AttributeType: type,
    })),
    BillingMode: block.billing_mode,
    KeySchema: [
      { AttributeName: block.hash_key, KeyType: 'HASH' },
      { AttributeName: block.range_key, KeyType: 'RANGE' },
    ],
    DeletionProtectionEnabled: block.deletion_protection_enabled,
    PointInTimeRecoverySpecification: {
      PointInTimeRecoveryEnabled: first(block.point_in_time_recovery).enabled,
    },
    StreamSpecification: block.stream_enabled ? { StreamViewType: block.stream_view_type } : undefined,
    TimeToLiveSpecification: {
      AttributeName: first(block.ttl).attribute_name,
      Enabled: first(block.ttl).enabled,
    },
    // In CloudFormation, the policy is part of the table and cannot name it: `*` means the table.
    Statement: Statement.map((one) => ({
      ...one,
      Resource: one.Resource.map((arn: string) => (arn === '{Table.Arn}' ? '*' : arn)),
    })),
  };
  return ['AWS::DynamoDB::Table', defined(properties)];
}

function lambdaFunction(block: Properties): Converted {
  const { log_format, log_group } = first(block.logging_config);
  return [
    'AWS::Lambda::Function',
    {
      Architectures: block.architectures,
      Environment: { Variables: first(block.environment).variables },
      Handler: block.handler,
      LoggingConfig: { LogFormat: log_format, LogGroup: log_group },
      MemorySize: block.memory_size,
      Role: block.role,
      Runtime: block.runtime,
      Timeout: block.timeout,
    },
  ];
}

function mapping(block: Properties): Converted {
  const destination = first(first(block.destination_config).on_failure).destination_arn;
  const concurrency = first(block.scaling_config).maximum_concurrency;
  const properties = {
    FunctionName: block.function_name,
    EventSourceArn: block.event_source_arn,
    BatchSize: block.batch_size,
    BisectBatchOnFunctionError: block.bisect_batch_on_function_error,
    DestinationConfig: destination && { OnFailure: { Destination: destination } },
    Filters: block.filter_criteria?.flatMap(({ filter }: Properties) =>
      filter.map(({ pattern }: Properties) => JSON.parse(pattern)),
    ),
    FunctionResponseTypes: block.function_response_types,
    MaximumRecordAgeInSeconds: block.maximum_record_age_in_seconds,
    MaximumRetryAttempts: block.maximum_retry_attempts,
    ParallelizationFactor: block.parallelization_factor,
    StartingPosition: block.starting_position,
    ScalingConfig: concurrency && { MaximumConcurrency: concurrency },
  };
  return ['AWS::Lambda::EventSourceMapping', defined(properties)];
}

function queue(block: Properties, get: Get): Converted {
  const { redrive_allow_policy: allow } = get('aws_sqs_queue_redrive_allow_policy');
  const properties = {
    MessageRetentionPeriod: block.message_retention_seconds,
    SqsManagedSseEnabled: block.sqs_managed_sse_enabled,
    VisibilityTimeout: block.visibility_timeout_seconds,
    RedrivePolicy: block.redrive_policy && JSON.parse(block.redrive_policy),
    RedriveAllowPolicy: allow && JSON.parse(allow),
  };
  return ['AWS::SQS::Queue', defined(properties)];
}

function rule(block: Properties, get: Get): Converted {
  const target = get('aws_cloudwatch_event_target');
  const { maximum_event_age_in_seconds: age, maximum_retry_attempts: retries } = first(target.retry_policy);
  const properties = {
    ScheduleExpression: block.schedule_expression,
    EventBusName: block.event_bus_name,
    EventPattern: block.event_pattern && JSON.parse(block.event_pattern),
    Targets: [
      {
        Arn: target.arn,
        Input: target.input && JSON.parse(target.input),
        RetryPolicy: age && { MaximumEventAgeInSeconds: age, MaximumRetryAttempts: retries },
        DeadLetterConfig: target.dead_letter_config && { Arn: first(target.dead_letter_config).arn },
      },
    ],
  };
  return ['AWS::Events::Rule', defined(properties)];
}
