import { encodeRulePattern, takesExactly } from '../../bus/rule-pattern.ts';
import type { EventRef } from '../../events/event.ts';
import { depthOf } from '../dead-letters.ts';
import type { ConsumerEntry, Directory } from '../directory.ts';
import type { Queues } from '../queues.ts';
import { mailroomEventsOf } from '../subscribed-events.ts';

/** The rules port: the rules deployed on the bus. */
export interface DeployedRules {
  /** @returns `undefined` if the bus has no such rule or does not exist */
  describe(bus: string, rule: string): Promise<DeployedRule | undefined>;
}

/** A deployed rule. */
export interface DeployedRule {
  readonly enabled: boolean;
  /** The event pattern, as JSON. */
  readonly pattern: string;
  readonly targets: readonly DeployedTarget[];
}

/** A target of a rule. */
export interface DeployedTarget {
  readonly id: string;
  readonly arn: string;
  /** The ARN of the queue that receives events that the target did not accept. */
  readonly deadLetterQueue: string | undefined;
  /** The member by which it sends something other than the event. Absent: it sends the whole event, as Mailroom declares. */
  readonly input?: TargetInput | undefined;
  /** Its members besides `Id`, `Arn` and those of {@link TargetInput}, as PutTargets takes them. @default none */
  readonly settings?: object | undefined;
}

/** The members of a target that replace the event. */
export const TARGET_INPUTS = ['Input', 'InputPath', 'InputTransformer'] as const;
type TargetInput = (typeof TARGET_INPUTS)[number];

/** A fault of a consumer's rule. `target-input`: its target changes the events, so that the consumer cannot read them. */
export type RuleFault = 'no-rule' | 'rule-disabled' | 'pattern' | 'target' | 'target-input';

/**
 * The faults of a deployed rule: the one judgment of `audit`, `status`, `why` and `doctor`.
 *
 * @param events - the events that it must match, and no others
 * @param queueArn - the queue that it must deliver to; `undefined` if the queue does not exist
 */
export function ruleFaults(
  rule: DeployedRule | undefined,
  events: readonly EventRef[],
  queueArn: string | undefined,
): RuleFault[] {
  if (rule === undefined) return ['no-rule'];
  return [
    ...(rule.enabled ? [] : ['rule-disabled' as const]),
    ...(takesExactly(rule.pattern, events) ? [] : ['pattern' as const]),
    ...(queueArn === undefined || rule.targets.some(({ arn }) => arn === queueArn)
      ? []
      : ['target' as const]),
    ...(changingTargets(rule, queueArn) === undefined ? [] : ['target-input' as const]),
  ];
}

/** The targets of a rule that change the events on the way to a queue; `undefined` if it has none. */
export function changingTargets(
  rule: DeployedRule | undefined,
  queueArn: string | undefined,
): ChangingTargets | undefined {
  const changing = rule?.targets.filter(({ arn, input }) => arn === queueArn && input !== undefined) ?? [];
  if (changing.length === 0) return undefined;
  return {
    inputs: [...new Set(changing.flatMap(({ input }) => input ?? []))],
    whole: changing.map(({ id: Id, arn: Arn, settings }) => ({ Id, Arn, ...settings })),
  };
}

/** Targets that change the events. */
export interface ChangingTargets {
  /** The members by which they do. */
  readonly inputs: readonly TargetInput[];
  /** The same targets, as PutTargets takes them, without those members. */
  readonly whole: readonly WholeTarget[];
}

/** A target that sends the whole event, as PutTargets takes it. */
export interface WholeTarget {
  readonly Id: string;
  readonly Arn: string;
}

/** A difference between the deployment and the declaration. */
export interface Drift {
  readonly consumer: string;
  /** The rule's name. */
  readonly rule: string;
  readonly problem: RuleFault | 'no-queue';
  /** The problem as a sentence, for people. */
  readonly text: string;
  /** Of `target-input`: the targets to put. */
  readonly targets?: readonly WholeTarget[] | undefined;
}

/** Dependencies of a comparison with the deployed rules. */
interface DriftDeps {
  readonly queues: Pick<Queues, 'depth'>;
  readonly rules: DeployedRules;
}

/** Compares every consumer's deployed rule and queue with the directory. */
export async function findDrift(deps: DriftDeps, { mailroom, consumers }: Directory): Promise<Drift[]> {
  const found = await Promise.all(consumers.map((consumer) => driftOf(deps, mailroom.bus, consumer)));
  return found.flat();
}

async function driftOf({ queues, rules }: DriftDeps, bus: string, consumer: ConsumerEntry): Promise<Drift[]> {
  const rule = ruleName(consumer);
  if (rule === undefined) return []; // an existing queue, which no Mailroom event reaches
  const drift = (problem: Drift['problem'], text: string): Drift => ({
    consumer: consumer.name,
    rule,
    problem,
    text,
  });
  const queue = await depthOf(queues, consumer.queue);
  const deployed = await rules.describe(bus, rule);
  const events = mailroomEventsOf(consumer);
  const changing = changingTargets(deployed, queue?.arn);
  const texts: Readonly<Record<RuleFault, string>> = {
    'no-rule': `The bus ${bus} has no rule ${rule}.`,
    'rule-disabled': `The rule ${rule} is disabled.`,
    pattern: `The rule ${rule} matches ${deployed?.pattern}, not ${JSON.stringify(encodeRulePattern(events))}.`,
    target: `The rule ${rule} has no target ${queue?.arn}.`,
    'target-input': `The rule ${rule} changes events (${changing?.inputs.join(', ')}), so ${consumer.name} cannot read them.`,
  };
  return [
    ...(queue === undefined ? [drift('no-queue', `The queue ${consumer.queue} does not exist.`)] : []),
    ...ruleFaults(deployed, events, queue?.arn).map((fault) => ({
      ...drift(fault, texts[fault]),
      ...(fault === 'target-input' && { targets: changing?.whole }),
    })),
  ];
}

/** Returns only the name of a consumer's rule: CloudFormation's reference to a rule is `bus|rule`. */
export function ruleName({ rule }: ConsumerEntry): string | undefined {
  return rule?.slice(rule.lastIndexOf('|') + 1);
}
