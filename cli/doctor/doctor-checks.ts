import { readConsumerConfig } from '../../lambdas/runtime/config.ts';
import { ruleName } from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { once } from '../reading/rows-reader.ts';
import {
  type CheckedParts,
  isDenied,
  type PartCheck,
  type PartProblem,
  readOnce,
  runChecks,
} from '../status/part-checks.ts';
import type { WiringProblem } from '../status/wiring.ts';
import { type CheckedFunction, functionOf } from '../status/wiring-problems.ts';
import { wiringChecks } from '../status/wiring-report.ts';
import { type AccountProblem, clockProblems, concurrencyLeftProblems } from './account-problems.ts';
import { type AlarmProblem, alarmProblems } from './alarm-problems.ts';
import type { DeployedFunction, DeployedQueue, Deployment, DoctorDeps } from './deployment.ts';
import {
  consumerSettingsProblems,
  type FunctionProblem,
  failedProblems,
  relaySettingsProblems,
  settingsOf,
  silentSweepProblems,
  versionProblems,
} from './function-problems.ts';
import { type MappingProblem, queueSettingsProblems, streamSettingsProblems } from './mapping-problems.ts';
import {
  type ConsumerQueues,
  keptProblems,
  missingQueueProblems,
  type QueueProblem,
  queuePolicyProblems,
  redriveProblems,
  retentionProblems,
  sizeProblems,
  targetProblems,
  visibilityProblems,
} from './queue-problems.ts';
import {
  consumerNeeds,
  type RoleNeed,
  type RoleResources,
  roleProblems,
  streamRelayNeeds,
  sweepNeeds,
} from './role-needs.ts';
import {
  expiryProblems,
  protectionProblems,
  streamViewProblems,
  type TableProblem,
  tablePolicyProblems,
} from './table-problems.ts';

/** A finding of `mailroom doctor`. */
export type DoctorProblem = PartProblem<
  | (WiringProblem | TableProblem | MappingProblem | QueueProblem)['problem']
  | (FunctionProblem | AlarmProblem | AccountProblem)['problem']
  | 'role'
>;

type DoctorCheck = PartCheck<DoctorProblem['problem']>;

/** The result of {@link examine}. */
export interface Examination extends CheckedParts<DoctorProblem['problem']> {
  /** The number of checks that were made. */
  readonly checks: number;
  /** The checks that do not apply here, as sentences. */
  readonly skipped: readonly string[];
}

const QUEUE = ['sqs:GetQueueAttributes'];
const FUNCTION = ['lambda:GetFunctionConfiguration'];
const MAPPINGS = ['lambda:ListEventSourceMappings'];
const TABLE = ['dynamodb:DescribeTable'];
const SIMULATE = ['lambda:GetFunctionConfiguration', 'iam:SimulatePrincipalPolicy'];
const NO_CLIENT = ['the package @aws-sdk/client-iam (npm install --save-dev @aws-sdk/client-iam)'];

/**
 * Makes all checks of a deployed Mailroom: those of `status`, and those of settings that no template can promise.
 *
 * @param progress - called after each check with the number of checks made, and of all
 */
export async function examine(
  deps: DoctorDeps,
  progress: (made: number, all: number) => void = () => {},
): Promise<Examination> {
  const reading = cached(deps);
  const queues = await readQueues(reading);
  const checks = [
    ...wiringChecks({ ...reading, queueArn: (url) => queues.get(url)?.arn }),
    ...sharedChecks(reading),
    ...deps.directory.consumers.flatMap((consumer) => consumerChecks(reading, consumer)),
    ...roleChecks(reading, queues),
  ];
  const { problems, notChecked } = await runChecks(checks, (made) => progress(made, checks.length));
  return {
    checks: checks.length,
    problems: withoutConsequences(problems),
    notChecked: [
      ...notChecked,
      ...(deps.roles === 'no-client' ? [{ needs: NO_CLIENT, parts: ['roles'] }] : []),
    ],
    skipped: deps.roles === 'local' ? ['roles: a local engine checks no policies'] : [],
  };
}

/** A sweep that cannot run is not reported as silent, too. */
function withoutConsequences(problems: readonly DoctorProblem[]) {
  const isExplained = problems.some(({ part, problem }) => part === 'sweep' && problem !== 'sweep-silent');
  return problems.filter(({ problem }) => problem !== 'sweep-silent' || !isExplained);
}

