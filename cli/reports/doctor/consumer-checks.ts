import { readConsumerConfig } from '../../../lambdas/runtime/base/config.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { DEFAULT_BUS, functionOf, routesOf } from '../status/wiring-problems.ts';
import type { DoctorDeps } from './deployed-resources.ts';
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
  sourceProblems,
  targetProblems,
  visibilityProblems,
} from './queue-problems.ts';

/** The checks of one consumer. */
export function consumerChecks(
  { directory: { mailroom }, resources, wiring }: DoctorDeps,
  consumer: ConsumerEntry,
): DoctorCheck[] {
  const { name: part } = consumer;
  const checked = functionOf(consumer);
  const queues = async (): Promise<ConsumerQueues> => {
    const [queue, deadLetterQueue, undeliveredQueue] = await Promise.all(
      urlsOf(consumer).map(resources.queue),
    );
    return { queue, deadLetterQueue, undeliveredQueue };
  };
  return [
    { part, needs: NEEDS.queue, find: async () => queueProblems(mailroom, consumer, await queues()) },
    {
      part,
      needs: [...NEEDS.function, ...NEEDS.queue],
      find: () =>
        ofFunction(resources, checked, async (found) => {
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
        return queue === undefined ? [] : queueSettingsProblems(wiring, consumer, checked, queue.arn);
      },
    },
    ...routesOf(mailroom, consumer).map(({ bus, rule }) => ({
      part,
      needs: ['events:ListTargetsByRule', ...NEEDS.queue],
      find: async () => targetProblems(resources, { bus }, { name: part, rule }, await queues()),
    })),
  ];
}

/** The problems of a consumer's queues. */
function queueProblems(
  mailroom: Directory['mailroom'],
  consumer: ConsumerEntry,
  queues: ConsumerQueues,
): QueueProblem[] {
  const { name: part } = consumer;
  const { queue, deadLetterQueue, undeliveredQueue } = queues;
  const deployed = [queue, deadLetterQueue, undeliveredQueue];
  const all = urlsOf(consumer).map((url, index) => [url, deployed[index]] as const);
  const [arn, partition, , region, account] =
    (queue ?? deadLetterQueue ?? undeliveredQueue)?.arn.split(':') ?? [];
  // The ARN of a rule on the default bus does not name the bus.
  const ruleArns = routesOf(mailroom, consumer).map(({ bus, rule }) =>
    [
      arn,
      partition,
      'events',
      region,
      account,
      bus === DEFAULT_BUS ? `rule/${rule}` : `rule/${bus}/${rule}`,
    ].join(':'),
  );
  return [
    ...all.flatMap(([url, one]) => missingQueueProblems(part, consumer, url, one)),
    ...redriveProblems(consumer, queues),
    ...sourceProblems(consumer, queues),
    ...retentionProblems(consumer, queues),
    ...(undeliveredQueue === undefined || consumer.undeliveredQueue === undefined
      ? []
      : keptProblems(part, `the undelivered queue of ${part}`, consumer.undeliveredQueue, undeliveredQueue)),
    ...all.flatMap(([url, one]) => (one === undefined ? [] : sizeProblems(part, url, one))),
    ...queuePolicyProblems(consumer, queues, ruleArns),
  ];
}
