import type { DeployedRule } from '../../lambdas/runtime/operations/audit/audit-drift.ts';

/** The resources port: the deployed resources of a Mailroom and their settings. It only reads. */
export interface Resources {
  table(): Promise<DeployedTable>;
  hasBus(name: string): Promise<boolean>;
  /** @returns `undefined` if the bus has no such rule or does not exist */
  rule(bus: string, name: string): Promise<DeployedRule | undefined>;
  /** @returns `undefined` if the queue does not exist */
  queue(url: string): Promise<DeployedQueue | undefined>;
  /** The event source mappings of a function, or of an alias (`name:alias`); none if it does not exist. */
  mappings(functionName: string): Promise<readonly Mapping[]>;
  /** The mappings of all functions that read a queue, and are not disabled. @param arn - of the queue */
  readers(arn: string): Promise<readonly QueueReader[]>;
  /** The names of the rules on a bus that send to a queue, also of disabled ones; none if the bus does not exist. @param arn - of the queue */
  rulesTo(bus: string, arn: string): Promise<readonly string[]>;
  /** The rules on a bus that send to other buses; none if the bus does not exist. */
  forwards(bus: string): Promise<readonly DeployedForward[]>;
  /** The state of a KMS key, e.g. `Enabled`; `undefined` if it does not exist. @param id - or its ARN, or an alias */
  keyState(id: string): Promise<string | undefined>;
  /** @param name - with an alias: `name:alias`. @returns `undefined` if the function does not exist */
  function(name: string): Promise<DeployedFunction | undefined>;
  /** The functions of the account and region that write events to the table of a Mailroom. */
  writers(): Promise<readonly WritingFunction[]>;
  /** True if a Mailroom has this table. */
  hasMailroom(table: string): Promise<boolean>;
  /** The reserved concurrency of a function; `null` if none is reserved, `undefined` if the function does not exist. */
  reservedConcurrency(functionName: string): Promise<number | null | undefined>;
  concurrency(): Promise<AccountConcurrency>;
  /** The most unreserved concurrency that the account used in the last hour; `undefined` without a metric. */
  concurrencyPeak(): Promise<number | undefined>;
  /** Counts the invocations of a function in the last 15 minutes, also those by an alias. CloudWatch stores them after a minute or two. */
  invocations(functionName: string): Promise<Invocations>;
  /** @param url - of a queue */
  backlog(url: string): Promise<BacklogHistory>;
  /** All alarms of the account and region. */
  alarms(): Promise<readonly DeployedAlarm[]>;
}

/** The IAM actions of each read. */
export const READ_ACTIONS: Readonly<Record<keyof Resources, readonly string[]>> = {
  table: ['dynamodb:DescribeTable'],
  hasBus: ['events:DescribeEventBus'],
  rule: ['events:DescribeRule', 'events:ListTargetsByRule'],
  queue: ['sqs:GetQueueAttributes'],
  mappings: ['lambda:ListEventSourceMappings'],
  readers: ['lambda:ListEventSourceMappings'],
  rulesTo: ['events:ListRuleNamesByTarget'],
  forwards: ['events:ListRules', 'events:ListTargetsByRule'],
  keyState: ['kms:DescribeKey'],
  function: ['lambda:GetFunctionConfiguration'],
  writers: ['lambda:ListFunctions'],
  hasMailroom: ['ssm:GetParametersByPath'],
  reservedConcurrency: ['lambda:GetFunctionConcurrency'],
  concurrency: ['lambda:GetAccountSettings'],
  concurrencyPeak: ['cloudwatch:GetMetricData'],
  invocations: ['cloudwatch:GetMetricData'],
  backlog: ['cloudwatch:GetMetricData'],
  alarms: ['cloudwatch:DescribeAlarms'],
};

/** A rule that sends the events of one bus to another. */
export interface DeployedForward {
  readonly rule: string;
  readonly enabled: boolean;
  /** The ARN of the bus that receives them. */
  readonly to: string;
  /** The ARN of the queue for events that it did not take; `undefined` without one. */
  readonly deadLetterQueue: string | undefined;
}

