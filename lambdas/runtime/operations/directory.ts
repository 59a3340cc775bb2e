import { MailroomError } from '../errors.ts';
import type { EventRef } from '../event.ts';

/**
 * The directory: where the parts of a deployed Mailroom are. Each construct writes an entry of its own into SSM Parameter
 * Store, `/mailroom/<table>/mailroom` and `/mailroom/<table>/consumers/<name>`, so that a consumer of any stack can be
 * found from the table's name alone: by the sweep, by the audit, by the `mailroom` command. One codec serves both sides.
 */
export interface Directory {
  readonly mailroom: MailroomEntry;
  /** By name. */
  readonly consumers: readonly ConsumerEntry[];
}

/** What the directory says of the parts that all services share. */
export interface MailroomEntry {
  /** The CloudFormation stack. */
  readonly stack: string;
  readonly table: string;
  /** The bus's name. */
  readonly bus: string;
  /** Over how many shards events are spread now. */
  readonly shards: number;
  /** Function names. */
  readonly streamFunction: string;
  readonly sweepFunction: string;
  /** The URL of the queue where the stream mapping leaves what it gave up on. */
  readonly failureQueue: string;
  /** The sources that the relay publishes. */
  readonly sources?: readonly string[] | undefined;
}

/** What the directory says of a consumer. */
export interface ConsumerEntry {
  /** The CloudFormation stack. */
  readonly stack: string;
  readonly name: string;
  /** The `source` of what its handlers write. */
  readonly service: string;
  /** The events that it must see, whatever its deployed rule says. */
  readonly events: readonly EventRef[];
  /** The name of its rule on the bus. */
  readonly rule: string;
  /** The URLs of its queues. */
  readonly queue: string;
  readonly deadLetterQueue: string;
  readonly undeliveredQueue: string;
  /** The name of its function. */
  readonly function: string;
  readonly maxAttempts: number;
  readonly inboxRetentionDays: number;
  /** When its inbox began, where it had another name before, epoch milliseconds. */
  readonly inboxSince?: number | undefined;
  /** When the entry was last changed, epoch milliseconds. Not part of it: whoever reads the parameters is told. */
  readonly changedAt?: number | undefined;
}

/** A consumer's entry as it stood from some time on: Parameter Store keeps the last 100 versions of a parameter. */
export interface EntryVersion {
  /** The entry, as JSON. */
  readonly value: string;
  /** When it was written, epoch milliseconds. */
  readonly changedAt: number;
}

/** Where all directories begin. */
export const DIRECTORY_ROOT = '/mailroom';

/** The names of the parameters of one Mailroom begin with this. */
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
 * The name of the parameter that holds one of a consumer's names: see `lib/fixed-name.ts`. CloudFormation shows it when it
 * refuses a deploy, so it says why. It is no entry of the directory.
 */
export function inboxNamePath(table: string, queueName: string, index: number): string {
  return `${directoryPath(table)}/inboxes/${queueName}/renaming-a-consumer-needs-movedFrom-${index}`;
}

/** A parameter as it is stored. */
export interface DirectoryParameter {
  readonly name: string;
  readonly value: string;
  /** The account that it is in: the queues that an entry names must be there, too. @default not checked */
  readonly account?: string | undefined;
  /** When it was last changed, epoch milliseconds. */
  readonly changedAt?: number | undefined;
}

/**
 * Reads directories out of parameters.
 *
 * @returns one for each Mailroom, in the order of their tables' names; consumers of a Mailroom that has no entry of its own
 * are left out
 * @throws `BAD_DIRECTORY`, naming the parameter, when a value is not what the constructs write
 */
export function readDirectories(parameters: readonly DirectoryParameter[]): Directory[] {
  const mailrooms: MailroomEntry[] = [];
  const consumers = new Map<string, ConsumerEntry[]>();
  for (const parameter of parameters) {
    const [, root, table = '', kind] = parameter.name.split('/');
    if (`/${root}` !== DIRECTORY_ROOT) continue;
    if (kind === 'mailroom') mailrooms.push(entry<MailroomEntry>(parameter, 'table'));
    if (kind === 'consumers') {
      const consumer = { ...entry<ConsumerEntry>(parameter, 'name'), changedAt: parameter.changedAt };
      consumers.set(table, [...(consumers.get(table) ?? []), consumer]);
    }
  }
  return mailrooms
    .sort((a, b) => a.table.localeCompare(b.table))
    .map((mailroom) => ({
      mailroom,
      consumers: (consumers.get(mailroom.table) ?? []).sort((a, b) => a.name.localeCompare(b.name)),
    }));
}

function entry<E>({ name, value, account }: DirectoryParameter, required: keyof E & string): E {
  try {
    const parsed = JSON.parse(value) as Record<string, unknown>;
    if (account !== undefined) refuseForeignQueues(name, parsed, account);
    if (typeof parsed[required] === 'string') return parsed as E;
  } catch (error) {
    if (error instanceof MailroomError) throw error;
    // no JSON
  }
  throw new MailroomError(
    'BAD_DIRECTORY',
    `The parameter ${name} is not what Mailroom writes there. It was changed by hand: see "To deploy a stack again" in docs/operating.md.`,
  );
}

/** The members of an entry that are queue URLs. */
const QUEUES = ['queue', 'deadLetterQueue', 'undeliveredQueue', 'failureQueue'];

/**
 * A repair sends payloads to the queues of the directory, and whoever may write a parameter must not be able to send them to
 * another account. The host of a URL is never used: every SQS client goes to the endpoint of its own region.
 */
function refuseForeignQueues(name: string, entry: Readonly<Record<string, unknown>>, account: string): void {
  for (const member of QUEUES) {
    const url = entry[member];
    if (url === undefined || new RegExp(`^https?://[^/]+/${account}/[\\w-]+(\\.fifo)?$`).test(String(url)))
      continue;
    throw new MailroomError(
      'BAD_DIRECTORY',
      `The parameter ${name} names ${JSON.stringify(url)} as its ${member}, which is no queue of the account ${account}. It was changed by ` +
        'hand: see "To deploy a stack again" in docs/operating.md. Nothing was sent.',
    );
  }
}

/** The consumers that must see an event. */
export function consumersOf(directory: Directory, event: EventRef): ConsumerEntry[] {
  return directory.consumers.filter((consumer) => subscribes(consumer, event));
}

/**
 * Since when a consumer has been declared to see an event, without a break, epoch milliseconds.
 *
 * @param versions - of its entry, oldest first
 * @returns `undefined` when the last of them does not declare it
 */
export function declaredSince(versions: readonly EntryVersion[], event: EventRef): number | undefined {
  const firstWithout = versions.findLastIndex(({ value }) => !declares(value, event));
  return versions[firstWithout + 1]?.changedAt;
}

function declares(value: string, event: EventRef): boolean {
  try {
    return subscribes(JSON.parse(value) as ConsumerEntry, event);
  } catch {
    return false; // changed by hand
  }
}

function subscribes({ events }: ConsumerEntry, { source, type }: EventRef): boolean {
  return events.some((event) => event.source === source && event.type === type);
}
