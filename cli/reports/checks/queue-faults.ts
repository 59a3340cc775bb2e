import { PUT_EVENTS_BYTES_MAX } from '../../../lambdas/runtime/bus/event-bus.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { DeployedQueue } from '../../deployment/resources.ts';
import { duration } from '../../terminal/times.ts';
import { FIND_MISSED, type FoundProblem, type Problems } from './check.ts';
import { matchesAny, objectOf, type ReadStatement, statementsOf } from './resource-policy.ts';

/** The queues of a consumer that exist. */
export interface ConsumerQueues {
  readonly queue: DeployedQueue | undefined;
  readonly deadLetterQueue: DeployedQueue | undefined;
  readonly undeliveredQueue: DeployedQueue | undefined;
}

/** The retention of queues without a consumer, which is also the longest of SQS: 14 days. */
const RETENTION_S = 14 * 86_400;

/** The least retention of dead letters: one of Friday is still there on Monday. See `lib/checks/retentions.ts`. */
const DEAD_LETTERS_MIN_S = 3 * 86_400;

/** The largest message of SQS, which an event of the largest size needs. */
const MESSAGE_BYTES = 1_048_576;

/** A registered queue that was deleted. */
export function missingQueue(url: string, resource?: string): FoundProblem {
  const text = `the queue ${url} does not exist: messages sent to it are lost. Once it is back, \`audit\` finds the events that were in it`;
  return { problem: 'no-queue', resource, physicalId: url, text, followUp: FIND_MISSED };
}

/** A queue without a consumer that keeps its messages for less than the constructs set. */
export function* shortRetention(what: string, queue: DeployedQueue, resource?: string): Problems {
  if (queue.retentionS >= RETENTION_S) return;
  const text = `${what} keeps messages for ${duration(queue.retentionS * 1_000)} instead of 14 d: they are permanently deleted before an operator can look at them`;
  const fix = setAttribute(queue, 'MessageRetentionPeriod', RETENTION_S);
  yield { problem: 'retention', resource, text, fix };
}

/** The problems of a consumer's queues, apart from missing ones. @param ruleArns - of the rules that send to its queue */
export function* queueFaults(
  consumer: ConsumerEntry,
  queues: ConsumerQueues,
  ruleArns: readonly string[],
): Problems {
  const { queue, deadLetterQueue, undeliveredQueue } = queues;
  yield* sourceFaults(consumer, queues);
  yield* redriveFaults(consumer, queues);
  yield* retentionFaults(consumer, queues);
  if (undeliveredQueue !== undefined)
    yield* shortRetention(`the undelivered queue of ${consumer.name}`, undeliveredQueue, 'undelivered-queue');
  yield* sizeFaults(queue);
  yield* sizeFaults(deadLetterQueue, 'dead-letter-queue');
  yield* sizeFaults(undeliveredQueue, 'undelivered-queue');
  // An existing queue has other senders.
  if (ruleArns.length > 0) yield* policyFaults(consumer, queues, ruleArns);
}

/** A queue that holds every message back, or deletes messages whose attempts are not over. */
function* sourceFaults(consumer: ConsumerEntry, { queue, deadLetterQueue }: ConsumerQueues): Problems {
  if (queue === undefined) return;
  const { name, rule, maxAttempts, inboxRetentionDays } = consumer;
  const { delayS, retentionS, visibilityS } = queue;
  // An existing queue may have a delay of its own.
  if (delayS > 0 && rule !== undefined) {
    const text = `the queue of ${name} holds every message back for ${duration(delayS * 1_000)} (DelaySeconds)`;
    yield { problem: 'delay', text, fix: setAttribute(queue, 'DelaySeconds', 0) };
  }
  if (retentionS >= visibilityS * (maxAttempts + 1)) return;
  const text = `the queue of ${name} keeps messages for ${duration(retentionS * 1_000)}: SQS deletes those that wait or fail before their ${maxAttempts} attempts are over, and they never reach consumer:${name}`;
  const longestS = Math.min(RETENTION_S, inboxRetentionDays * 86_400 - (deadLetterQueue?.retentionS ?? 0));
  const fix = setAttribute(queue, 'MessageRetentionPeriod', longestS);
  yield { problem: 'retention', text, fix, followUp: FIND_MISSED };
}

/** A queue without a way to its dead-letter queue, or with too few receives. */
function* redriveFaults(consumer: ConsumerEntry, { queue, deadLetterQueue }: ConsumerQueues): Problems {
  if (queue === undefined || deadLetterQueue === undefined) return;
  const { name, maxAttempts } = consumer;
  const { deadLetterTargetArn: target, maxReceiveCount } = objectOf(queue.redrive);
  if (target !== deadLetterQueue.arn) {
    const found = target === undefined ? 'has no redrive policy' : `sends dead letters to ${target}`;
    const text = `the queue of ${name} ${found}: messages that ${name} rejects never reach consumer:${name}`;
    yield { problem: 'redrive', text };
  } else if (!(Number(maxReceiveCount) > maxAttempts)) {
    const text = `the queue of ${name} moves a message to the dead-letter queue after ${maxReceiveCount} receives, but ${name} allows ${maxAttempts} attempts: messages are dead-lettered before their attempts are used up`;
    yield { problem: 'redrive', resource: 'receives', text };
  }
}

