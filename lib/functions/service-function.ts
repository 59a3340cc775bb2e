import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Duration, type RemovalPolicy, Validations } from 'aws-cdk-lib';
import {
  type AddToPrincipalPolicyResult,
  ManagedPolicy,
  PolicyStatement,
  Role,
  ServicePrincipal,
} from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Architecture, type Code, LoggingFormat, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda';
import { type BundlingOptions, LogLevel, NodejsFunction, OutputFormat } from 'aws-cdk-lib/aws-lambda-nodejs';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { refuse, refuseNames, unless } from '../checks/refusal.ts';
import { acknowledge } from './acknowledged-warnings.ts';
import { BUNDLE_BANNER, sourceMapPaths } from './bundle-banner.ts';
import { checkBundle } from './bundle-check.ts';
import { functionNameProblems, functionPropsProblems, type PassedFunctionProps } from './function-props.ts';
import { moduleUrl } from './module-url.ts';

/** Properties of a {@link ServiceFunction}. */
export interface ServiceFunctionProps {
  /**
   * Path of the file that exports `handler`, relative to the folder in which `cdk` runs; esbuild bundles it.
   *
   * @default none: `code` is required
   */
  readonly entry?: string;
  /** Code that is built elsewhere, which needs no esbuild. @default the bundle of `entry` */
  readonly code?: Code;
  /** The file in `code` and its export. @default `index.handler` */
  readonly handler?: string;
  /** The service it belongs to: its name in logs and metrics. */
  readonly service: string;
  /** @default no description */
  readonly description?: string;
  /** The function's timeout. @default 30 seconds */
  readonly timeout?: Duration;
  /** Memory in MB; the CPU share is proportional to it. @default 512 */
  readonly memoryMb?: number;
  /** Environment variables in addition to those that Mailroom sets. @default none */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * Bundling options; each one given replaces the one in {@link BUNDLING}. E.g. `{ nodeModules: ['sharp'] }` for a package that
   * cannot be bundled, or `{ externalModules: [] }` for a handler that gets credentials by `fromIni`, `fromHttp`, `fromProcess`,
   * `fromSSO` or `fromTokenFile`. A banner or a source map of your own, or `OutputFormat.CJS`, turns off the stack traces of {@link BUNDLING};
   * a banner must also define `require`, `__dirname` and `__filename` if a bundled package in CommonJS uses them. The environment variable `NODE_OPTIONS: '--enable-source-maps'` then maps stack traces, at the price of a longer start.
   *
   * @default one minified ESM file with its own AWS SDK, and its source map
   */
  readonly bundling?: BundlingOptions;
  /** The removal policy of the logs. @default RETAIN */
  readonly logRemovalPolicy?: RemovalPolicy;
  /**
   * Encrypts its logs. The key's policy must let CloudWatch Logs use it, as that of a Mailroom's `encryptionKey` does.
   *
   * @default a key that AWS owns
   */
  readonly encryptionKey?: IKey;
  /**
   * X-Ray tracing of its invocations. `ACTIVE` samples the first invocation of each second and 5 % of the rest, at 5 USD per
   * million traces (X-Ray pricing, us-east-1).
   *
   * @default only invocations whose caller was sampled
   */
  readonly tracing?: Tracing;
  /**
   * Other settings of the function: its VPC, layers, architecture, log settings, … Its `tracing` takes precedence over the property
   * `tracing`.
   *
   * @default none
   */
  readonly functionProps?: PassedFunctionProps;
}

/**
 * Credential providers that the AWS SDK tries when the environment holds no credentials. A function's environment always holds
 * those of its execution role (AWS_ACCESS_KEY_ID and related variables; Lambda developer guide, "Defined runtime environment
 * variables"), and the SDK looks there first, so none of these is ever loaded. Included, the clients for SSO, STS and the rest
 * would be a third of a bundle and of its start: see `npm run bench -- bundles`. SnapStart, which provides credentials
 * differently, is not available for Node.js ("Improving startup performance with Lambda SnapStart").
 */
