import { readdirSync, readFileSync } from 'node:fs';
import { parse } from '@cdktf/hcl2json';
import { list, type Parts, type Properties, statement } from './parts.ts';

/** The blocks of a configuration: by their kind, then by their labels. */
export interface Configuration {
  readonly resource: Readonly<Record<string, Readonly<Record<string, readonly [Properties]>>>>;
  readonly data: Readonly<Record<string, Readonly<Record<string, readonly [Properties]>>>>;
  readonly locals: Properties;
  readonly variable: Readonly<Record<string, readonly [Properties]>>;
}

/** Reads the files of a configuration. @param folder - with `/` at its end */
export async function readTerraform(folder: string): Promise<Configuration> {
  const read: Configuration = { resource: {}, data: {}, locals: {}, variable: {} };
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.tf'))) {
    const blocks = await parse(file, readFileSync(folder + file, 'utf8'));
    for (const [type, byName] of Object.entries<Properties>(blocks.resource ?? {}))
      Object.assign(read.resource, { [type]: { ...read.resource[type], ...byName } });
    for (const [type, byName] of Object.entries<Properties>(blocks.data ?? {}))
      Object.assign(read.data, { [type]: { ...read.data[type], ...byName } });
    for (const locals of list<Properties>(blocks.locals ?? [])) Object.assign(read.locals, locals);
    Object.assign(read.variable, blocks.variable);
  }
  return read;
}

/** The end of a part's name, by the type of its resource. Types that are not here are properties of another part. */
const SUFFIXES: Readonly<Record<string, string>> = {
  aws_dynamodb_table: '',
  aws_cloudwatch_event_bus: '',
  aws_cloudwatch_log_group: 'Logs',
  aws_iam_role: 'Role',
  aws_iam_role_policy: 'Grants',
  aws_lambda_function: '',
  aws_lambda_function_event_invoke_config: 'Invoke',
  aws_lambda_permission: 'Permission',
  aws_lambda_event_source_mapping: 'Mapping',
  aws_sqs_queue: '',
  aws_sqs_queue_policy: 'Policy',
  aws_cloudwatch_event_rule: '',
  aws_ssm_parameter: '',
};

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
  return Object.fromEntries(parts.map(([name, [type, properties]]) => [name, { type, properties }]));
}

/** The name of a part in the notation of the other templates: `SweepRole` of `aws_iam_role.sweep`. */
function partName(type: string, name: string): string {
  const pascal = name.replaceAll(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase());
  return pascal + (SUFFIXES[type] ?? '');
}

/** Addresses of everything that a resource waits for, directly and by references. */
export function appliedBefore(
  { resource, data, locals }: Configuration,
  address: string,
): ReadonlySet<string> {
  const found = new Set<string>();
  const look = (one: string) => {
    const [kind = '', type = '', name = ''] = one.split('.');
    const block =
      kind === 'data' ? data[type]?.[name] : kind === 'local' ? locals[type] : resource[kind]?.[type];
    for (const [next] of JSON.stringify(block ?? '').matchAll(/(?:data\.|local\.)?\w+\.\w+/g)) {
      if (found.has(next)) continue;
      found.add(next);
      look(next);
    }
  };
  look(address);
  return found;
}

/** Evaluates the few expressions that the configuration uses. */
class Expressions {
  readonly #configuration: Configuration;

  constructor(configuration: Configuration) {
    this.#configuration = configuration;
  }

  /** A resource with every expression in it evaluated; empty if there is none of that type. */
  block(type: string, name: string): Properties {
    const [found] = this.#configuration.resource[type]?.[name] ?? [];
    return (this.value(found ?? {}) ?? {}) as Properties;
  }

  value(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.value(one));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.value(one)]));
    if (typeof value !== 'string') return value;
    const [, whole] = /^\$\{([^{}]*)\}$/.exec(value) ?? [];
    if (whole !== undefined) return this.#expression(whole);
    return value
      .replaceAll(/\$\{([^}]*)\}/g, (_, expression: string) => String(this.#expression(expression)))
      .replaceAll(/(\{\w+Logs\.Arn\}):\*/g, '$1'); // CloudFormation's ARN of a log group ends so.
  }

  #expression(expression: string): unknown {
    const [, encoded] = /^jsonencode\((.*)\)$/.exec(expression) ?? [];
    if (encoded !== undefined)
      return JSON.stringify(encoded.startsWith('[') ? JSON.parse(encoded) : this.#expression(encoded));
    const [first = '', second = '', third = '', fourth] = expression.split('.');
    if (first === 'local') return this.value(this.#configuration.locals[second]);
    if (expression === 'var.name') return '{AWS::StackName}';
    if (first === 'var') return this.#configuration.variable[second]?.[0].default;
    if (second === 'aws_arn') return `{AWS::${ARN_PARTS[fourth ?? '']}}`;
    if (second === 'aws_iam_policy_document') return this.#policy(third);
    if (SUFFIXES[first] === undefined) return expression; // what is not compared, such as the archives of code
    return `{${partName(first, second)}${ATTRIBUTES[third] ?? ''}}`;
  }

  #policy(name: string): Properties {
    const [document] = this.#configuration.data.aws_iam_policy_document?.[name] ?? [{ statement: [] }];
    const statements = this.value(document.statement) as Properties[];
    return {
      Statement: statements.map(({ sid, effect = 'Allow', actions, resources, principals, condition = [] }) =>
        statement({
          Sid: sid,
          Effect: effect,
          Principal: principals && Object.fromEntries(principals.map(principalOf)),
          Action: actions,
          Resource: resources,
          ...(condition.length > 0 && { Condition: conditionOf(condition) }),
        }),
      ),
    };
  }
}

const ARN_PARTS: Readonly<Record<string, string>> = {
  partition: 'Partition',
  region: 'Region',
  account: 'AccountId',
};
const ATTRIBUTES: Readonly<Record<string, string>> = { arn: '.Arn', stream_arn: '.StreamArn' };

const principalOf = ({ type, identifiers }: Properties) => [
  type,
  identifiers.length === 1 ? identifiers[0] : identifiers,
];

function conditionOf(conditions: readonly Properties[]): Properties {
  const operators: Record<string, Properties> = {};
  for (const { test, variable, values } of conditions)
    operators[test] = { ...operators[test], [variable]: values };
  return operators;
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
    { Name: name, Type: type, Tier: tier, Value: JSON.parse(value) },
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
