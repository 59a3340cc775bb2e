import { readConsumerConfig } from '../../lambdas/runtime/config.ts';
import { ruleName } from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';
import { functionOf } from '../status/wiring-problems.ts';
import type { DoctorDeps } from './deployment.ts';
import { type DoctorCheck, NEEDS, ofFunction, urlsOf } from './doctor-problem.ts';
import { consumerSettingsProblems, failedProblems, settingsOf } from './function-problems.ts';
import { queueSettingsProblems } from './mapping-problems.ts';
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

/** The checks of one consumer. */
export function consumerChecks(
  { directory: { mailroom }, deployment, wiring }: DoctorDeps,
  consumer: ConsumerEntry,
): DoctorCheck[] {
  const { name: part } = consumer;
  const checked = functionOf(consumer);
  const rule = ruleName(consumer);
  const queues = async (): Promise<ConsumerQueues> => {
    const [queue, deadLetterQueue, undeliveredQueue] = await Promise.all(
      urlsOf(consumer).map(deployment.queue),
    );
    return { queue, deadLetterQueue, undeliveredQueue };
  };
  return [
    { part, needs: NEEDS.queue, find: async () => queueProblems(consumer, await queues(), mailroom.bus) },
    {
      part,
      needs: [...NEEDS.function, ...NEEDS.queue],
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
      needs: [...NEEDS.mappings, ...NEEDS.queue],
      find: async () => {
        const { queue } = await queues();
        return queue === undefined ? [] : queueSettingsProblems(wiring, checked, queue.arn);
      },
    },
    {
      part,
      needs: ['events:ListTargetsByRule', ...NEEDS.queue],
      find: async () => targetProblems(deployment, mailroom, { name: part, rule }, await queues()),
    },
  ];
}

/** The problems of a consumer's queues. */
function queueProblems(consumer: ConsumerEntry, queues: ConsumerQueues, bus: string): QueueProblem[] {
  const { name: part, stack } = consumer;
  const { queue, deadLetterQueue, undeliveredQueue } = queues;
  const all = [
    [consumer.queue, queue],
    [consumer.deadLetterQueue, deadLetterQueue],
    [consumer.undeliveredQueue, undeliveredQueue],
  ] as const;
  const [arn, partition, , region, account] =
    (queue ?? deadLetterQueue ?? undeliveredQueue)?.arn.split(':') ?? [];
  const ruleArn = [arn, partition, 'events', region, account, `rule/${bus}/${ruleName(consumer)}`].join(':');
  return [
    ...all.flatMap(([url, one]) => missingQueueProblems(part, stack, url, one)),
    ...redriveProblems(consumer, queues),
    ...retentionProblems(consumer, queues),
    ...(undeliveredQueue === undefined
      ? []
      : keptProblems(part, `the undelivered queue of ${part}`, consumer.undeliveredQueue, undeliveredQueue)),
    ...all.flatMap(([url, one]) => (one === undefined ? [] : sizeProblems(part, url, one))),
    ...queuePolicyProblems(consumer, queues, ruleArn),
  ];
}
