import { encodeRulePattern, takesExactly } from '../../bus/rule-pattern.ts';
import { depthOf } from '../dead-letters.ts';
import type { ConsumerEntry, Directory } from '../directory.ts';
import type { Queues } from '../queues.ts';
import { mailroomEventsOf } from '../subscriptions.ts';

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
  /** The ARNs of its targets. */
  readonly targets: readonly string[];
}

/** A difference between the deployment and the declaration. */
export interface Drift {
  readonly consumer: string;
  /** The rule's name. */
  readonly rule: string;
  readonly problem: 'no-rule' | 'rule-disabled' | 'pattern' | 'target' | 'no-queue';
  /** The problem as a sentence, for people. */
  readonly text: string;
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
  const noQueue =
    queue === undefined ? [drift('no-queue', `The queue ${consumer.queue} does not exist.`)] : [];
  const deployed = await rules.describe(bus, rule);
  if (deployed === undefined) return [...noQueue, drift('no-rule', `The bus ${bus} has no rule ${rule}.`)];
  return [
    ...noQueue,
    ...(deployed.enabled ? [] : [drift('rule-disabled', `The rule ${rule} is disabled.`)]),
    ...(takesExactly(deployed.pattern, mailroomEventsOf(consumer))
      ? []
      : [drift('pattern', `The rule ${rule} matches ${deployed.pattern}, not ${declared(consumer)}.`)]),
    ...(queue === undefined || deployed.targets.includes(queue.arn)
      ? []
      : [drift('target', `The rule ${rule} has no target ${queue.arn}.`)]),
  ];
}

/** Returns only the name of a consumer's rule: CloudFormation's reference to a rule is `bus|rule`. */
export function ruleName({ rule }: ConsumerEntry): string | undefined {
  return rule?.slice(rule.lastIndexOf('|') + 1);
}

function declared(consumer: ConsumerEntry): string {
  return JSON.stringify(encodeRulePattern(mailroomEventsOf(consumer)));
}
