import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Duration, type RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Rule, RuleTargetInput, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Code, type Tracing } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { acknowledge } from '../functions/acknowledged-warnings.ts';
import type { MailroomFunctionProps } from '../functions/function-props.ts';
import { moduleUrl } from '../functions/module-url.ts';
import { ServiceFunction, type ServiceFunctionProps } from '../functions/service-function.ts';

/** A function of a Mailroom itself: a folder of `lambdas/`. */
export type OwnFunction =
  | 'relay-stream'
  | 'relay-sweep'
  | 'audit'
  | 'heartbeat'
  | 'mysql-audit'
  | 'mysql-relay'
  | 'postgres-audit'
  | 'postgres-relay';

/** The properties of a Mailroom's part that its functions take over. */
interface OwnFunctionProps {
  readonly removalPolicy?: RemovalPolicy | undefined;
  readonly encryptionKey?: IKey | undefined;
  readonly tracing?: Tracing | undefined;
  readonly functionProps?: MailroomFunctionProps;
}

/** The repository, or the folder `dist` of the package. */
const ROOT = new URL('../../', moduleUrl);

/**
 * Creates one of Mailroom's own functions. The package contains them built, so a synth needs no esbuild for them; the
 * repository builds them at the first synth of a process, unless its templates need no code.
 */
export function ownFunction(
  scope: Construct,
  id: string,
  name: OwnFunction,
  { removalPolicy, encryptionKey, tracing, functionProps }: OwnFunctionProps,
  settings: Pick<ServiceFunctionProps, 'description' | 'environment' | 'memoryMb' | 'service' | 'timeout'>,
): ServiceFunction {
  return new ServiceFunction(scope, id, {
    ...settings,
    code: Code.fromAsset(folderOf(scope, name)),
    logRemovalPolicy: removalPolicy,
    encryptionKey,
    tracing,
    functionProps,
  });
}

function folderOf(scope: Construct, name: OwnFunction): string {
  if (!moduleUrl.endsWith('.ts')) return pathOf(`functions/${name}`);
  return Stack.of(scope).bundlingRequired ? `${builtHere()}/${name}` : pathOf(`lambdas/${name}`);
}

let built: string | undefined;

function builtHere(): string {
  if (built === undefined) {
    const folder = pathOf('.local/functions');
    const build = ['--import=tsx', pathOf('tools/pack/functions.ts'), folder];
    execFileSync(process.execPath, build, { cwd: pathOf('.'), stdio: ['ignore', 'ignore', 'inherit'] });
    built = folder;
  }
  return built;
}

function pathOf(name: string): string {
  return fileURLToPath(new URL(name, ROOT));
}

/** The input of every scheduled run. Handlers ignore it. It is not `{}`, because LocalStack drops a run whose input is empty. */
const INPUT = RuleTargetInput.fromObject({ scheduled: true });

/** The interval between runs. */
interface ScheduledRun {
  /** The description of the rule. */
  readonly description: string;
  readonly every: Duration;
  /** A run that has not started within this time is dropped. */
  readonly maxEventAge: Duration;
}

/** Runs a function on a schedule. A failed run is not retried: the next one does its work. */
export function scheduleRuns(scope: Construct, scheduled: ServiceFunction, run: ScheduledRun): Rule {
  const noRepeat = { retryAttempts: 0, maxEventAge: run.maxEventAge };
  scheduled.configureAsyncInvoke(noRepeat);
  const rule = new Rule(scope, 'Schedule', {
    description: run.description,
    schedule: Schedule.rate(run.every),
    targets: [new LambdaFunction(scheduled, { ...noRepeat, event: INPUT })],
  });
  const reason =
    'A failed run is not retried: the next one does its work, and an alarm fires if none succeeds.';
  acknowledge(scheduled, { LambdaAsyncFailureDestination: reason });
  acknowledge(rule, { EventBusDLQ: reason });
  return rule;
}

/** A run ends this long before the next one begins, and never later than Lambda allows (Lambda quotas: 15 minutes). */
const PAUSE_S = 5;
const TIMEOUT_MAX_S = 840;

/** The timeout of a function that runs on a schedule. */
export function timeoutUntilNext(every: Duration): Duration {
  return Duration.seconds(Math.min(every.toSeconds() - PAUSE_S, TIMEOUT_MAX_S));
}
