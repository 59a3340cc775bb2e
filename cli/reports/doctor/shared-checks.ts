import { relayFunctions } from '../status/wiring-problems.ts';
import { clockProblems, concurrencyLeftProblems } from './account-problems.ts';
import { alarmProblems } from './alarm-problems.ts';
import type { DoctorDeps } from './deployed-resources.ts';
import { type DoctorCheck, NEEDS, ofFunction } from './doctor-problem.ts';
import {
  failedProblems,
  relaySettingsProblems,
  silentSweepProblems,
  versionProblems,
} from './function-problems.ts';
import { streamSettingsProblems } from './mapping-problems.ts';
import { keptProblems, missingQueueProblems } from './queue-problems.ts';
import {
  expiryProblems,
  protectionProblems,
  streamViewProblems,
  tablePolicyProblems,
} from './table-problems.ts';

/** The checks of what all services share. */
export function sharedChecks(deps: DoctorDeps): DoctorCheck[] {
  const { directory, resources, wiring, now } = deps;
  const { mailroom, consumers } = directory;
  const { failureQueue, table: tableName } = mailroom;
  const { relay, sweep } = relayFunctions(deps.directory.mailroom);
  const failures = () => resources.queue(failureQueue);
  return [
    ...tableChecks(deps),
    {
      part: relay.part,
      needs: [...NEEDS.mappings, ...NEEDS.queue],
      find: async () => streamSettingsProblems(wiring, relay, tableName, (await failures())?.arn),
    },
    {
      part: relay.part,
      needs: NEEDS.queue,
      find: async () => {
        const queue = await failures();
        if (queue === undefined) return missingQueueProblems(relay.part, mailroom, failureQueue, queue);
        return keptProblems(relay.part, 'the queue of discarded batches', failureQueue, queue);
      },
    },
    ...[relay, sweep].map(
      (checked): DoctorCheck => ({
        part: checked.part,
        needs: NEEDS.function,
        find: () =>
          ofFunction(resources, checked, (found) => [
            ...failedProblems(checked, found),
            ...relaySettingsProblems(checked, found, mailroom),
          ]),
      }),
    ),
    {
      part: sweep.part,
      needs: ['dynamodb:GetItem', ...NEEDS.table, ...NEEDS.function],
      find: async () => silentSweepProblems(await resources.function(sweep.name), now, await deps.sweptAt()),
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
          await resources.concurrency(),
          consumers.length + 2,
          await resources.concurrencyPeak(),
        ),
    },
    {
      part: 'alarms',
      needs: ['cloudwatch:DescribeAlarms'],
      find: async () => alarmProblems(await resources.alarms(), directory),
    },
    { part: 'this machine', needs: [], find: async () => clockProblems(deps.machineAheadMs) },
  ];
}

function tableChecks({ directory: { mailroom }, resources }: DoctorDeps): DoctorCheck[] {
  const table = () => resources.table();
  return [
    { part: 'table', needs: NEEDS.table, find: () => streamViewProblems(table, mailroom) },
    {
      part: 'table',
      needs: ['dynamodb:DescribeTimeToLive'],
      find: () => expiryProblems(resources, mailroom),
    },
    {
      part: 'table',
      needs: [...NEEDS.table, 'dynamodb:GetResourcePolicy'],
      find: () => tablePolicyProblems(resources, mailroom),
    },
    {
      part: 'table',
      needs: [...NEEDS.table, 'dynamodb:DescribeContinuousBackups'],
      find: () => protectionProblems(resources, table, mailroom),
    },
  ];
}
