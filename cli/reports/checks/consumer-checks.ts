import { readConsumerConfig } from '../../../lambdas/runtime/base/consumer-config.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { type AsyncProblems, type CheckDeps, check, functionOf, type PartCheck, readWith } from './check.ts';
import { existingQueueChecks, missingQueue } from './existing-queue-checks.ts';
import { concurrencyFaults, invocationFaults, mappingFaults, startFaults } from './function-checks.ts';
import { ruleProblems } from './rule-checks.ts';

/** The checks of one consumer. */
export function consumerChecks(deps: CheckDeps, consumer: ConsumerEntry): PartCheck[] {
  const subject = { ...deps, consumer };
  const { name } = consumer;
  return [
    check(name, 'flow', () => ruleProblems(subject), consumer),
    check(name, 'flow', () => deliveryFaults(subject), consumer),
    check(name, 'flow', () => concurrencyFaults(deps.resources, functionOf(consumer)), consumer),
    check(
      name,
      'flow',
      () => invocationFaults(deps.resources, functionOf(consumer), consumer.queue),
      consumer,
    ),
    check(name, 'settings', () => functionSettings(subject), consumer),
    ...existingQueueChecks(deps, consumer),
  ];
}

/** A consumer, and the port to its resources. */
interface ConsumerSubject extends CheckDeps {
  readonly consumer: ConsumerEntry;
}

/** The IAM actions that reading a pause needs. */
const PAUSE_ACTIONS = ['dynamodb:Query', 'sqs:GetQueueAttributes'];

/** A queue that its function does not read. */
async function* deliveryFaults({ consumer, resources, pauses }: ConsumerSubject): AsyncProblems {
  const { name, queue: url } = consumer;
  const queue = await resources.queue(url);
  if (queue === undefined) yield missingQueue(url);
  else
    yield* mappingFaults(resources, functionOf(consumer), (source) => source === queue.arn, {
      stopped: `${name} receives no messages`,
      filtered: `${name} loses messages: Lambda deletes those that the filter does not match. Remove it before you repair what was lost`,
      paused: () => readWith(PAUSE_ACTIONS, () => pauses(consumer)),
    });
}

/** An environment that does not fit its table, its queue or the relay. */
async function* functionSettings({ consumer, directory, resources }: ConsumerSubject): AsyncProblems {
  const { table } = directory.mailroom;
  const { name, queue: url } = consumer;
  const found = yield* startFaults(resources, functionOf(consumer), readConsumerConfig);
  if (found === undefined) return;
  const { settings } = found;
  if (settings.tableName !== table) {
    const text = `${name} uses the table ${settings.tableName} instead of ${table}: its inbox is not in this Mailroom`;
    yield { problem: 'settings', resource: 'table', text };
  }
  if (settings.consumer !== name || settings.queueUrl !== url) {
    const text = `the function of ${name} has the settings of ${settings.consumer} and the queue ${settings.queueUrl}: it keeps another inbox`;
    yield { problem: 'settings', resource: 'consumer', text };
  }
}
