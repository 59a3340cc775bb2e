import type { DatabaseEngine } from '../base/database-engine.ts';
import type { Subscription } from '../events/data-filter.ts';
import type { ExternalIdentity } from '../events/external-event.ts';

/**
 * The directory: the locations of a deployed Mailroom's parts. Each construct writes its own entry into SSM Parameter Store,
 * `/mailroom/<table>/mailroom` and `/mailroom/<table>/consumers/<name>`, so that the sweep, the audit and the `mailroom` command
 * can find a consumer of any stack from the table's name alone. Both sides use the same codec.
 */
export interface Directory {
  readonly mailroom: MailroomEntry;
  /** Sorted by name. */
  readonly consumers: readonly ConsumerEntry[];
  /**
   * The consumers of other sources than SQS, which enter themselves in the table at their start. They have neither queue, function nor
   * rule, so what is about those does not concern them. @default they were not read
   */
  readonly sourceConsumers?: readonly SourceConsumer[] | undefined;
  /** The deployed consumers whose entry was deleted, or cannot be used: nothing else in the directory is about them. @default none */
  readonly unlisted?: readonly UnlistedConsumer[] | undefined;
}

/** A consumer without an entry that can be used. */
export interface UnlistedConsumer {
  readonly name: string;
  /** The name of a parameter of its stack: of its entry, its claim, or the one that reserves its name. */
  readonly parameter: string;
  /** Why its entry cannot be used, as a sentence with the remedy. Absent: it has none. */
  readonly fault?: string | undefined;
}

/** The stack of an entry. */
export interface EntryStack {
  /** Its name in CloudFormation. */
  readonly stack: string;
  /** Its construct path, by which `cdk deploy` selects it. Absent in entries of versions up to 0.1. */
  readonly stackPath?: string | undefined;
}

/** The command that restores what was changed or deleted by hand in some stacks. */
export function deployWords(...stacks: readonly EntryStack[]): [program: string, ...words: string[]] {
  const selected = new Set(stacks.map(({ stack, stackPath = stack }) => stackPath));
  return ['npx', 'cdk', 'deploy', ...selected, '--revert-drift'];
}

/** The directory entry of the parts that all services share. */
export interface MailroomEntry extends EntryStack {
  readonly table: string;
  /** The name of the bus. */
  readonly bus: string;
  /** The current number of shards. */
  readonly shards: number;
  /** Function names. */
  readonly streamFunction: string;
  readonly sweepFunction: string;
  /** The name of the rule that runs the sweep, on the default bus. Absent in entries of versions up to 0.1. */
  readonly sweepRule?: string | undefined;
  /** The URL of the queue that receives the records that the stream mapping discarded. */
  readonly failureQueue: string;
  /** The sources that the relay publishes. */
  readonly sources?: readonly string[] | undefined;
  /** The version of the stored shape that the stack's functions read and write. Absent in entries of versions up to 0.1. */
  readonly schema?: number | undefined;
  /** The scheduled heartbeat; absent without one. */
  readonly heartbeat?: HeartbeatEntry | undefined;
  /** The time of the entry's last change, epoch milliseconds. Not stored in the entry: it comes from the parameter. */
  readonly changedAt?: number | undefined;
}

/** The scheduled heartbeat of a Mailroom. */
interface HeartbeatEntry {
  /** The name of its function. */
  readonly function: string;
  /** The name of the rule that runs it, on the default bus. */
  readonly rule: string;
  /** The interval between heartbeats, milliseconds. */
  readonly everyMs: number;
}

/** The directory entry of a consumer. */
export interface ConsumerEntry extends EntryStack {
  readonly name: string;
  /** The `source` of the events that its handlers write. */
  readonly service: string;
  /** The events that it must receive, whatever its deployed rule matches. */
  readonly events: readonly EntryEvent[];
  /** The name of its rule on the bus; absent for a consumer of an existing queue. */
  readonly rule?: string | undefined;
  /** The rule of its external events; absent if it has none, or an existing queue. */
  readonly externalRule?: ExternalRule | undefined;
  /** The path of the tenant in its Mailroom events, as the rule's target has it. Absent: each message is its own tenant. */
  readonly fairBy?: string | undefined;
  /** Its order, as `orderText` writes it. Absent: the consumer has none, but a handler can have one. */
  readonly order?: string | undefined;
  /** The target to which it forwards its events. Absent: the consumer is not a bridge. */
  readonly forwardsTo?: BridgeEntry | undefined;
  /** The URLs of its queues. The undelivered queue is absent for a consumer of an existing queue. */
  readonly queue: string;
  readonly deadLetterQueue: string;
  readonly undeliveredQueue?: string | undefined;
  /** The name of its function. */
  readonly function: string;
  /** The alias of its function that the mapping invokes. Absent: the function itself. */
  readonly alias?: string | undefined;
  /** The partition keys of the rows that its handlers write, with `*` as a trailing wildcard. Absent: none, as in entries of versions up to 0.1. */
  readonly domainKeys?: readonly string[] | undefined;
  readonly maxAttempts: number;
  /** The most messages of one invocation. Absent in entries of versions up to 0.1. */
  readonly batchSize?: number | undefined;
  /** Its SLO. Absent without one, and in entries of versions up to 0.1. */
  readonly slo?: EntrySlo | undefined;
  readonly inboxRetentionDays: number;
  /** The kind of database that has its inbox. Absent: the table has it. */
  readonly inbox?: DatabaseEngine | undefined;
  /** The start of its inbox, if it had another name before, epoch milliseconds. */
  readonly inboxSince?: number | undefined;
  /** The version of the stored shape that the stack's functions read and write. Absent in entries of versions up to 0.1. */
  readonly schema?: number | undefined;
  /** The time of the entry's last change, epoch milliseconds. Not stored in the entry: it comes from the parameter. */
  readonly changedAt?: number | undefined;
  /** Its Mailroom's table and its name there, if it is a consumer of another Mailroom on the bus. Not stored: see `withNeighbors`. */
  readonly elsewhere?: { readonly table: string; readonly name: string } | undefined;
}