/** The dependencies, with everything that several checks need read once. */
function cached(deps: DoctorDeps): DoctorDeps {
  const { wiring, deployment } = deps;
  const mappings = new Map<string, ReturnType<typeof wiring.mappings>>();
  const functions = new Map<string, ReturnType<Deployment['function']>>();
  const queues = new Map<string, ReturnType<Deployment['queue']>>();
  return {
    ...deps,
    wiring: { ...wiring, mappings: (name) => once(mappings, name, () => wiring.mappings(name)) },
    deployment: {
      ...deployment,
      table: readOnce(() => deployment.table()),
      queue: (url) => once(queues, url, () => deployment.queue(url)),
      function: (name) => once(functions, name, () => deployment.function(name)),
    },
  };
}

/** The queues that exist and that the caller may read, by URL. */
async function readQueues({
  directory,
  deployment,
}: DoctorDeps): Promise<ReadonlyMap<string, DeployedQueue>> {
  const urls = [directory.mailroom.failureQueue, ...directory.consumers.flatMap(urlsOf)];
  const read = await Promise.all(
    urls.map(async (url) => {
      const queue = await deployment.queue(url).catch((error: unknown) => {
        if (isDenied(error)) return undefined; // each check that needs it reports that
        throw error;
      });
      return [url, queue] as const;
    }),
  );
  return new Map(read.flatMap(([url, queue]) => (queue === undefined ? [] : [[url, queue] as const])));
}

function urlsOf({ queue, deadLetterQueue, undeliveredQueue }: ConsumerEntry): string[] {
  return [queue, deadLetterQueue, undeliveredQueue];
}

/** The checks of what all services share. */
function sharedChecks(deps: DoctorDeps): DoctorCheck[] {
  const { directory, deployment, wiring, now } = deps;
  const { mailroom, consumers } = directory;
  const { failureQueue, stack, table: tableName } = mailroom;
  const { relay, sweep } = relaysOf(deps);
  const table = () => deployment.table();
  const failures = () => deployment.queue(failureQueue);
  return [
    { part: 'table', needs: TABLE, find: () => streamViewProblems(table, mailroom) },
    {
      part: 'table',
      needs: ['dynamodb:DescribeTimeToLive'],
      find: () => expiryProblems(deployment, mailroom),
    },
    {
      part: 'table',
      needs: [...TABLE, 'dynamodb:GetResourcePolicy'],
      find: () => tablePolicyProblems(deployment, mailroom),
    },
    {
      part: 'table',
      needs: [...TABLE, 'dynamodb:DescribeContinuousBackups'],
      find: () => protectionProblems(deployment, table, mailroom),
    },
    {
      part: relay.part,
      needs: [...MAPPINGS, ...QUEUE],
      find: async () => streamSettingsProblems(wiring, relay, tableName, (await failures())?.arn),
    },
    {
      part: relay.part,
      needs: QUEUE,
      find: async () => {
        const queue = await failures();
        if (queue === undefined) return missingQueueProblems(relay.part, stack, failureQueue, queue);
        return keptProblems(relay.part, 'the queue of discarded batches', failureQueue, queue);
      },
    },
    ...[relay, sweep].map(
      (checked): DoctorCheck => ({
        part: checked.part,
        needs: FUNCTION,
        find: () =>
          ofFunction(deployment, checked, (found) => [
            ...failedProblems(checked, found),
            ...relaySettingsProblems(checked, found, mailroom),
          ]),
      }),
    ),
    {
      part: sweep.part,
      needs: ['dynamodb:GetItem', ...TABLE, ...FUNCTION],
      find: async () => silentSweepProblems(await deployment.function(sweep.name), now, await deps.sweptAt()),
    },
    {
      part: sweep.part,
      needs: ['dynamodb:GetItem'],
      find: async () => versionProblems(directory, await deps.rowSchema()),
    },
    {
      part: 'account',
      needs: ['lambda:GetAccountSettings', 'cloudwatch:GetMetricData'],
      find: async () =>
        concurrencyLeftProblems(
          await deployment.concurrency(),
          consumers.length + 2,
          await deployment.concurrencyPeak(),
        ),
    },
    {
      part: 'alarms',
      needs: ['cloudwatch:DescribeAlarms'],
      find: async () => alarmProblems(await deployment.alarms(), stack),
    },
    { part: 'this machine', needs: [], find: async () => clockProblems(deps.machineAheadMs) },
  ];
}

