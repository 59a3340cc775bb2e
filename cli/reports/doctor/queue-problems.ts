import { PUT_EVENTS_BYTES_MAX } from '../../../lambdas/runtime/bus/event-bus.ts';
import {
  type ConsumerEntry,
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import { duration } from '../../terminal/times.ts';
import type { PartProblem } from '../status/part-checks.ts';
import type { DeployedQueue, DeployedResources, DeployedTarget } from './deployed-resources.ts';
import { matchesAny, objectOf, type ReadStatement, statementsOf } from './resource-policy.ts';

/** A problem of a queue, or of the rule that sends to it. */
export type QueueProblem = PartProblem<
  | 'no-queue'
  | 'visibility'
  | 'redrive'
  | 'retention'
  | 'message-size'
  | 'delay'
  | 'queue-policy'
  | 'no-dead-letter-queue'
>;

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
export function missingQueueProblems(
  part: string,
  stack: EntryStack,
  url: string,
  queue: DeployedQueue | undefined,
): QueueProblem[] {
  if (queue !== undefined) return [];
  const text = `the queue ${url} does not exist: messages sent to it are lost. Once it is back, \`audit\` finds the events that were in it`;
  return [{ part, problem: 'no-queue', text, fix: deployWords(stack) }];
}

/** A visibility timeout that differs from the one that the consumer's code was deployed with. */
export function visibilityProblems(
  { name: part, queue: url }: ConsumerEntry,
  queue: DeployedQueue,
  declaredMs: number,
): QueueProblem[] {
  const declaredS = Math.ceil(declaredMs / 1_000);
  if (queue.visibilityS === declaredS) return [];
  const effect =
    queue.visibilityS < declaredS
      ? 'SQS redelivers messages that are still being processed, and they use up their receives'
      : 'after a crash, messages wait longer';
  const text = `the visibility timeout of ${part} is ${queue.visibilityS} s instead of ${declaredS} s: ${effect}`;
  return [{ part, problem: 'visibility', text, fix: setAttribute(url, 'VisibilityTimeout', declaredS) }];
}

/** A queue without a way to its dead-letter queue, or with too few receives. */
export function redriveProblems(
  consumer: ConsumerEntry,
  { queue, deadLetterQueue }: ConsumerQueues,
): QueueProblem[] {
  if (queue === undefined || deadLetterQueue === undefined) return []; // reported as `no-queue`
  const { name: part, maxAttempts } = consumer;
  const { deadLetterTargetArn, maxReceiveCount } = objectOf(queue.redrive);
  const problem = (text: string): QueueProblem[] => [
    { part, problem: 'redrive', text, fix: deployWords(consumer) },
  ];
  if (deadLetterTargetArn !== deadLetterQueue.arn) {
    const found =
      deadLetterTargetArn === undefined
        ? 'has no redrive policy'
        : `sends dead letters to ${deadLetterTargetArn}`;
    return problem(
      `the queue of ${part} ${found}: messages that ${part} rejects never reach consumer:${part}`,
    );
  }
  if (Number(maxReceiveCount) > maxAttempts) return [];
  return problem(
    `the queue of ${part} moves a message to the dead-letter queue after ${maxReceiveCount} receives, but ${part} allows ${maxAttempts} attempts: ` +
      'messages are dead-lettered before their attempts are used up',
  );
}

/** A queue that holds every message back, or deletes messages whose attempts are not over. */
export function sourceProblems(
  { name: part, rule, queue: url, maxAttempts, inboxRetentionDays }: ConsumerEntry,
  { queue, deadLetterQueue }: ConsumerQueues,
): QueueProblem[] {
  if (queue === undefined) return [];
  const { delayS, retentionS, visibilityS } = queue;
  const attemptsS = visibilityS * (maxAttempts + 1);
  const longestS = Math.min(RETENTION_S, inboxRetentionDays * 86_400 - (deadLetterQueue?.retentionS ?? 0));
  return [
    // An existing queue may have a delay of its own.
    ...(delayS === 0 || rule === undefined
      ? []
      : [
          {
            part,
            problem: 'delay' as const,
            text: `the queue of ${part} holds every message back for ${duration(delayS * 1_000)} (DelaySeconds)`,
            fix: setAttribute(url, 'DelaySeconds', 0),
          },
        ]),
    ...(retentionS >= attemptsS
      ? []
      : [
          {
            part,
            problem: 'retention' as const,
            text: `the queue of ${part} keeps messages for ${duration(retentionS * 1_000)}: SQS deletes those that wait or fail before their ${maxAttempts} attempts are over, and they never reach consumer:${part}`,
            fix: setAttribute(url, 'MessageRetentionPeriod', longestS),
            followUp: ['npx', 'cdk-mailroom', 'audit', '--since', '24h'],
          },
        ]),
  ];
}

/** Dead letters that are deleted before an operator can look at them, or kept for longer than their inbox row. */
export function retentionProblems(
  consumer: ConsumerEntry,
  { queue, deadLetterQueue }: ConsumerQueues,
): QueueProblem[] {
  if (queue === undefined || deadLetterQueue === undefined) return [];
  const { name: part, inboxRetentionDays, deadLetterQueue: url } = consumer;
  const inboxS = inboxRetentionDays * 86_400;
  const kept = deadLetterQueue.retentionS;
  if (kept < DEAD_LETTERS_MIN_S) {
    const text = `the dead-letter queue of ${part} keeps messages for ${duration(kept * 1_000)}: they are permanently deleted before an operator can look at them`;
    const bestS = Math.min(RETENTION_S, inboxS - queue.retentionS);
    const fix =
      bestS < DEAD_LETTERS_MIN_S ? deployWords(consumer) : setAttribute(url, 'MessageRetentionPeriod', bestS);
    return [{ part, problem: 'retention', text, fix }];
  }
  if (queue.retentionS + kept <= inboxS) return [];
  const text =
    `the queues of ${part} keep messages for ${duration((queue.retentionS + kept) * 1_000)}, but its inbox rows are kept for ` +
    `${inboxRetentionDays} d: a message redriven after that is rejected as too old`;
  return [{ part, problem: 'retention', text, fix: deployWords(consumer) }];
}

/** A queue without a consumer that keeps its messages for less than the constructs set. */
export function keptProblems(part: string, what: string, url: string, queue: DeployedQueue): QueueProblem[] {
  if (queue.retentionS >= RETENTION_S) return [];
  const text = `${what} keeps messages for ${duration(queue.retentionS * 1_000)} instead of 14 d: they are permanently deleted before an operator can look at them`;
  return [
    { part, problem: 'retention', text, fix: setAttribute(url, 'MessageRetentionPeriod', RETENTION_S) },
  ];
}

/** A queue that refuses events which the outbox and the bus accept. */
export function sizeProblems(part: string, url: string, queue: DeployedQueue): QueueProblem[] {
  if (!(queue.messageBytesMax < MESSAGE_BYTES)) return [];
  const text =
    `the queue ${url} accepts messages of up to ${queue.messageBytesMax} bytes, but an event may have ${PUT_EVENTS_BYTES_MAX}: it refuses ` +
    'larger ones';
  return [
    { part, problem: 'message-size', text, fix: setAttribute(url, 'MaximumMessageSize', MESSAGE_BYTES) },
  ];
}

/** Queues whose policies do not let the rule send, or let others send. */
export function queuePolicyProblems(
  consumer: ConsumerEntry,
  { queue, deadLetterQueue, undeliveredQueue }: ConsumerQueues,
  ruleArns: readonly string[],
): QueueProblem[] {
  if (ruleArns.length === 0) return []; // an existing queue has other senders
  const { name: part } = consumer;
  const problem = (text: string): QueueProblem => ({
    part,
    problem: 'queue-policy',
    text,
    fix: deployWords(consumer),
  });
  const refuses = [
    [queue, `its queue: EventBridge sends the events of ${part} to rule:${part} instead`],
    [undeliveredQueue, `its undelivered queue: events that EventBridge cannot deliver to ${part} are lost`],
  ] as const;
  const open = [queue, deadLetterQueue, undeliveredQueue].filter(
    (one) => one !== undefined && !statementsOf(one.policy).some(deniesSending),
  );
  const names = open.map((one) => one?.arn.split(':').at(-1)).join(', ');
  return [
    ...refuses
      .filter(
        ([one]) =>
          one !== undefined &&
          !ruleArns.every((arn) => statementsOf(one.policy).some((statement) => letsSend(statement, arn))),
      )
      .map(([, effect]) => problem(`the rule of ${part} may not send to ${effect}`)),
    ...(open.length === 0
      ? []
      : [
          problem(
            `${names} accepts messages from everyone whose own policies allow it: a compromised function could forge events for ${part}`,
          ),
        ]),
  ];
}

function letsSend({ effect, actions, services, conditions }: ReadStatement, ruleArn: string): boolean {
  const sources = [...conditions].find(([key]) => key.toLowerCase() === 'aws:sourcearn')?.[1] ?? ['*'];
  const isForEvents = services.includes('events.amazonaws.com') && matchesAny(actions, 'sqs:SendMessage');
  return effect === 'Allow' && isForEvents && matchesAny(sources, ruleArn);
}

/** The deny of all but AWS services; that of callers without TLS is another. */
function deniesSending({ effect, actions, conditions }: ReadStatement): boolean {
  const isForOthers = [...conditions.keys()].some((key) => /^aws:Principal(Tag\/|Arn$)/i.test(key));
  return effect === 'Deny' && isForOthers && matchesAny(actions, 'sqs:SendMessage');
}

/** A rule whose undeliverable events are dropped. */
export async function targetProblems(
  resources: DeployedResources,
  { bus }: Pick<Directory['mailroom'], 'bus'>,
  { name: part, rule }: { readonly name: string; readonly rule: string },
  { queue, undeliveredQueue }: ConsumerQueues,
): Promise<QueueProblem[]> {
  if (queue === undefined || undeliveredQueue === undefined) return [];
  const target = (await resources.targets(bus, rule)).find(({ arn }) => arn === queue.arn);
  if (target === undefined || target.deadLetterQueue === undeliveredQueue.arn) return []; // without a target: `target`
  const text = `the rule ${rule} of ${part} has no dead-letter queue: events that its queue does not accept are lost after 24 hours, or at once`;
  const fix = ['aws', 'events', 'put-targets', '--rule', rule, '--event-bus-name', bus, '--targets'];
  return [
    { part, problem: 'no-dead-letter-queue', text, fix: [...fix, targetsJson(target, undeliveredQueue)] },
  ];
}

function targetsJson({ id: Id, arn: Arn }: DeployedTarget, { arn }: DeployedQueue): string {
  return JSON.stringify([{ Id, Arn, DeadLetterConfig: { Arn: arn } }]);
}

function setAttribute(url: string, name: string, value: number): string[] {
  return ['aws', 'sqs', 'set-queue-attributes', '--queue-url', url, '--attributes', `${name}=${value}`];
}
