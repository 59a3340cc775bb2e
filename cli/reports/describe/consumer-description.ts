import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import {
  type BridgeEntry,
  type ConsumerEntry,
  type EntrySlo,
  type ExternalRule,
  sloOf,
} from '../../../lambdas/runtime/operations/directory.ts';
import type { FunctionSettings } from '../../deployment/deployed-function.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { newest } from '../../terminal/listing.ts';
import { many } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { type Checked, type PartProblem, unmadeChecks } from '../checks/check.ts';
import type { Difference } from '../drift/compare.ts';
import { compareStacks } from '../drift/compared-stacks.ts';
import { changedText, differenceProblem } from '../drift/difference-problem.ts';
import { messagesOf } from '../messages/list-messages.ts';
import { held } from '../status/source-status.ts';

/** The description of a consumer, as in the JSON document of docs/cli-json.md. Absent values are `null`. */
export interface ConsumerDescription {
  readonly consumer: string;
  readonly stack: string;
  /** The `source` of the events that it writes. */
  readonly service: string;
  /** The events that it must receive. */
  readonly events: ConsumerEntry['events'];
  /** `null` for a consumer of an existing queue. */
  readonly rule: string | null;
  /** The rule of its external events, and its bus; `null` without one. */
  readonly externalRule: ExternalRule | null;
  /** The target of a bridge; `null` for another consumer. */
  readonly forwardsTo: BridgeEntry | null;
  /** Its order, as in its entry; `null` if it has none. */
  readonly order: string | null;
  /** When its entry in the directory last changed, epoch milliseconds. */
  readonly changedAt: number | null;
  readonly maxAttempts: number;
  readonly inboxRetentionDays: number;
  readonly slo: EntrySlo | null;
  /** `null` if the queue does not exist. */
  readonly queue: { readonly url: string; readonly queued: number; readonly inFlight: number } | null;
  readonly function: string;
  /** The alias of the function that its mapping invokes; `null` without one. */
  readonly alias: string | null;
  /** `null` if the function does not exist. */
  readonly deployed: FunctionSettings | null;
  /** The members of its resources whose values are not those that its stack declares. */
  readonly differences: readonly DescribedDifference[];
  /** Those of its resources that were not compared, as in `doctor`. */
  readonly notChecked: Checked['notChecked'];
  readonly failed: number;
  readonly rejected: number;
  /** Its messages that wait for a limit, which are not `failed`. */
  readonly limited: number;
  /** Dead letters in its own queue, and in that of its rule. */
  readonly deadLetters: number;
  readonly undelivered: number;
  /** Its newest failure or rejection. */
  readonly lastCause: { readonly at: number | null; readonly eventId: string; readonly text: string } | null;
}

/** A member with another value than its stack declares. */
interface DescribedDifference extends Required<Pick<PartProblem, 'type' | 'declared' | 'deployed' | 'text'>> {
  readonly logicalId: string;
  readonly physicalId: string;
  /** The path of the member; `null`: the whole resource is gone. */
  readonly member: string | null;
  /** It is a member that a person may change. */
  readonly allowed: boolean;
}

/** Reads everything that is known about a consumer. */
export async function describeConsumer(
  deployment: Deployment,
  consumer: ConsumerEntry,
): Promise<ConsumerDescription> {
  const { queues } = deployment;
  const [depth, dead, undelivered, deployed, messages, drift] = await Promise.all([
    depthOf(queues, consumer.queue),
    depthOf(queues, consumer.deadLetterQueue),
    consumer.undeliveredQueue === undefined ? undefined : depthOf(queues, consumer.undeliveredQueue),
    deployment.deployedFunction(consumer.function, consumer.alias),
    messagesOf(deployment, consumer, { by: 'cause', limit: 1 }),
    compareStacks({ directory: deployment.directory, ...deployment.stacks() }, consumer),
  ]);
  const failures = messages.items.filter(({ limited }) => !limited);
  const [last] = failures.toSorted(newest);
  const rejected = failures.filter(({ status }) => status === 'REJECTED').length;
  const { name, stack, service, events, rule, externalRule, maxAttempts, inboxRetentionDays } = consumer;
  return {
    consumer: name,
    stack,
    service,
    events,
    rule: rule ?? null,
    externalRule: externalRule ?? null,
    forwardsTo: consumer.forwardsTo ?? null,
    order: consumer.order ?? null,
    changedAt: consumer.changedAt ?? null,
    maxAttempts,
    inboxRetentionDays,
    slo: sloOf(consumer) ?? null,
    queue:
      depth === undefined ? null : { url: consumer.queue, queued: depth.waiting, inFlight: depth.inFlight },
    function: consumer.function,
    alias: consumer.alias ?? null,
    deployed: deployed ?? null,
    differences: [
      ...drift.differences.map((difference) => describedDifference(difference, false)),
      ...drift.allowed.map((difference) => describedDifference(difference, true)),
    ],
    notChecked: unmadeChecks(drift.unmade).notChecked,
    failed: failures.length - rejected,
    rejected,
    limited: messages.items.length - failures.length,
    deadLetters: held(dead),
    undelivered: held(undelivered),
    lastCause:
      last === undefined
        ? null
        : { at: last.at, eventId: last.eventId, text: last.lastError ?? last.reason ?? '?' },
  };
}

function describedDifference(difference: Difference, allowed: boolean): DescribedDifference {
  const { type, logicalId, physicalId } = difference.resource;
  const { declared, deployed } = differenceProblem(difference);
  return {
    type,
    logicalId,
    physicalId,
    member: difference.member ?? null,
    declared,
    deployed,
    allowed,
    text: changedText(difference),
  };
}

/** The problem of a consumer that matters most, and the command to run first; `undefined` if none is known. */
export function findingOf(
  described: ConsumerDescription,
): { readonly what: string; readonly command: ShellText } | undefined {
  const { consumer, deployed, queue, rejected, failed, deadLetters, undelivered } = described;
  if (queue === null) return { what: 'its queue does not exist', command: shell`status` };
  if (deployed === null) return { what: 'its function does not exist', command: shell`status` };
  if (!deployed.mappings.some(({ state }) => state === 'Enabled'))
    return { what: 'its function does not read its queue', command: shell`status` };
  if (deployed.reservedConcurrency === 0) return { what: 'its function may not run', command: shell`status` };
  const failures = `${rejected} rejected, ${failed} failed`;
  if (deadLetters > 0) {
    const command = shell`dlq list ${`consumer:${consumer}`} --by cause`;
    return { what: `${many(deadLetters, 'dead letter')}, ${failures}`, command };
  }
  if (undelivered > 0) {
    const command = shell`dlq list ${`rule:${consumer}`} --by cause`;
    return { what: `${many(undelivered, 'event')} not delivered by its rule, ${failures}`, command };
  }
  if (rejected + failed === 0) return differenceFinding(described);
  const command = shell`messages list --by cause --consumer ${consumer}`;
  return { what: failures, command };
}

function differenceFinding({ differences }: ConsumerDescription) {
  const changed = differences.filter(({ allowed }) => !allowed);
  if (changed.length === 0) return undefined;
  const what = `${many(changed.length, 'setting')} ${changed.length === 1 ? 'differs' : 'differ'} from its stack`;
  return { what, command: shell`doctor` };
}

/** An event that a consumer receives: `<type> of <source>`, and its filter. */
export function receivedText({ source, type, filter }: ConsumerDescription['events'][number]): string {
  return `${type} of ${source}${filter === undefined ? '' : ` that matches ${JSON.stringify(filter)}`}`;
}