/** A table. */
export interface DeployedTable {
  readonly arn: string;
  /** The ARN of its stream; `undefined` if it is off. */
  readonly streamArn: string | undefined;
  /** The ARN of the KMS key of the account that encrypts it; `undefined` with a key that DynamoDB owns. */
  readonly key: string | undefined;
}

/** A queue. */
export interface DeployedQueue {
  readonly url: string;
  readonly arn: string;
  /** The number of its messages, also of those in flight. */
  readonly messages: number;
  readonly visibilityS: number;
  readonly retentionS: number;
  /** Its redrive policy as JSON; `undefined` if it has none. */
  readonly redrive: string | undefined;
  /** The KMS key that encrypts it, as it was set; `undefined` with a key that SQS owns. */
  readonly key: string | undefined;
}

/** An event source mapping. */
export interface Mapping {
  readonly uuid: string;
  /** The ARN of the queue or stream that it reads. */
  readonly source: string;
  readonly enabled: boolean;
  /** As Lambda reports it: `Enabled`, `Disabled`, … */
  readonly state: string;
  /** Lambda is not about to change its state. */
  readonly isSettled: boolean;
  /** When it was changed last, epoch milliseconds; absent if Lambda does not say. */
  readonly changedAt?: number | undefined;
  /** Its filters as JSON: Lambda drops what none of them matches. Empty: it drops nothing. */
  readonly filters: readonly string[];
  /** The most messages or records of one invocation. */
  readonly batchSize: number | undefined;
  readonly batchingWindowMs: number | undefined;
  /** The most concurrent invocations for a queue; `undefined` for no limit. */
  readonly concurrencyMax: number | undefined;
}

/** A mapping of a function on a queue. */
export interface QueueReader {
  readonly uuid: string;
  /** The name of the function. */
  readonly function: string;
}

/** A function. */
export interface DeployedFunction {
  readonly timeoutS: number;
  /** The ARN of its role. */
  readonly role: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly memoryMb: number | undefined;
  readonly runtime: string | undefined;
  /** The name of its log group; `undefined`: the one that Lambda creates. */
  readonly logGroup: string | undefined;
  /** Lambda's reason why it cannot run; `undefined` if it can. */
  readonly failure: string | undefined;
}

/** A function that writes events. */
export interface WritingFunction extends Pick<DeployedFunction, 'environment'> {
  readonly name: string;
}

/** Concurrent executions of the account's functions in the region. */
interface AccountConcurrency {
  readonly limit: number;
  /** The part of the limit that functions without a reservation share. */
  readonly unreserved: number;
}

/** The invocations of a function. */
export interface Invocations {
  readonly invocations: number;
  /** Those that failed as a whole: the function did not start, crashed, or ran out of time. */
  readonly errors: number;
  /** The newest of them in complete minutes, after the last minute in which one was successful. */
  readonly newest: {
    readonly errors: number;
    /** Since the first of them, milliseconds; 0 without one. */
    readonly forMs: number;
  };
}

/** The last 3 hours of a queue, oldest first; a queue without activity has gaps. Times are epoch milliseconds. */
export interface BacklogHistory {
  /** The most messages of each minute that a receive could return. */
  readonly waiting: readonly { readonly at: number; readonly value: number }[];
  /** The age of the oldest message in each period of 5 minutes, milliseconds. */
  readonly agesMs: readonly { readonly at: number; readonly value: number }[];
}

/** An alarm. */
export interface DeployedAlarm {
  readonly name: string;
  readonly arn: string;
  readonly description: string;
  readonly isFiring: boolean;
  readonly actionsEnabled: boolean;
  /** The ARNs of its actions when it fires. */
  readonly actions: readonly string[];
  /** The rule of a composite alarm. */
  readonly rule: string | undefined;
}