/** Dead letters that are deleted before an operator can look at them, or kept for longer than their inbox row. */
function* retentionFaults(consumer: ConsumerEntry, { queue, deadLetterQueue }: ConsumerQueues): Problems {
  if (queue === undefined || deadLetterQueue === undefined) return;
  const { name, inboxRetentionDays } = consumer;
  const inboxS = inboxRetentionDays * 86_400;
  const keptS = deadLetterQueue.retentionS;
  if (keptS < DEAD_LETTERS_MIN_S) {
    const text = `the dead-letter queue of ${name} keeps messages for ${duration(keptS * 1_000)}: they are permanently deleted before an operator can look at them`;
    const bestS = Math.min(RETENTION_S, inboxS - queue.retentionS);
    const raise = setAttribute(deadLetterQueue, 'MessageRetentionPeriod', bestS);
    yield {
      problem: 'retention',
      resource: 'dead-letter-queue',
      text,
      ...(bestS >= DEAD_LETTERS_MIN_S && { fix: raise }),
    };
  } else if (queue.retentionS + keptS > inboxS) {
    const text = `the queues of ${name} keep messages for ${duration((queue.retentionS + keptS) * 1_000)}, but its inbox rows are kept for ${inboxRetentionDays} d: a message redriven after that is rejected as too old`;
    yield { problem: 'retention', resource: 'inbox', text };
  }
}

/** A queue that refuses events which the outbox and the bus accept. */
function* sizeFaults(queue: DeployedQueue | undefined, resource?: string): Problems {
  if (queue === undefined || !(queue.messageBytesMax < MESSAGE_BYTES)) return;
  const text = `the queue ${queue.url} accepts messages of up to ${queue.messageBytesMax} bytes, but an event may have ${PUT_EVENTS_BYTES_MAX}: it refuses larger ones`;
  const fix = setAttribute(queue, 'MaximumMessageSize', MESSAGE_BYTES);
  yield { problem: 'message-size', resource, text, fix };
}

/** Queues whose policies do not let the rules send, or let others send. */
function* policyFaults(
  { name }: ConsumerEntry,
  { queue, deadLetterQueue, undeliveredQueue }: ConsumerQueues,
  ruleArns: readonly string[],
): Problems {
  const refuses = (one: DeployedQueue | undefined) =>
    one !== undefined &&
    !ruleArns.every((arn) => statementsOf(one.policy).some((statement) => letsSend(statement, arn)));
  if (refuses(queue)) {
    const text = `the rule of ${name} may not send to its queue: EventBridge sends the events of ${name} to rule:${name} instead`;
    yield { problem: 'queue-policy', text };
  }
  if (refuses(undeliveredQueue)) {
    const text = `the rule of ${name} may not send to its undelivered queue: events that EventBridge cannot deliver to ${name} are lost`;
    yield { problem: 'queue-policy', resource: 'undelivered-queue', text };
  }
  const all = [queue, deadLetterQueue, undeliveredQueue];
  const toRules = all.flatMap((one) =>
    one !== undefined && statementsOf(one.policy).some(letsAnyRuleSend) ? [one.arn.split(':').at(-1)] : [],
  );
  if (toRules.length > 0) {
    const text = `${toRules.join(', ')} accepts messages from rules that its policy does not name: a rule of another team on the bus could forge events for ${name}`;
    yield { problem: 'queue-policy', resource: 'any-rule', text };
  }
  const open = all.flatMap((one) =>
    one === undefined || statementsOf(one.policy).some(deniesSending) ? [] : [one.arn.split(':').at(-1)],
  );
  if (open.length === 0) return;
  const text = `${open.join(', ')} accepts messages from everyone whose own policies allow it: a compromised function could forge events for ${name}`;
  yield { problem: 'queue-policy', resource: 'open', text };
}

function letsSend(statement: ReadStatement, ruleArn: string): boolean {
  return matchesAny(sendingRules(statement), ruleArn);
}

function letsAnyRuleSend(statement: ReadStatement): boolean {
  return sendingRules(statement).some((arn) => /[*?]/.test(arn));
}

/** The ARNs of the rules that a statement lets send, with wildcards. */
function sendingRules({ effect, actions, services, conditions }: ReadStatement): readonly string[] {
  const isForEvents = services.includes('events.amazonaws.com') && matchesAny(actions, 'sqs:SendMessage');
  if (effect !== 'Allow' || !isForEvents) return [];
  return [...conditions].find(([key]) => key.toLowerCase() === 'aws:sourcearn')?.[1] ?? ['*'];
}

/** The deny of all but AWS services; that of callers without TLS is another. */
function deniesSending({ effect, actions, conditions }: ReadStatement): boolean {
  const isForOthers = [...conditions.keys()].some((key) =>
    /^aws:Principal(Tag\/|Arn$|IsAWSService$)/i.test(key),
  );
  return effect === 'Deny' && isForOthers && matchesAny(actions, 'sqs:SendMessage');
}

/** The words of a command that changes an attribute of a queue. */
export function setAttribute({ url }: DeployedQueue, name: string, value: number): string[] {
  return ['aws', 'sqs', 'set-queue-attributes', '--queue-url', url, '--attributes', `${name}=${value}`];
}
