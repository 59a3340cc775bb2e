import type { IVpc } from 'aws-cdk-lib/aws-ec2';
import { type Architecture, type Runtime, RuntimeFamily } from 'aws-cdk-lib/aws-lambda';
import type { NodejsFunctionProps } from 'aws-cdk-lib/aws-lambda-nodejs';
import type { ILogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';

/**
 * Properties of the CDK's `NodejsFunction` that a function of Mailroom passes on. Those without a comment here mean what they mean
 * there.
 *
 * @example
 * ```ts
 * const functionProps: FunctionOptions = { vpc, layers: [certificates], applicationLogLevelV2: ApplicationLogLevel.WARN };
 * ```
 */
export interface FunctionOptions
  extends Pick<
    NodejsFunctionProps,
    | 'adotInstrumentation'
    | 'allowAllIpv6Outbound'
    | 'allowAllOutbound'
    | 'applicationLogLevelV2'
    | 'codeSigningConfig'
    | 'currentVersionOptions'
    | 'depsLockFilePath'
    | 'environmentEncryption'
    | 'ephemeralStorageSize'
    | 'filesystem'
    | 'insightsVersion'
    | 'ipv6AllowedForDualStack'
    | 'layers'
    | 'paramsAndSecrets'
    | 'projectRoot'
    | 'runtimeManagementMode'
    | 'securityGroups'
    | 'systemLogLevelV2'
    | 'tracing'
    | 'vpcSubnets'
  > {
  /** @default arm64 */
  readonly architecture?: Architecture;
  /** Receives the logs instead of a log group of the function. Its retention and its key are yours. @default its own log group */
  readonly logGroup?: ILogGroup;
  /** The retention of the function's own log group. It needs no custom resource. @default one month */
  readonly logRetention?: RetentionDays;
  /** At least the consumer's `maxConcurrency`, or SQS messages would use up receives while Lambda throttles. @default none */
  readonly reservedConcurrentExecutions?: number;
  /** Node.js 20 or later; esbuild's target follows it. @default Node.js 24 */
  readonly runtime?: Runtime;
  /** The function's role also gets the permissions with which Lambda attaches it. @default no VPC */
  readonly vpc?: IVpc;
}

/** As {@link FunctionOptions}, for the functions of a Mailroom itself: they have one log group each, and share the account's concurrency. */
export interface SharedFunctionOptions
  extends Omit<FunctionOptions, 'filesystem' | 'logGroup' | 'reservedConcurrentExecutions'> {}

/** The names at run time: JavaScript and casts can pass others, and the CDK would let those replace Mailroom's settings. */
const SHARED: Readonly<Record<keyof SharedFunctionOptions, true>> = {
  adotInstrumentation: true,
  allowAllIpv6Outbound: true,
  allowAllOutbound: true,
  applicationLogLevelV2: true,
  architecture: true,
  codeSigningConfig: true,
  currentVersionOptions: true,
  depsLockFilePath: true,
  environmentEncryption: true,
  ephemeralStorageSize: true,
  insightsVersion: true,
  ipv6AllowedForDualStack: true,
  layers: true,
  logRetention: true,
  paramsAndSecrets: true,
  projectRoot: true,
  runtime: true,
  runtimeManagementMode: true,
  securityGroups: true,
  systemLogLevelV2: true,
  tracing: true,
  vpc: true,
  vpcSubnets: true,
};

const ALL: Readonly<Record<keyof FunctionOptions, true>> = {
  ...SHARED,
  filesystem: true,
  logGroup: true,
  reservedConcurrentExecutions: true,
};

/** Alternatives to properties that people look for here. */
const INSTEAD: Readonly<Record<string, string>> = {
  bundling: 'Use the property bundling beside functionProps.',
  deadLetterQueue: 'Failed messages return to their queue.',
  environment: 'Use the property environment beside functionProps.',
  functionName: 'A fixed name blocks the replacement of a function.',
  loggingFormat: 'Mailroom logs JSON, which its log searches and applicationLogLevelV2 need.',
  memorySize: 'Use the property memoryMb beside functionProps.',
  role: 'Mailroom creates the role, which its queues recognize by a tag; grant it more with function.addToRolePolicy.',
  snapStart: 'SnapStart is not available for Node.js.',
  timeout: 'Use the property timeout beside functionProps.',
};

/** The oldest Node.js that Mailroom's runtime library supports. */
const NODE_MIN = 20;

/** Validates options that a function passes on. */
export function functionOptionsProblems(options: FunctionOptions = {}): string[] {
  const { logGroup, logRetention, runtime } = options;
  const both =
    'functionProps contains logGroup and logRetention, but an existing log group has its own retention. Remove logRetention.';
  return [
    ...unknownProblems(options, ALL),
    ...(logGroup !== undefined && logRetention !== undefined ? [both] : []),
    ...(runtime === undefined ? [] : runtimeProblems('functionProps.runtime', runtime, ', or omit it')),
  ];
}

/** Validates options of the functions of a Mailroom itself. */
export function sharedOptionsProblems(options: SharedFunctionOptions = {}): string[] {
  return unknownProblems(options, SHARED);
}

function unknownProblems(options: object, known: Readonly<Record<string, true>>): string[] {
  const names = Object.keys(known).join(', ');
  return Object.entries(options)
    .filter(([name, value]) => value !== undefined && known[name] === undefined)
    .map(
      ([name]) =>
        `functionProps contains ${name}, which cannot be passed on. ${INSTEAD[name] ?? `It may contain: ${names}.`}`,
    );
}

/**
 * Validates the runtime of a function that runs Mailroom's code. A container image's and a custom runtime are unknown.
 *
 * @param otherwise - the end of the remedy
 */
export function runtimeProblems(property: string, { name, family }: Runtime, otherwise: string): string[] {
  if (family === undefined || family === RuntimeFamily.OTHER) return [];
  const version = Number(/^nodejs(\d+)/.exec(name)?.[1] ?? 0);
  if (family === RuntimeFamily.NODEJS && version >= NODE_MIN) return [];
  return [
    `${property} is ${name}, but must be nodejs${NODE_MIN}.x or later, which Mailroom's runtime library needs. Set it, e.g. to ` +
      `Runtime.NODEJS_24_X${otherwise}.`,
  ];
}