/** A consumer of another source than SQS. Nothing tells which events its source has delivered: an absent row proves nothing. */
export interface SourceConsumer
  extends Pick<
    ConsumerEntry,
    'name' | 'service' | 'events' | 'order' | 'maxAttempts' | 'inboxRetentionDays'
  > {
  /** The source of its messages, e.g. `Kafka`. */
  readonly from: string;
  /** The time of its last start, or of the day's renewal, epoch milliseconds. */
  readonly seenAt: number;
}

/** An event that a consumer subscribes to. */
export interface EntryEvent extends Subscription {
  /** Present for an external event: the fields that identify it. */
  readonly external?: Pick<ExternalIdentity, 'id'> | undefined;
  /** Its definition declares a `sequence`, by which an order applies to it. Absent: it has none, whatever number an event carries. */
  readonly sequence?: boolean | undefined;
}

/** The target of a bridge. */
export interface BridgeEntry {
  /** The service or protocol, e.g. `SQS` or `Kafka`. */
  readonly kind: string;
  /** The target, e.g. `topic orders`. */
  readonly name: string;
}

/** The rule of a consumer's external events. */
export interface ExternalRule {
  readonly name: string;
  readonly bus: string;
}

/** The SLO of a consumer in its directory entry. */
export interface EntrySlo {
  /** From an event's commit to the message's PROCESSED, milliseconds. */
  readonly latencyMs: number;
  /** The share of messages that must meet it, in percent. */
  readonly percentile: number;
}

/** A version of a consumer's entry: Parameter Store keeps the last 100 versions of a parameter. */
export interface EntryVersion {
  /** The entry, as JSON. */
  readonly value: string;
  /** The time at which it was written, epoch milliseconds. */
  readonly changedAt: number;
}

/** The prefix of all directories. */
export const DIRECTORY_ROOT = '/mailroom';

/** The prefix of the parameter names of one Mailroom. */
export function directoryPath(table: string): string {
  return `${DIRECTORY_ROOT}/${table}`;
}

/** The name of the parameter that holds a Mailroom's entry. */
export function mailroomEntryName(table: string): string {
  return `${directoryPath(table)}/mailroom`;
}

/** The name of the parameter that holds a consumer's entry. */
export function consumerEntryName(table: string, consumer: string): string {
  return `${directoryPath(table)}/consumers/${consumer}`;
}

/**
 * The name of the parameter that reserves one of a consumer's names: see `lib/consumer/fixed-name.ts`. CloudFormation shows this name when
 * it refuses a deploy, so the name contains the reason. It is not an entry of the directory, but shows that one is missing.
 */
export function inboxNamePath(table: string, queueName: string, index: number): string {
  return `${directoryPath(table)}/inboxes/${queueName}/renaming-a-consumer-needs-movedFrom-${index}`;
}

/** The name of the parameter that shows that a Mailroom publishes a service. It is not an entry of the directory. */
export function servicePath(table: string, service: string): string {
  return `${directoryPath(table)}/services/${service}`;
}

/** A stored parameter. */
export interface DirectoryParameter {
  readonly name: string;
  readonly value: string;
  /** Its ARN. What its entry names must be in the same account and region. @default not checked */
  readonly arn?: string | undefined;
  /** The time of its last change, epoch milliseconds. */
  readonly changedAt?: number | undefined;
}

/** The name by which a function is invoked and its mappings are listed: e.g. `payments:live` with an alias. */
export function invokedFunction(name: string, alias?: string): string {
  return alias === undefined ? name : `${name}:${alias}`;
}

/** Returns the SLO of a consumer; `undefined` if its entry has none, or not one that the constructs write. */
export function sloOf({ slo }: ConsumerEntry): EntrySlo | undefined {
  const { latencyMs, percentile } = slo ?? {};
  if (typeof latencyMs !== 'number' || typeof percentile !== 'number') return undefined;
  return { latencyMs, percentile };
}