/** The checks of one consumer. */
function consumerChecks(
  { directory: { mailroom }, deployment, wiring }: DoctorDeps,
  consumer: ConsumerEntry,
): DoctorCheck[] {
  const { name: part, stack } = consumer;
  const checked = functionOf(consumer);
  const rule = ruleName(consumer);
  const queues = async (): Promise<ConsumerQueues> => {
    const [queue, deadLetterQueue, undeliveredQueue] = await Promise.all(
      urlsOf(consumer).map(deployment.queue),
    );
    return { queue, deadLetterQueue, undeliveredQueue };
  };
  return [
    { part, needs: QUEUE, find: async () => queueProblems(consumer, await queues(), mailroom.bus) },
    {
      part,
      needs: [...FUNCTION, ...QUEUE],
      find: () =>
        ofFunction(deployment, checked, async (found) => {
          const { queue } = await queues();
          const settings = settingsOf(readConsumerConfig, found);
          return [
            ...failedProblems(checked, found),
            ...consumerSettingsProblems(consumer, found, queue, mailroom),
            ...(queue === undefined || typeof settings === 'string'
              ? []
              : visibilityProblems(consumer, queue, settings.visibilityTimeoutMs)),
          ];
        }),
    },
    {
      part,
      needs: [...MAPPINGS, ...QUEUE],
      find: async () => {
        const { queue } = await queues();
        return queue === undefined ? [] : queueSettingsProblems(wiring, checked, queue.arn);
      },
    },
    {
      part,
      needs: ['events:ListTargetsByRule', ...QUEUE],
      find: async () => targetProblems(deployment, mailroom, { name: part, rule }, await queues()),
    },
  ];

  function queueProblems(entry: ConsumerEntry, found: ConsumerQueues, bus: string): QueueProblem[] {
    const { queue, deadLetterQueue, undeliveredQueue } = found;
    const all = [
      [entry.queue, queue],
      [entry.deadLetterQueue, deadLetterQueue],
      [entry.undeliveredQueue, undeliveredQueue],
    ] as const;
    const [arn, partition, , region, account] =
      (queue ?? deadLetterQueue ?? undeliveredQueue)?.arn.split(':') ?? [];
    const ruleArn = [arn, partition, 'events', region, account, `rule/${bus}/${rule}`].join(':');
    return [
      ...all.flatMap(([url, one]) => missingQueueProblems(part, stack, url, one)),
      ...redriveProblems(entry, found),
      ...retentionProblems(entry, found),
      ...(undeliveredQueue === undefined
        ? []
        : keptProblems(part, `the undelivered queue of ${part}`, entry.undeliveredQueue, undeliveredQueue)),
      ...all.flatMap(([url, one]) => (one === undefined ? [] : sizeProblems(part, part, url, one))),
      ...queuePolicyProblems(entry, found, ruleArn),
    ];
  }
}

/** The checks of the roles; none without a simulator. */
function roleChecks(deps: DoctorDeps, queues: ReadonlyMap<string, DeployedQueue>): DoctorCheck[] {
  const { directory, deployment, roles } = deps;
  if (typeof roles === 'string') return [];
  const { mailroom, consumers } = directory;
  const { relay, sweep } = relaysOf(deps);
  const resources = async (): Promise<RoleResources> => {
    const { arn, streamArn } = await deployment.table();
    return { table: arn, stream: streamArn, queue: (url) => queues.get(url)?.arn };
  };
  const check = (
    checked: CheckedFunction,
    needs: (resources: RoleResources, found: DeployedFunction) => readonly RoleNeed[],
  ): DoctorCheck => ({
    part: checked.part,
    needs: [...TABLE, ...SIMULATE],
    find: () =>
      ofFunction(deployment, checked, async (found) =>
        roleProblems(roles, checked, found.role, needs(await resources(), found)),
      ),
  });
  return [
    check(relay, (arns) => streamRelayNeeds(arns, mailroom)),
    check(sweep, (arns) => sweepNeeds(arns, mailroom)),
    ...consumers.map((consumer) =>
      check(functionOf(consumer), (arns, found) => {
        const settings = settingsOf(readConsumerConfig, found);
        const { publishes = [] } = typeof settings === 'string' ? {} : settings;
        return consumerNeeds(arns, consumer, publishes.length > 0);
      }),
    ),
  ];
}

/** Checks a function; one that does not exist is reported as `no-function`. */
async function ofFunction(
  deployment: Deployment,
  { name }: CheckedFunction,
  find: (found: DeployedFunction) => readonly DoctorProblem[] | Promise<readonly DoctorProblem[]>,
): Promise<readonly DoctorProblem[]> {
  const found = await deployment.function(name);
  return found === undefined ? [] : find(found);
}

function relaysOf({ directory: { mailroom } }: DoctorDeps) {
  const { streamFunction, sweepFunction, stack } = mailroom;
  return {
    relay: { part: 'stream relay', name: streamFunction, stack },
    sweep: { part: 'sweep', name: sweepFunction, stack },
  };
}
