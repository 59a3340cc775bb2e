import {
  paginateGetParameterHistory,
  paginateGetParametersByPath,
  type SSMClient,
} from '@aws-sdk/client-ssm';
import { MailroomError } from '../base/errors.ts';
import {
  consumerEntryName,
  DIRECTORY_ROOT,
  type Directory,
  type DirectoryParameter,
  directoryPath,
  type EntryVersion,
  readDirectories,
} from './directory.ts';

/**
 * Reads the directories of all Mailrooms in the region.
 *
 * @throws `BAD_DIRECTORY` if an entry was changed by hand
 */
export async function readAllDirectories(client: SSMClient): Promise<Directory[]> {
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
  const [directory] = readDirectories(await parametersUnder(client, directoryPath(table)));
  if (directory !== undefined) return directory;
  throw new MailroomError(
    'NO_DIRECTORY',
    `The parameter ${directoryPath(table)}/mailroom does not exist: the table does not belong to a Mailroom, or was deployed by an older ` +
      'version. Deploy its stack again.',
  );
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
