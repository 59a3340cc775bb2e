import { CloudWatchClient, EnableAlarmActionsCommand } from '@aws-sdk/client-cloudwatch';
import {
  DynamoDBClient,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import { EnableRuleCommand, EventBridgeClient, PutTargetsCommand } from '@aws-sdk/client-eventbridge';
import {
  DeleteFunctionConcurrencyCommand,
  type FunctionResponseType,
  LambdaClient,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { SetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';

/** The options of a line that are not yet read. */
interface Options {
  /** Reads an option's only value. */
  one(name: string): string;
  /** Reads an option's values; none if the line does not have it. */
  any(name: string): string[];
  /** Reads a flag. */
  flag(name: string): boolean;
}

/** Settings of a client. */
interface Settings {
  readonly region: string;
  readonly endpoint: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** The commands of the AWS CLI that are printed, each as the call that the CLI makes. */
const COMMANDS: Readonly<Record<string, (settings: Settings, options: Options) => Promise<unknown>>> = {
  'events enable-rule': (settings, { one, any }) =>
    new EventBridgeClient(settings).send(
      new EnableRuleCommand({ Name: one('--name'), EventBusName: any('--event-bus-name')[0] }),
    ),
  'events put-targets': (settings, { one }) =>
    new EventBridgeClient(settings).send(
      new PutTargetsCommand({
        Rule: one('--rule'),
        EventBusName: one('--event-bus-name'),
        Targets: JSON.parse(one('--targets')),
      }),
    ),
  'lambda update-event-source-mapping': (settings, { one, any, flag }) => {
    const [destination] = any('--destination-config');
    const [filters] = any('--filter-criteria');
    const types = any('--function-response-types');
    return new LambdaClient(settings).send(
      new UpdateEventSourceMappingCommand({
        UUID: one('--uuid'),
        ...(flag('--enabled') ? { Enabled: true } : {}),
        ...(flag('--bisect-batch-on-function-error') ? { BisectBatchOnFunctionError: true } : {}),
        ...(types.length > 0 ? { FunctionResponseTypes: types as FunctionResponseType[] } : {}),
        ...(filters === undefined ? {} : { FilterCriteria: JSON.parse(filters) }),
        ...(destination === undefined ? {} : { DestinationConfig: JSON.parse(destination) }),
      }),
    );
  },
  'lambda delete-function-concurrency': (settings, { one }) =>
    new LambdaClient(settings).send(
      new DeleteFunctionConcurrencyCommand({ FunctionName: one('--function-name') }),
    ),
  'dynamodb update-time-to-live': (settings, { one }) => {
    const { Enabled, AttributeName } = shorthand(one('--time-to-live-specification'));
    const TimeToLiveSpecification = { Enabled: Enabled === 'true', AttributeName };
    return new DynamoDBClient(settings).send(
      new UpdateTimeToLiveCommand({ TableName: one('--table-name'), TimeToLiveSpecification }),
    );
  },
  'dynamodb update-table': (settings, { one, flag }) =>
    new DynamoDBClient(settings).send(
      new UpdateTableCommand({
        TableName: one('--table-name'),
        ...(flag('--deletion-protection-enabled') ? { DeletionProtectionEnabled: true } : {}),
        ...(flag('--no-deletion-protection-enabled') ? { DeletionProtectionEnabled: false } : {}),
      }),
    ),
  'dynamodb update-continuous-backups': (settings, { one }) => {
    const { PointInTimeRecoveryEnabled } = shorthand(one('--point-in-time-recovery-specification'));
    const PointInTimeRecoverySpecification = {
      PointInTimeRecoveryEnabled: PointInTimeRecoveryEnabled === 'true',
    };
    return new DynamoDBClient(settings).send(
      new UpdateContinuousBackupsCommand({
        TableName: one('--table-name'),
        PointInTimeRecoverySpecification,
      }),
    );
  },
  'sqs set-queue-attributes': (settings, { one }) =>
    new SQSClient({ ...settings, useQueueUrlAsEndpoint: false }).send(
      new SetQueueAttributesCommand({
        QueueUrl: one('--queue-url'),
        Attributes: shorthand(one('--attributes')),
      }),
    ),
  'cloudwatch enable-alarm-actions': (settings, { any }) =>
    new CloudWatchClient(settings).send(new EnableAlarmActionsCommand({ AlarmNames: any('--alarm-names') })),
};

/** The printed commands of the AWS CLI, without those of {@link cloudTrailLines}. */
export function awsLines(out: string): string[] {
  return lines(out, '').filter((line) => !line.includes(' cloudtrail '));
}

/** The printed commands that show who changed a part, which the local engines cannot run. */
export function cloudTrailLines(out: string): string[] {
  return lines(out, 'cloudtrail lookup-events --lookup-attributes ');
}

function lines(out: string, begin: string): string[] {
  return out.split('\n').filter((line) => line.startsWith(`    aws ${begin}`));
}

/** Runs a printed command of the AWS CLI as the CLI does: the same action, parameters, region and endpoint. */
export async function runAwsLine(line: string): Promise<void> {
  const [program, service, operation, ...words] = wordsOf(line);
  const left = optionsOf(words);
  const any = (name: string): string[] => {
    const values = left.get(name) ?? [];
    left.delete(name);
    return values;
  };
  const one = (name: string): string => {
    const [value, ...others] = any(name);
    if (value === undefined || others.length > 0) throw new Error(`"${line}" has no single ${name}`);
    return value;
  };
  const flag = (name: string): boolean => {
    const isGiven = left.has(name);
    if (any(name).length > 0) throw new Error(`"${line}": ${name} takes no value`);
    return isGiven;
  };
  const settings = {
    region: one('--region'),
    endpoint: one('--endpoint-url'),
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  };
  // Without credentials, which the local engine does not want, the CLI runs nothing that it would sign.
  if (!flag('--no-sign-request')) throw new Error(`"${line}" wants credentials`);
  const run = program === 'aws' ? COMMANDS[`${service} ${operation}`] : undefined;
  if (run === undefined) throw new Error(`No test runs "${line}"`);
  await run(settings, { one, any, flag });
  if (left.size > 0) throw new Error(`"${line}" has more options: ${[...left.keys()].join(', ')}`);
}

/** The words of a line as a POSIX shell reads them, of the quotes only single ones. */
function wordsOf(line: string): string[] {
  return [...line.trim().matchAll(/(?:'[^']*'|\\.|[^\s'])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|\\(.)/g, (_all, quoted?: string, escaped?: string) => quoted ?? escaped ?? ''),
  );
}

/** Options with their values; a flag has none. */
function optionsOf(words: readonly string[]): Map<string, string[]> {
  const options = new Map<string, string[]>();
  let current: string[] = [];
  for (const word of words) {
    if (word.startsWith('--')) {
      current = [];
      options.set(word, current);
    } else current.push(word);
  }
  return options;
}

/** The shorthand syntax of the AWS CLI for a structure: `Key=value,Key=value`. */
function shorthand(text: string): Record<string, string> {
  return Object.fromEntries(text.split(',').map((pair) => pair.split('=') as [string, string]));
}
