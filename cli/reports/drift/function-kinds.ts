import type { DeclaredResource } from '../../deployment/declared-resources.ts';
import { ANY, asOption, type Member, type ResourceKind } from './resource-kind.ts';
import { isNone } from './same-value.ts';

const configuration =
  (option: string): Member['set'] =>
  ({ physicalId }, value) => [
    ...['aws', 'lambda', 'update-function-configuration', '--function-name', physicalId],
    ...[`--${option}`, asOption(value)],
  ];

const mapping =
  (option: string): Member['set'] =>
  ({ physicalId }, value) => {
    if (isNone(value)) return []; // the CLI cannot unset it
    const update = ['aws', 'lambda', 'update-event-source-mapping', '--uuid', physicalId];
    if (typeof value === 'boolean') return [...update, value ? `--${option}` : `--no-${option}`];
    return [...update, `--${option}`, ...(Array.isArray(value) ? value.map(String) : [asOption(value)])];
  };

const isStream = ({ properties }: DeclaredResource) => /:dynamodb:/.test(String(properties.EventSourceArn));

const functionName = ({ properties, physicalId }: DeclaredResource) =>
  typeof properties.FunctionName === 'string'
    ? properties.FunctionName.replace(/^arn:.*:function:/, '')
    : physicalId;

const VARIABLE = 'Environment.Variables.';

/** A variable that its function and other resources must agree about. */
function agreed(effect: string): Member {
  return { level: 'flow', effect };
}

/** Variables that a person may set to see more of a function. */
const LOG_VARIABLES = Object.fromEntries(
  'AWS_LAMBDA_LOG_LEVEL LOG_LEVEL POWERTOOLS_DEV POWERTOOLS_LOG_LEVEL POWERTOOLS_LOGGER_SAMPLE_RATE'
    .split(' ')
    .map((name) => [`${VARIABLE}${name}`, { allowed: ANY }]),
);

/**
 * Functions, their event sources and their permissions: defaults of
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_Lambda.html.
 */
