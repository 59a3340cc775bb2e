import { Annotations, type Duration, Stack, Token } from 'aws-cdk-lib';
import { Role } from 'aws-cdk-lib/aws-iam';
import { Alias, type CfnFunction, type IFunction, Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { concurrencyProblems } from '../checks/timings.ts';
import { functionPropsProblems, runtimeProblems } from '../functions/function-props.ts';
import { useProblems } from '../mailroom/declared-events.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** Why a function without a runtime has an old one in a test, although the same code synthesizes. */
const CDK_RUNTIME =
  "; without it, the CDK's default depends on the feature flags in cdk.json, which an App in a unit test does not read";

/** Validates which function a consumer has: one made from `entry`, or an existing one. */
export function functionProblems(scope: Construct, props: InboxConsumerProps): string[] {
  const { entry, function: own = {}, queue } = props;
  const { existing: given } = own;
  const choice =
    'Set entry to the path of the file that exports handler, or function.existing to an existing function';
  if (given !== undefined && entry !== undefined)
    return [`entry and function.existing are both set. ${choice}, not both.`];
  if (given !== undefined) return existingProblems(scope, props, given);
  if (entry === undefined) return [`entry and function.existing are both missing. ${choice}.`];
  return [
    ...functionPropsProblems(own, 'function'),
    ...concurrencyProblems(queue?.maxConcurrency, known(own.reservedConcurrentExecutions)),
  ];
}

function existingProblems(
  scope: Construct,
  props: InboxConsumerProps,
  given: LambdaFunction | Alias,
): string[] {
  const existing = functionBehind(given);
  if (!(existing instanceof LambdaFunction)) return [unchangeable(existing)];
  const { path } = existing.node;
  const use = { mailroom: props.mailroom.node.path, service: props.service, consumer: scope.node.path };
  return [
    ...Object.entries<unknown>({ ...props.function, existing: undefined })
      .filter(([, value]) => value !== undefined)
      .map(
        ([name]) =>
          `function.${name} is set, but only a function that the consumer creates takes it. Set it on ${path} instead.`,
      ),
    ...stackProblems(scope, given, existing),
    ...timeoutProblems(existing),
    ...runtimeProblems(`The runtime of ${path}`, existing.runtime, CDK_RUNTIME),
    ...concurrencyProblems(props.queue?.maxConcurrency, reservedOf(existing)),
    ...useProblems(existing, use),
  ];
}

/** The function itself: an alias has neither environment nor timeout. */
export function functionBehind(given: LambdaFunction | Alias): IFunction {
  return given instanceof Alias ? given.lambda : given;
}

/** The timeout of an existing function; `undefined` if it is unknown. */
export function timeoutOf(given: LambdaFunction | Alias): Duration | undefined {
  const existing = functionBehind(given);
  const timeout = existing instanceof LambdaFunction ? existing.timeout : undefined;
  return timeout?.isUnresolved() ? undefined : timeout;
}

/** The reserved concurrency of a function; `undefined` if none is reserved, or if it is unknown. */
export function reservedOf(existing: LambdaFunction): number | undefined {
  return known((existing.node.defaultChild as CfnFunction).reservedConcurrentExecutions);
}

function known(value: number | undefined): number | undefined {
  return Token.isUnresolved(value) ? undefined : value;
}

/** The name of a function's log group. `Function.logGroup` would add a custom resource to the stack of a function without one. */
export function logGroupNameOf(existing: LambdaFunction): string {
  const { loggingConfig } = existing.node.defaultChild as CfnFunction;
  const own = loggingConfig && 'logGroup' in loggingConfig ? loggingConfig.logGroup : undefined;
  return own ?? `/aws/lambda/${existing.functionName}`;
}

/** Warns of an alias whose version stays as it is when Mailroom changes the function's environment. */
export function warnOfFixedVersion(scope: Construct, { aliasName, version }: Alias): void {
  if (version.version === '$LATEST' || version.node.id === 'CurrentVersion') return;
  Annotations.of(scope).addWarningV2(
    'cdk-mailroom:fixedVersion',
    `The alias ${aliasName} points to ${version.node.path}, which is not published again when Mailroom's settings change: the alias then runs ` +
      "with the old ones. Let it point to the function's currentVersion.",
  );
}

function unchangeable({ node }: IFunction): string {
  return (
    `function.existing is ${node.path}, which is imported or not a Function: its environment and its role cannot be changed from here. Pass a ` +
    'Function, or an Alias of one, that this stack creates; or set its environment, its role and its mapping by hand: see ' +
    'docs/without-cdk.md.'
  );
}

function stackProblems(scope: Construct, given: IFunction, { node, role, stack }: LambdaFunction): string[] {
  const own = Stack.of(scope);
  const elsewhere = stack === own ? given : { node, stack };
  if (elsewhere.stack !== own)
    return [
      `function.existing is ${elsewhere.node.path}, which is in another stack (${elsewhere.stack.node.path}). The function needs the queue's URL, and the rule waits for ` +
        'the function, so each stack would depend on the other. Create the consumer in the stack of the function.',
    ];
  if (role !== undefined && Role.isRole(role) && role.stack === own) return [];
  return [
    `The role of ${node.path} is imported or in another stack, so it cannot be tagged, and the queues recognize Mailroom's functions by ` +
      "a tag. Let the function create its role, or create the role in the function's stack.",
  ];
}

function timeoutProblems(existing: LambdaFunction): string[] {
  if (timeoutOf(existing) !== undefined) return [];
  const state =
    existing.timeout === undefined ? "not set, so it is Lambda's 3 seconds" : 'not known at synth';
  return [
    `The timeout of ${existing.node.path} is ${state}, but SQS hides a message for a multiple of it. Set it to a fixed value, e.g. ` +
      'Duration.seconds(30).',
  ];
}