const CREDENTIALS_OUTSIDE_LAMBDA = [
  '@aws-sdk/credential-provider-http',
  '@aws-sdk/credential-provider-ini',
  '@aws-sdk/credential-provider-process',
  '@aws-sdk/credential-provider-sso',
  '@aws-sdk/credential-provider-web-identity',
  '@smithy/credential-provider-imds',
];

/** The runtime of every {@link ServiceFunction}; esbuild's target is derived from it. */
export const RUNTIME = Runtime.NODEJS_24_X;

/** Bundling options of every {@link ServiceFunction}: one minified ESM file with its own AWS SDK, and its source map. */
export const BUNDLING = {
  format: OutputFormat.ESM,
  mainFields: ['module', 'main'],
  externalModules: CREDENTIALS_OUTSIDE_LAMBDA,
  minify: true,
  sourceMap: true,
  sourcesContent: false,
  banner: BUNDLE_BANNER,
  logLevel: LogLevel.WARNING,
} satisfies BundlingOptions;

const NAMES: PropNames<ServiceFunctionProps> = {
  service: 'required',
  entry: 'optional',
  code: 'optional',
  handler: 'optional',
  description: 'optional',
  timeout: 'optional',
  memoryMb: 'optional',
  environment: 'optional',
  bundling: 'optional',
  logRemovalPolicy: 'optional',
  encryptionKey: 'optional',
  tracing: 'optional',
  functionProps: 'optional',
};

/**
 * A Lambda function with Mailroom's defaults: Node.js 24 on arm64, one ESM bundle with its own AWS SDK and source maps, JSON logs
 * in its own log group, kept for a month, and a role that may only write that log until you grant more.
 *
 * @throws `BAD_SETTINGS` if the file `entry` does not exist or, whenever it is bundled to ESM, does not export `handler`
 *
 * @example
 * ```ts
 * const api = new ServiceFunction(this, 'Api', { entry: 'src/api.ts', service: 'orders' });
 * mailroom.addProducer(api, { service: 'orders', publishes: [OrderPlaced], domainKeys: ['ORDER#*'] });
 * ```
 */
export class ServiceFunction extends NodejsFunction {
  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    refuseNames(`The function ${scope.node.path}/${id}`, props, NAMES);
    const { logRetention, ...passed } = props.functionProps ?? {};
    refuse(`The function ${scope.node.path}/${id}`, [
      ...codeProblems(props),
      ...functionNameProblems(props.functionProps),
      ...functionPropsProblems(props.functionProps),
    ]);
    const logGroup = passed.logGroup ?? ownLogGroup(scope, id, props);
    const role = new FunctionRole(scope, `${id}Role`);
    logGroup.grantWrite(role);
    if (passed.vpc) role.allowNetworkInterfaces();
    super(scope, id, {
      ...passed,
      ...(props.code === undefined
        ? { entry: props.entry }
        : { code: props.code, handler: props.handler ?? 'index.handler' }),
      description: props.description,
      runtime: passed.runtime ?? RUNTIME,
      architecture: passed.architecture ?? Architecture.ARM_64,
      tracing: passed.tracing ?? props.tracing,
      memorySize: props.memoryMb ?? 512,
      timeout: props.timeout ?? Duration.seconds(30),
      role,
      logGroup,
      loggingFormat: LoggingFormat.JSON,
      bundling: {
        ...BUNDLING,
        ...(props.bundling?.format === OutputFormat.CJS && { banner: undefined }), // an ES module's
        ...props.bundling,
        commandHooks: sourceMapPaths(props.bundling?.commandHooks),
      },
      environment: {
        POWERTOOLS_SERVICE_NAME: props.service,
        POWERTOOLS_METRICS_NAMESPACE: 'Mailroom',
        ...props.environment,
      },
    });
    explain(this, role, props);
    if (props.entry !== undefined) checkBundle(this, props.entry);
  }
}

