import {
  paginateGetParameterHistory,
  paginateGetParametersByPath,
  type SSMClient,
} from '@aws-sdk/client-ssm';
import pMap from 'p-map';
import { awsFault } from '../base/aws-errors.ts';
import { errorCode, MailroomError } from '../base/errors.ts';
import { type BusDirectory, busPath, readBusDirectories } from './bus-directory.ts';
import {
  consumerEntryName,
  DIRECTORY_ROOT,
  type Directory,
  type DirectoryParameter,
  directoryPath,
  type EntryVersion,
} from './directory.ts';
import {
  type BrokenDirectory,
  type DirectoryReading,
  readDirectories,
  refuseFaults,
} from './directory-reader.ts';

/** Reads the directories of all Mailrooms in the region. */
export async function readAllDirectories(client: SSMClient): Promise<DirectoryReading> {
  return readDirectories(await parametersUnder(client, DIRECTORY_ROOT));
}

/**
 * Reads the directory of one Mailroom.
 *
 * @throws `NO_DIRECTORY` if the table has none, `BAD_DIRECTORY` if an entry was changed by hand
 *
 * @example
 * ```ts
 * const { consumers } = await readDirectory(new SSMClient(clientSettings), config.tableName);
 * ```
 */
export async function readDirectory(client: SSMClient, table: string): Promise<Directory> {
  const { directories, broken } = await readUsable(client, table);
  for (const { fault } of broken) throw new MailroomError('BAD_DIRECTORY', fault);
  for (const directory of directories) return refuseFaults(directory);
  throw new MailroomError(
    'NO_DIRECTORY',
    `The parameter ${directoryPath(table)}/mailroom does not exist: the table does not belong to a Mailroom, or was deployed by an older ` +
      'version. Deploy its stack again.',
  );
}

/** Reads what can be used of the directory of one Mailroom. */
async function readUsable(client: SSMClient, table: string): Promise<DirectoryReading> {
  return readDirectories(await parametersUnder(client, directoryPath(table)));
}

/**
 * Reads the claims on a bus.
 *
 * @returns `undefined` if it has none, or the caller may not read them: then it was deployed, or the role made, before buses had claims
 */
export async function readBusClaims(client: SSMClient, bus: string): Promise<BusDirectory | undefined> {
  try {
    const [claims] = readBusDirectories(await parametersUnder(client, busPath(bus)));
    return claims;
  } catch (error) {
    if (awsFault(errorCode(error)) === 'denied') return undefined;
    throw error;
  }
}

/** The other Mailrooms on a bus, and its claims. */
interface BusReading {
  readonly neighbors: readonly Directory[];
  readonly claims: BusDirectory | undefined;
  /** Those of them whose entry cannot be used. */
  readonly broken: readonly BrokenDirectory[];
}

/** Tables whose directories are read at a time: Parameter Store limits the calls of an account. */
const TABLES_AT_ONCE = 3;

/**
 * Reads the other Mailrooms on a Mailroom's bus, found by the claims of their consumers: the scheduled audit may not list every
 * Mailroom of the account. One whose directory cannot be read has no entries, so its consumers are unlisted. A consumer that is not
 * claimed on this bus subscribes on another one.
 */
export async function readNeighbors(client: SSMClient, { mailroom }: Directory): Promise<BusReading> {
  const claims = await readBusClaims(client, mailroom.bus);
  const claimed = claims?.consumers.filter(({ table }) => table !== mailroom.table) ?? [];
  const read = async (table: string): Promise<DirectoryReading> => {
    // Each error is that of another Mailroom, and must not end the audit of this one.
    const none: DirectoryReading = { directories: [], broken: [] };
    const { directories, broken } = await readUsable(client, table).catch(() => none);
    const names = new Set(claimed.flatMap((claim) => (claim.table === table ? [claim.name] : [])));
    const ofBus = <T extends { readonly name: string }>(all: readonly T[]) =>
      all.filter(({ name }) => names.has(name));
    const narrowed = directories.map(({ consumers, unlisted = [], ...directory }) => {
      const missing = ofBus(unlisted);
      return {
        ...directory,
        consumers: ofBus(consumers),
        ...(missing.length > 0 && { unlisted: missing }),
      };
    });
    return { directories: narrowed, broken };
  };
  const tables = [...new Set(claimed.map(({ table }) => table))];
  const readings = await pMap(tables, read, { concurrency: TABLES_AT_ONCE });
  return {
    neighbors: readings.flatMap(({ directories }) => directories),
    broken: readings.flatMap(({ broken }) => broken),
    claims,
  };
}

/** Reads the versions of a consumer's entry, oldest first. */
export async function readEntryVersions(
  client: SSMClient,
  table: string,
  consumer: string,
): Promise<EntryVersion[]> {
  const versions: (EntryVersion & { readonly version: number })[] = [];
  const Name = consumerEntryName(table, consumer);
  for await (const page of paginateGetParameterHistory({ client }, { Name })) {
    for (const { Value, LastModifiedDate, Version = 0 } of page.Parameters ?? []) {
      if (Value !== undefined && LastModifiedDate !== undefined)
        versions.push({ value: Value, changedAt: LastModifiedDate.getTime(), version: Version });
    }
  }
  return versions.sort((a, b) => a.version - b.version);
}

async function parametersUnder(client: SSMClient, path: string): Promise<DirectoryParameter[]> {
  const found: DirectoryParameter[] = [];
  for await (const page of paginateGetParametersByPath({ client }, { Path: path, Recursive: true })) {
    for (const { Name, Value, ARN, LastModifiedDate } of page.Parameters ?? []) {
      if (Name !== undefined && Value !== undefined)
        found.push({ name: Name, value: Value, arn: ARN, changedAt: LastModifiedDate?.getTime() });
    }
  }
  return found;
}
