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
  readonly failed: number;
  readonly rejected: number;
  /** Dead letters in its own queue, and in that of its rule. */
  readonly deadLetters: number;
  readonly undelivered: number;
  /** Its newest failure or rejection. */
  readonly lastCause: { readonly at: number | null; readonly eventId: string; readonly text: string } | null;
}

/** Reads everything that is known about a consumer. */
export async function describeConsumer(
  deployment: Deployment,
  consumer: ConsumerEntry,
): Promise<ConsumerDescription> {
  const { queues } = deployment;
  const [depth, dead, undelivered, deployed, messages] = await Promise.all([
    depthOf(queues, consumer.queue),
    depthOf(queues, consumer.deadLetterQueue),
    consumer.undeliveredQueue === undefined ? undefined : depthOf(queues, consumer.undeliveredQueue),
    deployment.deployedFunction(consumer.function, consumer.alias),
    messagesOf(deployment, consumer, { by: 'cause', limit: 1 }),
  ]);
  const [last] = messages.items.toSorted(newest);
  const rejected = messages.items.filter(({ status }) => status === 'REJECTED').length;
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
    failed: messages.items.length - rejected,
    rejected,
    deadLetters: held(dead),
    undelivered: held(undelivered),
    lastCause:
      last === undefined
        ? null
        : { at: last.at, eventId: last.eventId, text: last.lastError ?? last.reason ?? '?' },
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
  if (rejected + failed === 0) return undefined;
  const command = shell`messages list --by cause --consumer ${consumer}`;
  return { what: failures, command };
}

/** An event that a consumer receives: `<type> of <source>`, and its filter. */
export function receivedText({ source, type, filter }: ConsumerDescription['events'][number]): string {
  return `${type} of ${source}${filter === undefined ? '' : ` that matches ${JSON.stringify(filter)}`}`;
}
