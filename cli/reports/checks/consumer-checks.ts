import { readConsumerConfig } from '../../../lambdas/runtime/base/consumer-config.ts';
import type { EventRef } from '../../../lambdas/runtime/events/event.ts';
import {
  type ChangingTargets,
  changingTargets,
  type RuleFault,
  ruleFaults,
  ruleName,
  type WholeTarget,
} from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import {
  type ConsumerEntry,
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import { externalEventsOf, mailroomEventsOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import {
  type AsyncProblems,
  type CheckDeps,
  check,
  FIND_MISSED,
  type FoundProblem,
  functionOf,
  type PartCheck,
  readWith,
} from './check.ts';
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
import { DEFAULT_BUS } from './relay-checks.ts';

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

/** Rules that do not send its events to its queue. */
async function* ruleProblems({
  consumer,
  directory: { mailroom },
  resources,
}: ConsumerSubject): AsyncProblems {
  const isThere = await resources.hasBus(mailroom.bus).catch(() => true);
  const queue = await resources.queue(consumer.queue);
  for (const route of routesOf(mailroom, consumer)) {
    if (!isThere && route.bus === mailroom.bus) continue; // reported as `no-bus`
    const rule = await resources.rule(route.bus, route.rule);
    for (const fault of ruleFaults(rule, route.events, queue?.arn))
      if (fault !== 'target-input') yield routeProblem(consumer, route, fault, queue?.arn);
    const changing = changingTargets(rule, queue?.arn);
    if (changing !== undefined) yield inputProblem(consumer, route, changing);
  }
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
  const { table, shards } = directory.mailroom;
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
  if (settings.shards > shards) {
    const text = `${name} writes events to ${settings.shards} shards, but the Mailroom has ${shards}: the sweep reads the others only once the stream relay has received an event in them`;
    yield { problem: 'settings', resource: 'shards', text };
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

/** A rule that delivers events to a consumer's queue. */
interface RuleRoute {
  readonly bus: string;
  readonly rule: string;
  readonly events: readonly EventRef[];
}

/** Returns the rules of a consumer: for Mailroom events, and for external events. A consumer of an existing queue has none. */
function routesOf({ bus }: Directory['mailroom'], consumer: ConsumerEntry): RuleRoute[] {
  const { externalRule } = consumer;
  const rule = ruleName(consumer);
  return [
    ...(rule === undefined ? [] : [{ bus, rule, events: mailroomEventsOf(consumer) }]),
    ...(externalRule === undefined
      ? []
      : [{ bus: externalRule.bus, rule: externalRule.name, events: externalEventsOf(consumer) }]),
  ];
}

/** The ARNs of a consumer's rules. @param beside - an ARN of the same account and region */
function ruleArns(mailroom: Directory['mailroom'], consumer: ConsumerEntry, beside: string): string[] {
  const [arn, partition, , region, account] = beside.split(':');
  return routesOf(mailroom, consumer).map(({ bus, rule }) => {
    // The ARN of a rule on the default bus does not name the bus.
    const name = bus === DEFAULT_BUS ? `rule/${rule}` : `rule/${bus}/${rule}`;
    return [arn, partition, 'events', region, account, name].join(':');
  });
}

/** A rule that delivers something other than its events. */
function inputProblem(
  consumer: ConsumerEntry,
  { bus, rule, events }: RuleRoute,
  { inputs, whole }: ChangingTargets,
): FoundProblem {
  const isExternal = events.some((event) => 'external' in event);
  const text = `${consumer.name} cannot read its events: its rule ${rule} changes them (${inputs.join(', ')}), which Mailroom does not declare. Restore it${isExternal ? '' : ', then find the events that were missed (--since: from before the fault)'}. Until then, do not discard its unreadable messages: they are events`;
  return {
    problem: 'target-input',
    resource: isExternal ? 'external' : undefined,
    text,
    fix: ruleFix('target-input', rule, bus, consumer, whole),
    followUp: isExternal ? undefined : FIND_MISSED,
  };
}

function routeProblem(
  consumer: ConsumerEntry,
  { bus, rule, events }: RuleRoute,
  fault: Exclude<RuleFault, 'target-input'>,
  queueArn = '',
): FoundProblem {
  const states: Readonly<Record<typeof fault, string>> = {
    'no-rule': `does not exist on the bus ${bus}`,
    'rule-disabled': 'is disabled',
    pattern: 'matches other events than declared',
    target: `does not deliver to its queue ${queueArn}`,
  };
  const effect = fault === 'pattern' ? 'does not receive every event' : 'receives no events';
  const isExternal = events.some((event) => 'external' in event);
  const advice = isExternal
    ? 'Restore it. External events of that time are lost, because the audit does not cover them'
    : 'Restore it, then find the events that were missed (--since: from before the fault)';
  const text = `${consumer.name} ${effect}: its rule ${rule} ${states[fault]}. ${advice}`;
  return {
    problem: fault,
    resource: isExternal ? 'external' : undefined,
    text,
    fix: ruleFix(fault, rule, bus, consumer),
    followUp: isExternal ? undefined : FIND_MISSED,
  };
}

/**
 * The words of the command that restores a consumer's rule or queue: the same in every command that reports it.
 *
 * @param targets - of `target-input`: the targets to put @default the deployment restores them
 */
export function ruleFix(
  fault: RuleFault | 'no-queue',
  rule: string,
  bus: string,
  stack: EntryStack,
  targets: readonly WholeTarget[] = [],
): string[] {
  if (fault === 'rule-disabled')
    return ['aws', 'events', 'enable-rule', '--name', rule, '--event-bus-name', bus];
  if (fault !== 'target-input' || targets.length === 0) return deployWords(stack);
  const put = ['aws', 'events', 'put-targets', '--rule', rule, '--event-bus-name', bus];
  return [...put, '--targets', JSON.stringify(targets)];
}
