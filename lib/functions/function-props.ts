import type { IVpc } from 'aws-cdk-lib/aws-ec2';
import { type Architecture, type Runtime, RuntimeFamily } from 'aws-cdk-lib/aws-lambda';
import type { NodejsFunctionProps } from 'aws-cdk-lib/aws-lambda-nodejs';
import type { ILogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { nameProblems, type PropNames } from '../../lambdas/runtime/base/given-names.ts';

/**
 * Properties of the CDK's `NodejsFunction` that a function of Mailroom passes on. Those without a comment here mean what they mean
 * there.
 *
 * @example
 * ```ts
 * const functionProps: PassedFunctionProps = { vpc, layers: [certificates], applicationLogLevelV2: ApplicationLogLevel.WARN };
 * ```
 */
export interface PassedFunctionProps
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
  /** An existing log group for the logs, with the retention and the key that you gave it. @default a new log group */
  readonly logGroup?: ILogGroup;
  /** The retention of the new log group; no custom resource sets it. @default one month */
  readonly logRetention?: RetentionDays;
  /** At least the consumer's `queue.maxConcurrency`: each message that Lambda throttles uses up a receive. @default none */
  readonly reservedConcurrentExecutions?: number;
  /** Node.js 20 or later; esbuild's target follows it. @default Node.js 24 */
  readonly runtime?: Runtime;
  /** The VPC of the function. Its role also gets the permissions to attach network interfaces. @default no VPC */
  readonly vpc?: IVpc;
}

/**
 * The {@link PassedFunctionProps} of a Mailroom's own functions, each of which has its own log group and uses the account's
 * unreserved concurrency.
 *
 * @example
 * ```ts
 * new Mailroom(this, 'Mailroom', { functionProps: { vpc, logRetention: RetentionDays.ONE_YEAR } });
 * ```
 */
export interface MailroomFunctionProps
  extends Omit<PassedFunctionProps, 'filesystem' | 'logGroup' | 'reservedConcurrentExecutions'> {}

/** The names at run time: JavaScript and casts can pass others, with which the CDK would replace Mailroom's settings. */
const OF_MAILROOM: PropNames<MailroomFunctionProps> = {
  adotInstrumentation: 'optional',
  allowAllIpv6Outbound: 'optional',
  allowAllOutbound: 'optional',
  applicationLogLevelV2: 'optional',
  architecture: 'optional',
  codeSigningConfig: 'optional',
  currentVersionOptions: 'optional',
  depsLockFilePath: 'optional',
  environmentEncryption: 'optional',
  ephemeralStorageSize: 'optional',
  insightsVersion: 'optional',
  ipv6AllowedForDualStack: 'optional',
  layers: 'optional',
  logRetention: 'optional',
  paramsAndSecrets: 'optional',
  projectRoot: 'optional',
  runtime: 'optional',
  runtimeManagementMode: 'optional',
  securityGroups: 'optional',
  systemLogLevelV2: 'optional',
  tracing: 'optional',
  vpc: 'optional',
  vpcSubnets: 'optional',
};

const ALL: PropNames<PassedFunctionProps> = {
  ...OF_MAILROOM,
  filesystem: 'optional',
  logGroup: 'optional',
  reservedConcurrentExecutions: 'optional',
};

/** Alternatives to properties that people look for here. */
const INSTEAD: Readonly<Record<string, string>> = {
  bundling: 'Use bundling, beside functionProps of a ServiceFunction.',
  deadLetterQueue: 'Failed messages return to their queue.',
  environment: 'Use environment, beside functionProps of a ServiceFunction.',
  functionName: 'A fixed name blocks the replacement of a function.',
  loggingFormat: 'Mailroom logs JSON, which its log searches and applicationLogLevelV2 need.',
  memorySize: 'Use memoryMb: in function of a consumer, beside functionProps of a ServiceFunction.',
  role: 'Mailroom creates the role, which its queues recognize by a tag; grant it more with function.addToRolePolicy.',
  snapStart: 'SnapStart is not available for Node.js.',
  timeout: 'Use the property timeout beside functionProps.',
};

/** The oldest major version of Node.js that Mailroom's runtime library supports. */
export const NODE_MIN = 20;

/**
 * Validates the names of the properties that a function passes on.
 *
 * @param group - the property that contains them
 * @param others - the names of that property's other settings
 */
export function functionNameProblems(
  props: PassedFunctionProps | undefined,
  group = 'functionProps',
  others: Parameters<typeof nameProblems>[1] = {},
): string[] {
  return nameProblems(props, { ...others, ...ALL }, `${group}.`, INSTEAD);
}

/** Validates the properties that a function passes on. @param group - the property that contains them */
export function functionPropsProblems(props: PassedFunctionProps = {}, group = 'functionProps'): string[] {
  const { logGroup, logRetention, runtime } = props;
  const both = `${group} contains logGroup and logRetention, but an existing log group has its own retention. Remove logRetention.`;
  return [
    ...(logGroup !== undefined && logRetention !== undefined ? [both] : []),
    ...(runtime === undefined ? [] : runtimeProblems(`${group}.runtime`, runtime, ', or omit it')),
  ];
}

/** Validates the properties that a Mailroom's own functions pass on. */
export function mailroomFunctionPropsProblems(props?: MailroomFunctionProps): string[] {
  return nameProblems(props, OF_MAILROOM, 'functionProps.', INSTEAD);
}

/**
 * Validates the runtime of a function that runs Mailroom's code. A container image or a custom runtime is not checked.
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
