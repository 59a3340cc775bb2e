import { readConsumerConfig } from '../../../lambdas/runtime/base/config.ts';
import type { EventRef } from '../../../lambdas/runtime/events/event.ts';
import {
  type RuleFault,
  ruleFaults,
  ruleName,
} from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import {
  type ConsumerEntry,
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import { externalEventsOf, mailroomEventsOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import {
  type AddProblem,
  type CheckDeps,
  check,
  FIND_MISSED,
  functionOf,
  NEEDS,
  type PartCheck,
} from './check.ts';
import { concurrencyCheck, functionCheck } from './function-checks.ts';
import { addItemFailures, addMappingFaults, mappingOf, updateMapping } from './mapping-faults.ts';
import { addMissingQueue, addQueueFaults, setAttribute } from './queue-faults.ts';
import { DEFAULT_BUS } from './relay-checks.ts';

/** The checks of one consumer. */
export function consumerChecks(deps: CheckDeps, consumer: ConsumerEntry): PartCheck[] {
  const { directory, resources, pauses } = deps;
  const { mailroom } = directory;
  const { name: part } = consumer;
  const checked = functionOf(consumer);
  return [
    check(part, 'flow', [...NEEDS.rule, ...NEEDS.queue], async (add) => {
      const isThere = await resources.hasBus(mailroom.bus).catch(() => true);
      const queue = await resources.queue(consumer.queue);
      for (const route of routesOf(mailroom, consumer)) {
        if (!isThere && route.bus === mailroom.bus) continue; // reported as `no-bus`
        const faults = ruleFaults(await resources.rule(route.bus, route.rule), route.events, queue?.arn);
        for (const fault of faults) addRouteFault(add, consumer, route, fault, queue?.arn);
      }
    }),
    check(part, 'flow', [...NEEDS.mappings, ...NEEDS.queue], async (add) => {
      const queue = await resources.queue(consumer.queue);
      if (queue === undefined) return addMissingQueue(add, consumer, consumer.queue);
      await addMappingFaults(add, resources, checked, (source) => source === queue.arn, {
        stopped: `${part} receives no messages`,
        filtered: `${part} loses messages: Lambda deletes those that the filter does not match. Remove it before you repair what was lost`,
        paused: () => pauses(consumer),
      });
    }),
    concurrencyCheck(resources, checked),
    queuesCheck(deps, consumer),
    consumerFunctionCheck(deps, consumer),
    mappingSettingsCheck(deps, consumer),
    undeliverableCheck(deps, consumer),
  ];
}

/** The consumers whose directory entry was deleted: no other check is about them. */
export function unlistedChecks({ directory }: CheckDeps): PartCheck[] {
  return (directory.unlisted ?? []).map(({ name: part, parameter }) =>
    check(part, 'flow', [], async (add) => {
      const text = `the directory has no entry of the consumer ${part}: no command, alarm or audit sees its events and dead letters. The command names its stack; deploy that one with --revert-drift`;
      const named = ['--physical-resource-id', parameter, '--query', 'StackResources[0].StackName'];
      const fix = ['aws', 'cloudformation', 'describe-stack-resources', ...named, '--output', 'text'];
      add('no-entry', text, fix, FIND_MISSED);
    }),
  );
}

/** Checks that the queues of a consumer pass messages on and keep them. */
function queuesCheck({ directory: { mailroom }, resources }: CheckDeps, consumer: ConsumerEntry): PartCheck {
  const { name: part } = consumer;
  return check(part, 'settings', NEEDS.queue, async (add) => {
    const { deadLetterQueue, undeliveredQueue } = consumer;
    const queues = {
      queue: await resources.queue(consumer.queue),
      deadLetterQueue: await resources.queue(deadLetterQueue),
      undeliveredQueue: undeliveredQueue === undefined ? undefined : await resources.queue(undeliveredQueue),
    };
    if (queues.deadLetterQueue === undefined) addMissingQueue(add, consumer, deadLetterQueue);
    if (queues.undeliveredQueue === undefined && undeliveredQueue !== undefined)
      addMissingQueue(add, consumer, undeliveredQueue);
    const { arn } = queues.queue ?? queues.deadLetterQueue ?? queues.undeliveredQueue ?? {};
    addQueueFaults(add, consumer, queues, arn === undefined ? [] : ruleArns(mailroom, consumer, arn));
  });
}

/** Settings of a consumer's mapping that lose messages, or let it starve other functions. */
function mappingSettingsCheck({ resources }: CheckDeps, consumer: ConsumerEntry): PartCheck {
  const { name: part } = consumer;
  const checked = functionOf(consumer);
  return check(part, 'settings', [...NEEDS.mappings, ...NEEDS.queue], async (add) => {
    const queue = await resources.queue(consumer.queue);
    const mapping = await mappingOf(resources, checked, (source) => source === queue?.arn);
    if (mapping === undefined) return; // reported as `no-queue` or `no-mapping`
    const one = `the event source mapping of ${checked.name}`;
    const lost = `SQS deletes the messages that ${part} fails to process, so they are lost`;
    addItemFailures(add, checked, mapping, lost);
    const { batchSize = mapping.batchSize } = consumer;
    if (mapping.batchSize !== batchSize) {
      const text = `${one} passes at most ${mapping.batchSize} messages to an invocation instead of ${batchSize}: ${part} works at another speed and price than declared`;
      add('batch-size', text, updateMapping(mapping, '--batch-size', String(batchSize)));
    }
    if (mapping.concurrencyMax === undefined) {
      const text = `${one} has no maximum concurrency: ${part} can use up the concurrency of the account, which stops all other functions`;
      add('no-max-concurrency', text, deployWords(consumer));
    }
  });
}

/** Checks that events which EventBridge cannot deliver to a consumer are kept. */
function undeliverableCheck(
  { directory: { mailroom }, resources }: CheckDeps,
  consumer: ConsumerEntry,
): PartCheck {
  const { name: part } = consumer;
  return check(part, 'settings', [...NEEDS.rule, ...NEEDS.queue], async (add) => {
    const { queue: url, undeliveredQueue: undeliveredUrl } = consumer;
    if (undeliveredUrl === undefined) return; // an existing queue
    const [queue, undelivered] = await Promise.all([url, undeliveredUrl].map(resources.queue));
    if (queue === undefined || undelivered === undefined) return; // reported as `no-queue`
    for (const { bus, rule } of routesOf(mailroom, consumer)) {
      const deployed = await resources.rule(bus, rule);
      const target = deployed?.targets.find(({ arn }) => arn === queue.arn);
      if (target === undefined || target.deadLetterQueue === undelivered.arn) continue; // without a target: `target`
      const text = `the rule ${rule} of ${part} has no dead-letter queue: events that its queue does not accept are lost after 24 hours, or at once`;
      const { id: Id, arn: Arn } = target;
      const targets = JSON.stringify([{ Id, Arn, DeadLetterConfig: { Arn: undelivered.arn } }]);
      const put = ['aws', 'events', 'put-targets', '--rule', rule, '--event-bus-name', bus];
      add('no-dead-letter-queue', text, [...put, '--targets', targets]);
    }
  });
}

/** A consumer whose environment or timeout does not fit its table, its queue or the relay. */
function consumerFunctionCheck({ directory, resources }: CheckDeps, consumer: ConsumerEntry): PartCheck {
  const { table, shards } = directory.mailroom;
  const { name: part, queue: url } = consumer;
  return functionCheck(resources, functionOf(consumer), readConsumerConfig, async (add, settings, found) => {
    const addSetting = (text: string) => add('settings', text, deployWords(consumer));
    if (settings.tableName !== table)
      addSetting(
        `${part} uses the table ${settings.tableName} instead of ${table}: its inbox is not in this Mailroom`,
      );
    if (settings.consumer !== part || settings.queueUrl !== url)
      addSetting(
        `the function of ${part} has the settings of ${settings.consumer} and the queue ${settings.queueUrl}: it keeps another inbox`,
      );
    if (settings.shards > shards)
      addSetting(
        `${part} writes events to ${settings.shards} shards, but the relay reads ${shards}: it may not publish some of them`,
      );
    const queue = await resources.queue(url);
    if (queue === undefined) return; // reported as `no-queue`
    const { visibilityS } = queue;
    if (found.timeoutS > visibilityS) {
      const text = `the function of ${part} may run for ${found.timeoutS} s, but SQS hides its messages for ${visibilityS} s only: they are redelivered while it processes them`;
      add('timeout', text, deployWords(consumer));
    }
    const declaredS = Math.ceil(settings.visibilityTimeoutMs / 1_000);
    if (visibilityS !== declaredS) {
      const effect =
        visibilityS < declaredS
          ? 'SQS redelivers messages that are still being processed, and they use up their receives'
          : 'after a crash, messages wait longer';
      const text = `the visibility timeout of ${part} is ${visibilityS} s instead of ${declaredS} s: ${effect}`;
      add('visibility', text, setAttribute(url, 'VisibilityTimeout', declaredS));
    }
  });
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

function addRouteFault(
  add: AddProblem,
  consumer: ConsumerEntry,
  { bus, rule, events }: RuleRoute,
  fault: RuleFault,
  queueArn = '',
): void {
  const states: Readonly<Record<RuleFault, string>> = {
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
  add(fault, text, ruleFix(fault, rule, bus, consumer), isExternal ? undefined : FIND_MISSED);
}

/** The words of the command that restores a consumer's rule or queue: the same in every command that reports it. */
export function ruleFix(
  fault: RuleFault | 'no-queue',
  rule: string,
  bus: string,
  stack: EntryStack,
): string[] {
  if (fault !== 'rule-disabled') return deployWords(stack);
  return ['aws', 'events', 'enable-rule', '--name', rule, '--event-bus-name', bus];
}
