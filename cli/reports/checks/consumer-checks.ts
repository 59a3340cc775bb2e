import { readConsumerConfig } from '../../../lambdas/runtime/base/consumer-config.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { type AsyncProblems, type CheckDeps, check, functionOf, type PartCheck, readWith } from './check.ts';
import {
  concurrencyFaults,
  invocationFaults,
  itemFailures,
  mappingFaults,
  mappingOf,
  startFaults,
  updateMapping,
} from './function-checks.ts';
import { missingQueue, queueFaults, setAttribute } from './queue-faults.ts';
import { routesOf, ruleArns, ruleProblems } from './rule-checks.ts';

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
    check(name, 'settings', () => queueSettings(subject), consumer),
    check(name, 'settings', () => functionSettings(subject), consumer),
    check(name, 'settings', () => mappingSettings(subject), consumer),
    check(name, 'settings', () => undeliverable(subject), consumer),
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

/** Queues that do not pass messages on, or do not keep them. */
async function* queueSettings({ consumer, directory, resources }: ConsumerSubject): AsyncProblems {
  const { deadLetterQueue, undeliveredQueue } = consumer;
  const queues = {
    queue: await resources.queue(consumer.queue),
    deadLetterQueue: await resources.queue(deadLetterQueue),
    undeliveredQueue: undeliveredQueue === undefined ? undefined : await resources.queue(undeliveredQueue),
  };
  if (queues.deadLetterQueue === undefined) yield missingQueue(deadLetterQueue, 'dead-letter-queue');
  if (queues.undeliveredQueue === undefined && undeliveredQueue !== undefined)
    yield missingQueue(undeliveredQueue, 'undelivered-queue');
  const { arn } = queues.queue ?? queues.deadLetterQueue ?? queues.undeliveredQueue ?? {};
  yield* queueFaults(consumer, queues, arn === undefined ? [] : ruleArns(directory.mailroom, consumer, arn));
}

/** Settings of its mapping that lose messages, or let it starve other functions. */
async function* mappingSettings({ consumer, resources }: ConsumerSubject): AsyncProblems {
  const { name } = consumer;
  const checked = functionOf(consumer);
  const queue = await resources.queue(consumer.queue);
  const mapping = await mappingOf(resources, checked, (source) => source === queue?.arn);
  if (mapping === undefined) return; // reported as `no-queue` or `no-mapping`
  const one = `the event source mapping of ${checked.name}`;
  const lost = `SQS deletes the messages that ${name} fails to process, so they are lost`;
  yield* itemFailures(checked, mapping, lost);
  const { batchSize = mapping.batchSize } = consumer;
  if (mapping.batchSize !== batchSize) {
    const text = `${one} passes at most ${mapping.batchSize} messages to an invocation instead of ${batchSize}: ${name} works at another speed and price than declared`;
    yield { problem: 'batch-size', text, fix: updateMapping(mapping, '--batch-size', String(batchSize)) };
  }
  if (mapping.concurrencyMax === undefined) {
    const text = `${one} has no maximum concurrency: ${name} can use up the concurrency of the account, which stops all other functions`;
    yield { problem: 'no-max-concurrency', text };
  }
}

/** Rules that lose the events which EventBridge cannot deliver. */
async function* undeliverable({ consumer, directory, resources }: ConsumerSubject): AsyncProblems {
  const { name, queue: url, undeliveredQueue: undeliveredUrl } = consumer;
  if (undeliveredUrl === undefined) return; // an existing queue
  const [queue, undelivered] = await Promise.all([url, undeliveredUrl].map(resources.queue));
  if (queue === undefined || undelivered === undefined) return; // reported as `no-queue`
  for (const { bus, rule } of routesOf(directory.mailroom, consumer)) {
    const deployed = await resources.rule(bus, rule);
    const target = deployed?.targets.find(({ arn }) => arn === queue.arn);
    if (target === undefined || target.deadLetterQueue === undelivered.arn) continue; // without a target: `target`
    const text = `the rule ${rule} of ${name} has no dead-letter queue: events that its queue does not accept are lost after 24 hours, or at once`;
    const { id: Id, arn: Arn, settings } = target;
    const targets = JSON.stringify([{ Id, Arn, ...settings, DeadLetterConfig: { Arn: undelivered.arn } }]);
    const put = ['aws', 'events', 'put-targets', '--rule', rule, '--event-bus-name', bus];
    yield { problem: 'no-dead-letter-queue', resource: rule, text, fix: [...put, '--targets', targets] };
  }
}

/** An environment or timeout that does not fit its table, its queue or the relay. */
async function* functionSettings({ consumer, directory, resources }: ConsumerSubject): AsyncProblems {
  const { table } = directory.mailroom;
  const { name, queue: url } = consumer;
  const found = yield* startFaults(resources, functionOf(consumer), readConsumerConfig);
  if (found === undefined) return;
  const { settings, timeoutS } = found;
  if (settings.tableName !== table) {
    const text = `${name} uses the table ${settings.tableName} instead of ${table}: its inbox is not in this Mailroom`;
    yield { problem: 'settings', resource: 'table', text };
  }
  if (settings.consumer !== name || settings.queueUrl !== url) {
    const text = `the function of ${name} has the settings of ${settings.consumer} and the queue ${settings.queueUrl}: it keeps another inbox`;
    yield { problem: 'settings', resource: 'consumer', text };
  }
  const queue = await resources.queue(url);
  if (queue === undefined) return; // reported as `no-queue`
  const { visibilityS } = queue;
  if (timeoutS > visibilityS) {
    const text = `the function of ${name} may run for ${timeoutS} s, but SQS hides its messages for ${visibilityS} s only: they are redelivered while it processes them`;
    yield { problem: 'timeout', text };
  }
  const declaredS = Math.ceil(settings.visibilityTimeoutMs / 1_000);
  if (visibilityS !== declaredS) {
    const effect =
      visibilityS < declaredS
        ? 'SQS redelivers messages that are still being processed, and they use up their receives'
        : 'after a crash, messages wait longer';
    const text = `the visibility timeout of ${name} is ${visibilityS} s instead of ${declaredS} s: ${effect}`;
    yield { problem: 'visibility', text, fix: setAttribute(queue, 'VisibilityTimeout', declaredS) };
  }
}
