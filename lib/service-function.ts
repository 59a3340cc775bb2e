import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Duration, type RemovalPolicy, Validations } from 'aws-cdk-lib';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Architecture, LoggingFormat, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda';
import { type BundlingOptions, LogLevel, NodejsFunction, OutputFormat } from 'aws-cdk-lib/aws-lambda-nodejs';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { acknowledge } from './acknowledgements.ts';
import { FunctionRole } from './function-role.ts';
import { refuse, unless } from './refusal.ts';
import { sourceMapPaths } from './source-map-paths.ts';

/** What a {@link ServiceFunction} may be told. */
export interface ServiceFunctionProps {
  /** The file that exports `handler`, from the folder in which `cdk` runs. */
  readonly entry: string;
  /** The service it belongs to: the name in its logs and metrics. */
  readonly service: string;
  /** @default no description */
  readonly description?: string;
  /** The longest run. @default 30 seconds */
  readonly timeout?: Duration;
  /** Memory, and with it the share of a CPU, in MB. @default 512 */
  readonly memoryMb?: number;
  /** Environment variables besides those that Mailroom sets. @default none */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * How it is bundled, member by member instead of {@link BUNDLING}: e.g. `{ nodeModules: ['sharp'] }` for a package that
   * cannot be bundled, or `{ externalModules: [] }` for a handler that gets credentials by `fromIni`, `fromHttp`,
   * `fromProcess`, `fromSSO` or `fromTokenFile`.
   *
   * @default one minified ESM file with its own AWS SDK, and its source map
   */
  readonly bundling?: BundlingOptions;
  /** What becomes of the logs when the stack is deleted. @default RETAIN */
  readonly logRemovalPolicy?: RemovalPolicy;
  /** Encrypts its logs. The key's policy must let CloudWatch Logs use it: that of a Mailroom's `encryptionKey` does. @default a key that AWS owns */
  readonly encryptionKey?: IKey;
  /**
   * Whether X-Ray records its invocations. `ACTIVE` samples the first invocation of each second and 5 % of the rest, at 5 USD per
   * million traces (X-Ray pricing, us-east-1).
   *
   * @default it records those whose caller was sampled
   */
  readonly tracing?: Tracing;
}

/** Node.js ESM has no `require`; packages that are CommonJS inside the bundle need one. */
const REQUIRE_BANNER =
  "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);";

/**
 * Where the AWS SDK looks for credentials when the environment has none. A function's execution role is always in its
 * environment (AWS_ACCESS_KEY_ID and its kin; Lambda developer guide, "Defined runtime environment variables"), and the
 * SDK looks there first, so that none of these is ever loaded. Left in, the clients for SSO, STS and the rest are a third of
 * a bundle and of its start: see `npm run bench -- bundles`. SnapStart, which gives credentials another way, is not to be
 * had for Node.js ("Improving startup performance with Lambda SnapStart").
 */
const CREDENTIALS_OUTSIDE_LAMBDA = [
  '@aws-sdk/credential-provider-http',
  '@aws-sdk/credential-provider-ini',
  '@aws-sdk/credential-provider-process',
  '@aws-sdk/credential-provider-sso',
  '@aws-sdk/credential-provider-web-identity',
  '@smithy/credential-provider-imds',
];

/** What Node.js is told in every {@link ServiceFunction}: stacks in the logs name our lines and not those of the bundle. */
export const NODE_OPTIONS = '--enable-source-maps';

/** The runtime of every {@link ServiceFunction}; esbuild's target follows from it. */
export const RUNTIME = Runtime.NODEJS_24_X;

/** How every {@link ServiceFunction} is bundled: one minified ESM file with its own AWS SDK, and its source map. */
export const BUNDLING = {
  format: OutputFormat.ESM,
  mainFields: ['module', 'main'],
  externalModules: CREDENTIALS_OUTSIDE_LAMBDA,
  minify: true,
  sourceMap: true,
  sourcesContent: false,
  banner: REQUIRE_BANNER,
  logLevel: LogLevel.WARNING,
} satisfies BundlingOptions;

/**
 * A Lambda function as Mailroom runs them: Node.js 24 on arm64, one ESM bundle with its own AWS SDK, source maps,
 * JSON logs in a log group of its own that keeps them a month, and a role that may write that log and nothing
 * else until something is granted.
 *
 * @throws `BAD_SETTINGS` when there is no such `entry`
 *
 * @example
 * ```ts
 * const api = new ServiceFunction(this, 'Api', { entry: 'src/api.ts', service: 'orders' });
 * mailroom.addProducer(api, { service: 'orders', publishes: [OrderPlaced], domainKeys: ['ORDER#*'] });
 * ```
 */
export class ServiceFunction extends NodejsFunction {
  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    const missing =
      `entry is "${props.entry}", but ${process.cwd()} has no such file. Give the path of the file that exports ` +
      'handler, from the folder in which cdk runs.';
    refuse(`The function ${scope.node.path}/${id}`, unless(existsSync(props.entry), missing));
    const logGroup = new LogGroup(scope, `${id}Logs`, {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: props.logRemovalPolicy,
      encryptionKey: props.encryptionKey,
    });
    const role = new FunctionRole(scope, `${id}Role`);
    logGroup.grantWrite(role);
    super(scope, id, {
      entry: props.entry,
      description: props.description,
      runtime: RUNTIME,
      architecture: Architecture.ARM_64,
      memorySize: props.memoryMb ?? 512,
      timeout: props.timeout ?? Duration.seconds(30),
      role,
      logGroup,
      loggingFormat: LoggingFormat.JSON,
      tracing: props.tracing,
      bundling: {
        ...BUNDLING,
        ...props.bundling,
        commandHooks: sourceMapPaths(props.bundling?.commandHooks),
      },
      environment: {
        NODE_OPTIONS,
        POWERTOOLS_SERVICE_NAME: props.service,
        POWERTOOLS_METRICS_NAMESPACE: 'Mailroom',
        ...props.environment,
      },
    });
    acknowledge(this, {
      LambdaConcurrency:
        "Reserved concurrency is taken from the account's, and a new account has none to spare; each event source mapping has its own limit.",
      LambdaDLQ:
        'It is invoked synchronously, by an event source mapping that keeps what fails, or on a schedule whose next run does the work.',
      LambdaInsideVPC:
        'It calls public AWS endpoints only, over TLS and with IAM: a VPC would add cost and no boundary.',
    });
    if (props.tracing === Tracing.ACTIVE)
      Validations.of(role).acknowledge({
        id: 'AwsSolutions-IAM5[Resource::*]',
        reason: 'The actions of X-Ray that write traces have no resources (service authorization reference).',
      });
  }
}

/**
 * The entry file of a handler under `lambdas/`, beside this file's own folder: TypeScript in the repository,
 * JavaScript in the published package.
 *
 * @param handler - the path under `lambdas/` without its extension, e.g. `relay-stream/handler`
 */
export function lambdaEntry(handler: string): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`../lambdas/${handler}.${extension}`, import.meta.url));
}
