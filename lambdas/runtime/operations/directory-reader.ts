import { MailroomError } from '../base/errors.ts';
import { jsonObject } from '../base/json.ts';
import {
  type ConsumerEntry,
  DIRECTORY_ROOT,
  type Directory,
  type DirectoryParameter,
  type MailroomEntry,
  type UnlistedConsumer,
} from './directory.ts';
import { badEntry, type EntryHints, readConsumerEntry, readMailroomEntry } from './directory-entries.ts';

/** A Mailroom whose own entry cannot be used. */
export interface BrokenDirectory {
  readonly table: string;
  /** The name of its entry's parameter. */
  readonly parameter: string;
  /** Why it cannot be used, as a sentence with the remedy. */
  readonly fault: string;
  /** Its stack and bus as the entry has them; absent if it has none. */
  readonly hints: EntryHints;
}

/** The directories of several Mailrooms. */
export interface DirectoryReading {
  /** Sorted by table name. */
  readonly directories: readonly Directory[];
  /** The Mailrooms whose entry cannot be used, sorted by table name. */
  readonly broken: readonly BrokenDirectory[];
}

/**
 * Reads directories from parameters, each for itself: an entry that cannot be used affects no other. The name of a parameter, which
 * only its stack could create, says whose entry it is, and never the value.
 *
 * @returns consumers of a Mailroom without an entry are left out
 */
export function readDirectories(parameters: readonly DirectoryParameter[]): DirectoryReading {
  const tables = new Map<string, TableReading>();
  // By name, so that the last reservation of a queue is the current name of its consumer.
  for (const parameter of parameters.toSorted((a, b) => byNumber(a.name, b.name))) {
    const [, root, table = '', kind, ...rest] = parameter.name.split('/');
    if (`/${root}` !== DIRECTORY_ROOT) continue;
    const of: TableReading = tables.get(table) ?? {
      services: [],
      consumers: [],
      faulty: [],
      reserved: new Map(),
    };
    tables.set(table, of);
    const [name = ''] = rest;
    if (kind === 'mailroom' && rest.length === 0) of.mailroom = parameter;
    if (kind === 'services') of.services.push(parameter);
    if (kind === 'inboxes') of.reserved.set(name, { name: parameter.value, parameter: parameter.name });
    if (kind !== 'consumers') continue;
    const read = readConsumerEntry(parameter, rest.join('/'));
    if ('entry' in read) of.consumers.push(read.entry);
    else of.faulty.push({ name: rest.join('/'), parameter: parameter.name, fault: read.fault });
  }
  const directories: Directory[] = [];
  const broken: BrokenDirectory[] = [];
  for (const [table, of] of [...tables].toSorted(([a], [b]) => a.localeCompare(b))) {
    if (of.mailroom === undefined) continue;
    const { name: parameter } = of.mailroom;
    const read = readMailroomEntry(of.mailroom, table);
    if ('fault' in read) {
      broken.push({ table, parameter, ...read });
      continue;
    }
    const { stack, bus } = read.entry;
    const fault = stackFault(parameter, stack, of.services);
    if (fault === undefined) directories.push(directoryOf(read.entry, of));
    else broken.push({ table, parameter, fault, hints: { stack, bus } });
  }
  return { directories, broken };
}

/** The parameters of one table. */
interface TableReading {
  mailroom?: DirectoryParameter;
  readonly services: DirectoryParameter[];
  readonly consumers: ConsumerEntry[];
  readonly faulty: UnlistedConsumer[];
  readonly reserved: Map<string, UnlistedConsumer>;
}

function directoryOf(mailroom: MailroomEntry, { consumers, faulty, reserved }: TableReading): Directory {
  const own = consumers.toSorted((a, b) => a.name.localeCompare(b.name));
  const names = new Set([...own, ...faulty].map(({ name }) => name));
  const unlisted = [...faulty, ...[...reserved.values()].filter(({ name }) => !names.has(name))];
  return { mailroom, consumers: own, ...(unlisted.length > 0 && { unlisted }) };
}

/** A Mailroom and the services that it lists are of one stack: an entry that names another one would be chosen in its place. */
function stackFault(
  parameter: string,
  stack: string,
  services: readonly DirectoryParameter[],
): string | undefined {
  for (const { name, value } of services) {
    const listed = jsonObject(value)?.stack;
    if (typeof listed === 'string' && listed !== stack)
      return badEntry(
        parameter,
        `its stack is ${JSON.stringify(stack)}, but that of ${name} is ${JSON.stringify(listed)}`,
      ).message;
  }
  return undefined;
}

/** @throws `BAD_DIRECTORY` if the entry of one of its consumers cannot be used: a command would work on a part of the Mailroom. */
export function refuseFaults(directory: Directory): Directory {
  const fault = directory.unlisted?.find((one) => one.fault !== undefined)?.fault;
  if (fault !== undefined) throw new MailroomError('BAD_DIRECTORY', fault);
  return directory;
}

/** Compares names whose last part may be a number. */
function byNumber(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
