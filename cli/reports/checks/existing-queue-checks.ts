import { readConsumerConfig } from '../../../lambdas/runtime/base/consumer-config.ts';
import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { type ConsumerEntry, invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { DeployedQueue } from '../../deployment/resources.ts';
import { duration } from '../../terminal/times.ts';
import {
  type AsyncProblems,
  type CheckDeps,
  check,
  FIND_MISSED,
  type FoundProblem,
  type PartCheck,
  type Problems,
} from './check.ts';
import { settingsOf } from './function-checks.ts';

/** A registered queue that was deleted. */
export function missingQueue(url: string): FoundProblem {
  const text = `the queue ${url} does not exist: messages sent to it are lost. Once it is back, \`audit\` finds the events that were in it`;
  return { problem: 'no-queue', physicalId: url, text, followUp: FIND_MISSED };
}

/** The checks of an existing queue, which no stack of the Mailroom declares: it must fit the function and the inbox of its consumer. */
export function existingQueueChecks(deps: CheckDeps, consumer: ConsumerEntry): PartCheck[] {
  if (consumer.rule !== undefined) return [];
  return [check(consumer.name, 'settings', () => queueFaults(deps, consumer), consumer)];
}

async function* queueFaults({ resources }: CheckDeps, consumer: ConsumerEntry): AsyncProblems {
  const [queue, deadLetterQueue, found] = await Promise.all([
    resources.queue(consumer.queue),
    resources.queue(consumer.deadLetterQueue),
    resources.function(invokedFunction(consumer.function, consumer.alias)),
  ]);
  if (queue === undefined) return; // reported as `no-queue`
  const settings = found && settingsOf(readConsumerConfig, found);
  if (typeof settings === 'object') yield* visibilityFault(consumer, queue, settings.visibilityTimeoutMs);
  if (deadLetterQueue === undefined) return;
  yield* redriveFaults(consumer, queue, deadLetterQueue);
  const keptS = queue.retentionS + deadLetterQueue.retentionS;
  const { name, inboxRetentionDays } = consumer;
  if (keptS <= inboxRetentionDays * 86_400) return;
  const text = `the queues of ${name} keep messages for ${duration(keptS * 1_000)}, but its inbox rows are kept for ${inboxRetentionDays} d: a message redriven after that is rejected as too old`;
  yield { problem: 'retention', resource: 'inbox', text };
}

function* visibilityFault(
  { name }: ConsumerEntry,
  { url, visibilityS }: DeployedQueue,
  ms: number,
): Problems {
  const declaredS = Math.ceil(ms / 1_000);
  if (visibilityS === declaredS) return;
  const effect =
    visibilityS < declaredS
      ? 'SQS redelivers messages that are still being processed, and they use up their receives'
      : 'after a crash, messages wait longer';
  const text = `the visibility timeout of ${name} is ${visibilityS} s instead of ${declaredS} s: ${effect}`;
  const set = ['sqs', 'set-queue-attributes', '--queue-url', url, '--attributes'];
  yield { problem: 'visibility', text, fix: ['aws', ...set, `VisibilityTimeout=${declaredS}`] };
}

/** A queue without a way to its dead-letter queue, or with too few receives. */
function* redriveFaults(
  { name, maxAttempts }: ConsumerEntry,
  queue: DeployedQueue,
  deadLetterQueue: DeployedQueue,
): Problems {
  const { deadLetterTargetArn: target, maxReceiveCount } = jsonObject(queue.redrive) ?? {};
  if (target !== deadLetterQueue.arn) {
    const found = target === undefined ? 'has no redrive policy' : `sends dead letters to ${target}`;
    const text = `the queue of ${name} ${found}: messages that ${name} rejects never reach consumer:${name}`;
    yield { problem: 'redrive', text };
  } else if (!(Number(maxReceiveCount) > maxAttempts)) {
    const text = `the queue of ${name} moves a message to the dead-letter queue after ${maxReceiveCount} receives, but ${name} allows ${maxAttempts} attempts: messages are dead-lettered before their attempts are used up`;
    yield { problem: 'redrive', resource: 'receives', text };
  }
}