export const functionKinds: Readonly<Record<string, ResourceKind>> = {
  'AWS::Lambda::Function': {
    noun: 'function',
    identity: ['FunctionName'],
    call: 'UpdateFunctionConfiguration20150331v2',
    gone: { level: 'flow', call: 'DeleteFunction20150331', saidBy: ['no-function'] },
    members: {
      Timeout: {
        default: 3,
        effect: 'Lambda ends it before its work is done, or SQS redelivers messages that it still processes',
        set: configuration('timeout'),
      },
      // More memory is a usual reaction to a slow handler.
      MemorySize: {
        default: 128,
        effect: 'it runs slower, or out of memory',
        allowed: (declared, deployed) => Number(deployed) > Number(declared),
        set: configuration('memory-size'),
      },
      ReservedConcurrentExecutions: {
        level: 'flow',
        effect: 'it never runs',
        allowed: (_, deployed) => deployed !== 0,
        call: 'PutFunctionConcurrency20171031',
        saidBy: ['concurrency-zero'],
        set: ({ physicalId }, value) => {
          const command = isNone(value) ? 'delete-function-concurrency' : 'put-function-concurrency';
          const reserved = isNone(value) ? [] : ['--reserved-concurrent-executions', String(value)];
          return ['aws', 'lambda', command, '--function-name', physicalId, ...reserved];
        },
      },
      [`${VARIABLE}*`]: { effect: 'it works with another setting than declared' },
      [`${VARIABLE}MAILROOM_TABLE`]: agreed('it reads and writes the rows of another table'),
      [`${VARIABLE}MAILROOM_BUS`]: agreed('no consumer of this Mailroom receives what it publishes'),
      [`${VARIABLE}MAILROOM_SHARDS`]: agreed(
        'events in shards that the sweep does not read stay unpublished',
      ),
      [`${VARIABLE}MAILROOM_SOURCES`]: agreed('it publishes the events of other services than declared'),
      [`${VARIABLE}MAILROOM_CONSUMER`]: agreed('it keeps another inbox, so it processes events again'),
      [`${VARIABLE}MAILROOM_QUEUE_URL`]: agreed('it changes the messages of another queue'),
      [`${VARIABLE}MAILROOM_LEASE_MS`]: {
        effect:
          'another worker takes over messages that are still being processed, or after a crash they wait longer',
      },
      [`${VARIABLE}MAILROOM_VISIBILITY_TIMEOUT_MS`]: {
        effect: 'it assumes another visibility timeout than that of its queue',
      },
      [`${VARIABLE}MAILROOM_MAX_ATTEMPTS`]: {
        effect:
          'messages are rejected earlier or later than declared, or SQS dead-letters them before their attempts are used up',
      },
      [`${VARIABLE}MAILROOM_INBOX_RETENTION_DAYS`]: agreed(
        'a message that comes back after its inbox row expired is processed again',
      ),
      ...LOG_VARIABLES,
      Architectures: { default: ['x86_64'] },
      PackageType: { default: 'Zip' },
      'EphemeralStorage.Size': { default: 512 },
      'TracingConfig.Mode': { default: 'PassThrough', allowed: ANY },
      'SnapStart.ApplyOn': { default: 'None' },
      'LoggingConfig.LogFormat': { default: 'Text', effect: 'log searches and metrics find nothing' },
      'LoggingConfig.LogGroup': {
        default: ({ physicalId }: DeclaredResource) => `/aws/lambda/${physicalId}`,
      },
      'LoggingConfig.ApplicationLogLevel': { default: 'INFO', allowed: ANY },
      'LoggingConfig.SystemLogLevel': { default: 'INFO', allowed: ANY },
      KmsKeyArn: { form: 'key', effect: 'it does not start if it may not use the other key' },
      DeadLetterConfig: {},
      FileSystemConfigs: {},
      Layers: {},
      Role: { level: 'flow', effect: 'the calls that the other role may not make fail' },
      VpcConfig: { level: 'flow', effect: 'it may not reach AWS or its database' },
    },
  },
  'AWS::Lambda::EventSourceMapping': {
    noun: 'event source mapping of',
    identity: [],
    nameOf: functionName,
    call: 'UpdateEventSourceMapping20150331',
    gone: {
      level: 'flow',
      effect: 'it receives nothing',
      call: 'DeleteEventSourceMapping20150331',
      saidBy: ['no-mapping'],
    },
    members: {
      Enabled: {
        default: true,
        level: 'flow',
        saidBy: ['mapping-disabled', 'paused', 'pause-expires'],
        set: mapping('enabled'),
      },
      FilterCriteria: {
        level: 'flow',
        effect: 'Lambda drops what the filter does not match',
        saidBy: ['mapping-filter'],
        losesEvents: true,
        set: ({ physicalId }, value) => {
          const update = ['aws', 'lambda', 'update-event-source-mapping', '--uuid', physicalId];
          return [...update, '--filter-criteria', JSON.stringify(value ?? {})];
        },
      },
      FunctionResponseTypes: {
        level: 'flow',
        effect:
          'it ignores which items failed: failed messages are deleted, and failed records wait for the sweep',
        losesEvents: true,
        set: mapping('function-response-types'),
      },
      FunctionName: { form: 'name', level: 'flow', effect: 'another function receives its messages' },
      EventSourceArn: { level: 'flow' },
      BatchSize: {
        default: (resource: DeclaredResource) => (isStream(resource) ? 100 : 10),
        effect: 'it works at another speed and price than declared',
        set: mapping('batch-size'),
      },
      MaximumBatchingWindowInSeconds: {
        default: 0,
        effect:
          'Lambda collects messages for that long before it invokes the function, so every event may wait',
        set: mapping('maximum-batching-window-in-seconds'),
      },
      // A person may throttle a consumer, but not let it use up the concurrency of the account.
      ScalingConfig: {
        effect: 'it can use up the concurrency of the account, which stops all other functions',
        allowed: (_, deployed) => !isNone(deployed),
        set: mapping('scaling-config'),
      },
      DestinationConfig: {
        effect: 'discarded batches are not reported',
        set: mapping('destination-config'),
      },
      BisectBatchOnFunctionError: {
        default: false,
        effect: 'one record that crashes the function holds up its whole batch',
        set: mapping('bisect-batch-on-function-error'),
      },
      MaximumRecordAgeInSeconds: {
        default: -1,
        level: 'flow',
        effect:
          'older records are discarded and wait for the sweep, or a failing batch holds up its shard for longer',
        set: mapping('maximum-record-age-in-seconds'),
      },
      MaximumRetryAttempts: {
        default: -1,
        effect: 'a failing batch is discarded earlier, or holds up its shard for longer',
        set: mapping('maximum-retry-attempts'),
      },
      ParallelizationFactor: { default: 1, set: mapping('parallelization-factor') },
      TumblingWindowInSeconds: { default: 0, set: mapping('tumbling-window-in-seconds') },
      KmsKeyArn: { form: 'key' },
      MetricsConfig: { allowed: ANY },
      ProvisionedPollerConfig: { allowed: ANY },
    },
  },
  'AWS::Lambda::EventInvokeConfig': {
    noun: 'retry configuration of the function',
    identity: ['FunctionName', 'Qualifier'],
    nameOf: functionName,
    call: 'PutFunctionEventInvokeConfig',
    gone: {
      effect: 'Lambda repeats failed runs, and keeps their events for 6 hours',
      call: 'DeleteFunctionEventInvokeConfig',
    },
    members: {
      DestinationConfig: {},
      MaximumEventAgeInSeconds: { default: 21_600 },
      MaximumRetryAttempts: { default: 2 },
    },
  },
  'AWS::Lambda::Permission': {
    noun: 'permission to invoke',
    identity: ['FunctionName'],
    nameOf: functionName,
    call: 'RemovePermission20150331v2',
    gone: { level: 'flow', effect: 'its schedule or source cannot invoke it' },
    members: {},
  },
};
