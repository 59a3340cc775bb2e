import { ruleName } from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import { BUSES_ROOT } from '../../../lambdas/runtime/operations/bus-directory.ts';
import { deadLetterQueues } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { DIRECTORY_ROOT, type Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Place } from '../../deployment/place.ts';

/**
 * The IAM policy for reading one Mailroom: what the commands call that change nothing, on its resources only. docs/cli-permissions.md lists the
 * same actions.
 *
 * `lambda:InvokeFunction` is not in it, although `why` calls the consumers' functions to check whether their code would accept a
 * dead letter: a role that may invoke them can also give them messages to process. Without it the check is left out.
 *
 * @param place - of the Mailroom @param partition - e.g. `aws` or `aws-cn`
 *
 * @example
 * ```ts
 * JSON.stringify(readPolicy(deployment.directory, await placeOf(deployment)), undefined, 2);
 * ```
 */
export function readPolicy(
  directory: Directory,
  { account, region }: Pick<Place, 'account' | 'region'>,
  partition = 'aws',
) {
  const { mailroom, consumers } = directory;
  const arn = (service: string, resource: string) =>
    `arn:${partition}:${service}:${region}:${account}:${resource}`;
  const queue = (url: string) => arn('sqs', lastPart(url));
  const deadLetters = deadLetterQueues(directory).map(({ url }) => queue(url));
  const { streamFunction, sweepFunction, heartbeat } = mailroom;
  const functions = [
    streamFunction,
    sweepFunction,
    heartbeat?.function,
    ...consumers.map((one) => one.function),
  ]
    .filter((name) => name !== undefined)
    .map((name) => arn('lambda', `function:${name}`));
  const stacks = [...new Set([mailroom, ...consumers].map(({ stack }) => stack.split('/').at(-1)))];
  const parameters = arn('ssm', `parameter${DIRECTORY_ROOT}`);
  return {
    Version: '2012-10-17',
    Statement: [
      allow(
        'Directory',
        ['ssm:GetParametersByPath', 'ssm:GetParameterHistory', 'ssm:GetParameter'],
        [parameters, `${parameters}/*`, arn('ssm', `parameter${BUSES_ROOT}/*`)],
      ),
      allow('Rows', TABLE_ACTIONS, [arn('dynamodb', `table/${mailroom.table}`)]),
      allow(
        'Queues',
        ['sqs:GetQueueAttributes'],
        [...consumers.map((entry) => queue(entry.queue)), ...deadLetters],
      ),
      allow('DeadLetters', ['sqs:ReceiveMessage', 'sqs:ChangeMessageVisibility'], deadLetters),
      allow('Bus', ['events:DescribeEventBus'], [arn('events', `event-bus/${lastPart(mailroom.bus)}`)]),
      allow(
        'Rules',
        ['events:DescribeRule', 'events:ListTargetsByRule'],
        // The forwards of the bus are among its rules.
        [
          ...rulesOf(directory),
          `rule/${lastPart(mailroom.bus)}/*`,
          ...stacks.map((stack) => `rule/${stack}-*`),
        ].map((rule) => arn('events', rule)),
      ),
      allow('Functions', FUNCTION_ACTIONS, [
        ...functions,
        ...functions.map((name) => `${name}:*`),
        // CloudFormation begins the names of the audit and the producers, which the directory does not have, with the stack's.
        ...stacks.map((stack) => arn('lambda', `function:${stack}-*`)),
      ]),
      allow('Mappings', ['lambda:GetEventSourceMapping'], [arn('lambda', 'event-source-mapping:*')]),
      allow(
        'Stacks',
        ['cloudformation:DescribeStacks', 'cloudformation:GetTemplate', 'cloudformation:ListStackResources'],
        stacks.map((stack) => arn('cloudformation', `stack/${stack}/*`)),
      ),
      allow('Account', ACCOUNT_ACTIONS, ['*']),
      allow('Keys', ['kms:DescribeKey'], [arn('kms', 'key/*')]),
      allow('Roles', ['iam:SimulatePrincipalPolicy'], [`arn:${partition}:iam::${account}:role/*`]),
    ],
  };
}

const TABLE_ACTIONS = [
  'dynamodb:Query',
  'dynamodb:PartiQLSelect',
  'dynamodb:GetItem',
  'dynamodb:BatchGetItem',
  'dynamodb:DescribeTable',
  'dynamodb:DescribeTimeToLive',
  'dynamodb:GetResourcePolicy',
  'dynamodb:DescribeContinuousBackups',
];

const FUNCTION_ACTIONS = [
  'lambda:GetFunctionConfiguration',
  'lambda:GetFunctionConcurrency',
  'lambda:GetFunctionEventInvokeConfig',
  'lambda:GetPolicy',
];

/** Actions that IAM allows on all resources only (service authorization reference). */
const ACCOUNT_ACTIONS = [
  'lambda:ListEventSourceMappings',
  'lambda:GetAccountSettings',
  'lambda:ListFunctions',
  'cloudwatch:DescribeAlarms',
  'events:ListRuleNamesByTarget',
  'events:ListRules',
  'cloudwatch:GetMetricData',
  'cloudformation:ListExports',
];

function allow(name: string, actions: readonly string[], resources: readonly string[]) {
  return { Sid: `Mailroom${name}`, Effect: 'Allow', Action: actions, Resource: [...new Set(resources)] };
}

/** The rules as resources: those of the default bus have no name of a bus. */
function rulesOf({ mailroom, consumers }: Directory): string[] {
  const schedules = [mailroom.sweepRule, mailroom.heartbeat?.rule];
  return [
    ...schedules.flatMap((rule) => (rule === undefined ? [] : [`rule/${rule}`])),
    ...consumers.flatMap((consumer) => {
      const { externalRule } = consumer;
      const rule = ruleName(consumer);
      return [
        ...(rule === undefined ? [] : [`rule/${lastPart(mailroom.bus)}/${rule}`]),
        ...(externalRule === undefined ? [] : [externalRuleOf(externalRule)]),
      ];
    }),
  ];
}

function externalRuleOf({ name, bus }: { readonly name: string; readonly bus: string }): string {
  const busName = lastPart(bus);
  return busName === 'default' ? `rule/${name}` : `rule/${busName}/${name}`;
}

/** The name in an URL or ARN. */
function lastPart(text: string): string {
  return text.split('/').at(-1) ?? text;
}
