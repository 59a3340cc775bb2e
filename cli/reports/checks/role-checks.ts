import { readConsumerConfig } from '../../../lambdas/runtime/base/consumer-config.ts';
import {
  type ConsumerEntry,
  type Directory,
  directoryPath,
  type EntryStack,
  invokedFunction,
} from '../../../lambdas/runtime/operations/directory.ts';
import {
  failedKey,
  INBOX_PREFIX,
  LAST_PREFIX,
  rejectedKey,
  SWEEP_STATE_KEY,
} from '../../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX } from '../../../lambdas/runtime/store/outbox-partition.ts';
import type { DeployedFunction } from '../../deployment/resources.ts';
import {
  type AsyncProblems,
  type CheckDeps,
  type CheckedFunction,
  check,
  functionOf,
  type PartCheck,
  readWith,
  relayFunctions,
} from './check.ts';
import { settingsOf } from './function-checks.ts';

/** The simulator port: the permissions that a role's own policies grant. */
export interface RoleSimulator {
  /** @returns the actions of the need that the role's policies do not allow */
  denied(role: string, need: RoleNeed): Promise<readonly string[]>;
}

/** Actions that a role needs on a resource. */
export interface RoleNeed {
  readonly actions: readonly string[];
  /** The ARN. */
  readonly resource: string;
  /** The values of a list-valued condition key of the request. */
  readonly context?: { readonly key: string; readonly values: readonly string[] } | undefined;
}

/** The ARNs that roles need. */
export interface RoleResources {
  readonly table: string;
  readonly stream: string | undefined;
  /** The queue of the consumer, or of the relay's discarded batches. */
  readonly queue: string | undefined;
}

/** Checks that the policies of each role allow what its function does. */
export function roleChecks(deps: CheckDeps, simulator: RoleSimulator): PartCheck[] {
  const { mailroom, consumers } = deps.directory;
  const { relay, sweep } = relayFunctions(mailroom);
  const roleCheck = (stack: EntryStack, checked: CheckedFunction, queueUrl: string, needsOf: NeedsOf) =>
    check(checked.part, 'surroundings', () => roleFaults(deps, simulator, checked, queueUrl, needsOf), stack);
  return [
    roleCheck(mailroom, relay, mailroom.failureQueue, (arns) => streamRelayNeeds(arns, mailroom)),
    roleCheck(mailroom, sweep, mailroom.failureQueue, (arns) => sweepNeeds(arns, mailroom)),
    ...consumers.map((consumer) =>
      roleCheck(consumer, functionOf(consumer), consumer.queue, (arns, found) => {
        const settings = settingsOf(readConsumerConfig, found);
        const { publishes = [] } = typeof settings === 'string' ? {} : settings;
        return consumerNeeds(arns, consumer, publishes.length > 0);
      }),
    ),
  ];
}

type NeedsOf = (arns: RoleResources, found: DeployedFunction) => readonly RoleNeed[];

async function* roleFaults(
  { resources }: CheckDeps,
  simulator: RoleSimulator,
  { part, name, alias }: CheckedFunction,
  queueUrl: string,
  needsOf: NeedsOf,
): AsyncProblems {
  const found = await resources.function(invokedFunction(name, alias));
  if (found === undefined) return; // reported as `no-function`
  const [{ arn: table, streamArn: stream }, queue] = await Promise.all([
    resources.table(),
    resources.queue(queueUrl),
  ]);
  const needs = needsOf({ table, stream, queue: queue?.arn }, found);
  const denials = await readWith(['iam:SimulatePrincipalPolicy'], () =>
    Promise.all(needs.map((need) => simulator.denied(found.role, need))),
  );
  for (const [index, { resource, context }] of needs.entries()) {
    const denied = denials[index] ?? [];
    if (denied.length === 0) continue;
    const condition = context ? ` (${context.key} ${context.values.join(', ')})` : '';
    const text = `the role of ${part} may not ${denied.join(', ')} on ${resource}${condition}: its calls fail`;
    yield { problem: 'role', text };
  }
}

function rows(table: string, actions: readonly string[], key: string): RoleNeed {
  return {
    actions: actions.map((action) => `dynamodb:${action}`),
    resource: table,
    context: { key: 'dynamodb:LeadingKeys', values: [key] },
  };
}

function onQueue(resource: string | undefined, ...actions: readonly string[]): RoleNeed[] {
  return resource === undefined ? [] : [{ actions: actions.map((action) => `sqs:${action}`), resource }];
}

/** Another service of the table's account and region. */
function arnBeside(table: string, service: string, resource: string): string {
  const [arn, partition, , region, account] = table.split(':');
  return [arn, partition, service, region, account, resource].join(':');
}

/** The needs of both functions of the relay. */
function relayNeeds({ table }: RoleResources, { bus, sources = [] }: Directory['mailroom']): RoleNeed[] {
  return [
    rows(table, ['UpdateItem', 'PartiQLUpdate'], `${OUTBOX_PREFIX}any`),
    rows(table, ['PutItem', 'DeleteItem'], 'DEAD#any'),
    ...(sources.length === 0
      ? []
      : [
          {
            actions: ['events:PutEvents'],
            resource: arnBeside(table, 'events', `event-bus/${bus}`),
            context: { key: 'events:source', values: sources },
          },
        ]),
  ];
}

/** The needs of the stream relay. */
export function streamRelayNeeds(resources: RoleResources, mailroom: Directory['mailroom']): RoleNeed[] {
  const { stream, queue } = resources;
  const reading = ['DescribeStream', 'GetRecords', 'GetShardIterator'].map((action) => `dynamodb:${action}`);
  return [
    ...relayNeeds(resources, mailroom),
    ...(stream === undefined ? [] : [{ actions: reading, resource: stream }]),
    ...onQueue(queue, 'SendMessage'),
  ];
}

/** The needs of the sweep. */
export function sweepNeeds(resources: RoleResources, mailroom: Directory['mailroom']): RoleNeed[] {
  const { table, queue } = resources;
  return [
    ...relayNeeds(resources, mailroom),
    rows(table, ['Query'], `${OUTBOX_PREFIX}any`),
    rows(table, ['Query', 'PutItem', 'DeleteItem'], `${SWEEP_STATE_KEY.PK}#any`),
    rows(table, ['GetItem', 'UpdateItem'], SWEEP_STATE_KEY.PK),
    { actions: ['dynamodb:DescribeTable'], resource: table },
    {
      actions: ['ssm:GetParametersByPath'],
      resource: arnBeside(table, 'ssm', `parameter${directoryPath(mailroom.table)}`),
    },
    ...onQueue(queue, 'GetQueueAttributes', 'ReceiveMessage'),
  ];
}

/** The needs of a consumer. @param publishes - its handlers write events */
export function consumerNeeds(
  { table, queue }: RoleResources,
  { name, order }: ConsumerEntry,
  publishes: boolean,
): RoleNeed[] {
  return [
    rows(table, ['GetItem', 'UpdateItem'], `${INBOX_PREFIX}${name}#any`),
    ...(order === undefined ? [] : [rows(table, ['GetItem', 'UpdateItem'], `${LAST_PREFIX}${name}#any`)]),
    rows(table, ['PutItem', 'DeleteItem'], rejectedKey(name, '').PK),
    rows(table, ['PutItem', 'DeleteItem'], failedKey(name, '').PK),
    ...(publishes ? [rows(table, ['PutItem'], `${OUTBOX_PREFIX}any`)] : []),
    ...onQueue(queue, 'ReceiveMessage', 'DeleteMessage', 'ChangeMessageVisibility', 'GetQueueAttributes'),
  ];
}
