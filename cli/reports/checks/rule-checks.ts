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
import { isDenied, isUnsupported } from '../../deployment/refusals.ts';
import {
  type AsyncProblems,
  type CheckDeps,
  type CommandWords,
  FIND_MISSED,
  type FoundProblem,
} from './check.ts';
import { DEFAULT_BUS } from './relay-checks.ts';

/** A consumer, and the port to its rules. */
interface RuleSubject extends Pick<CheckDeps, 'directory' | 'resources'> {
  readonly consumer: ConsumerEntry;
}

/** Rules that do not send its events to its queue. */
export async function* ruleProblems({
  consumer,
  directory: { mailroom },
  resources,
}: RuleSubject): AsyncProblems {
  const routes = routesOf(mailroom, consumer);
  // All at once, so that they share requests.
  const [isThere, queue, ...rules] = await Promise.all([
    resources.hasBus(mailroom.bus).catch(() => true),
    resources.queue(consumer.queue),
    ...routes.map((route) => resources.rule(route.bus, route.rule)),
  ]);
  for (const [index, route] of routes.entries()) {
    if (!isThere && route.bus === mailroom.bus) continue; // reported as `no-bus`
    const rule = rules[index];
    for (const fault of ruleFaults(rule, route.events, queue?.arn))
      if (fault !== 'target-input') yield routeProblem(consumer, route, fault, queue?.arn);
    const changing = changingTargets(rule, queue?.arn);
    if (changing !== undefined) yield inputProblem(consumer, route, changing);
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

/** The physical id of a rule in CloudFormation. */
function ruleId(bus: string, rule: string): string {
  return bus === DEFAULT_BUS ? rule : `${bus}|${rule}`;
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
    physicalId: ruleId(bus, rule),
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
    physicalId: ruleId(bus, rule),
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
): CommandWords {
  if (fault === 'rule-disabled')
    return ['aws', 'events', 'enable-rule', '--name', rule, '--event-bus-name', bus];
  if (fault !== 'target-input' || targets.length === 0) return deployWords(stack);
  const put = ['put-targets', '--rule', rule, '--event-bus-name', bus];
  return ['aws', 'events', ...put, '--targets', JSON.stringify(targets)];
}

/**
 * Finds that a rule of a consumer changes its events, which makes every message unreadable; `undefined` if none does, or that cannot be read.
 */
export async function changingRule(
  deps: Pick<CheckDeps, 'directory' | 'resources'>,
  consumer: ConsumerEntry,
): Promise<FoundProblem | undefined> {
  const { mailroom } = deps.directory;
  try {
    const queue = await deps.resources.queue(consumer.queue);
    for (const route of routesOf(mailroom, consumer)) {
      const changing = changingTargets(await deps.resources.rule(route.bus, route.rule), queue?.arn);
      if (changing !== undefined) return inputProblem(consumer, route, changing);
    }
    return undefined;
  } catch (error) {
    if (isDenied(error) || isUnsupported(error)) return undefined;
    throw error;
  }
}