function codeProblems({ entry, code, handler, bundling }: ServiceFunctionProps): string[] {
  if (entry === undefined)
    return [
      ...unless(
        code !== undefined,
        'entry and code are missing. Set entry to the file that exports handler.',
      ),
      ...unless(bundling === undefined, 'bundling is given, but code is built already. Omit it.'),
    ];
  return [
    ...unless(
      code === undefined && handler === undefined,
      'entry is given with code or handler. Omit one of them.',
    ),
    ...unless(
      existsSync(entry),
      `entry is "${entry}", but ${process.cwd()} has no such file. Set it to the path of the file that exports ` +
        'handler, relative to the folder in which cdk runs.',
    ),
  ];
}

/** Explains to cdk-nag the rules that a function does not follow. */
function explain(of: ServiceFunction, role: FunctionRole, props: ServiceFunctionProps): void {
  const { vpc, reservedConcurrentExecutions: reserved, tracing = props.tracing } = props.functionProps ?? {};
  acknowledge(of, {
    ...(reserved === undefined && {
      LambdaConcurrency:
        "Reserved concurrency is taken from the account's, and a new account has none to spare; each event source mapping has its own limit.",
    }),
    LambdaDLQ:
      'It is invoked synchronously by an event source mapping that keeps failed records, or on a schedule whose next run does the work.',
    ...(vpc === undefined && {
      LambdaInsideVPC:
        'It calls public AWS endpoints only, over TLS and with IAM: a VPC would add cost and no boundary.',
    }),
  });
  const everywhere = [
    ...(tracing === Tracing.ACTIVE ? ['X-Ray actions that write traces'] : []),
    ...(vpc === undefined ? [] : ['EC2 actions that attach a function to a VPC']),
  ].join(' and the ');
  if (everywhere !== '')
    Validations.of(role).acknowledge({
      id: 'AwsSolutions-IAM5[Resource::*]',
      reason: `The ${everywhere} do not support resource-level permissions (service authorization reference).`,
    });
}

function ownLogGroup(
  scope: Construct,
  id: string,
  { functionProps, logRemovalPolicy, encryptionKey }: ServiceFunctionProps,
): LogGroup {
  return new LogGroup(scope, `${id}Logs`, {
    retention: functionProps?.logRetention ?? RetentionDays.ONE_MONTH,
    removalPolicy: logRemovalPolicy,
    encryptionKey,
  });
}

/**
 * The entry file of a handler under `lambdas/`, next to this file's folder: TypeScript in the repository, JavaScript in the
 * published package.
 *
 * @param handler - the path under `lambdas/` without its extension, e.g. `relay-stream/handler`
 */
export function lambdaEntry(handler: string): string {
  const extension = moduleUrl.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`../../lambdas/${handler}.${extension}`, moduleUrl));
}

/** Permissions of a function in a VPC (Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC"). */
const NETWORK_INTERFACES = [
  'ec2:AssignPrivateIpAddresses',
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSubnets',
  'ec2:UnassignPrivateIpAddresses',
];

/**
 * The execution role of a function. Its grants are in a managed policy: an inline policy has no versions to roll back to, and the
 * compliance packs of cdk-nag reject it.
 */
class FunctionRole extends Role {
  private readonly granted: ManagedPolicy;

  constructor(scope: Construct, id: string) {
    super(scope, id, { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    this.granted = new ManagedPolicy(this, 'Grants', { roles: [this] });
  }

  override addToPrincipalPolicy(statement: PolicyStatement): AddToPrincipalPolicyResult {
    this.granted.addStatements(statement);
    return { statementAdded: true, policyDependable: this.granted };
  }

  /** Lets Lambda attach the function to a VPC: the CDK grants that only to roles that it creates itself. */
  allowNetworkInterfaces(): void {
    this.addToPrincipalPolicy(new PolicyStatement({ actions: NETWORK_INTERFACES, resources: ['*'] }));
  }
}
