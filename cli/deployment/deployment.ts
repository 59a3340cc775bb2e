import { UpdateEventSourceMappingCommand } from '@aws-sdk/client-lambda';
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import { awsFault } from '../../lambdas/runtime/base/aws-errors.ts';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { errorCode, errorMessage } from '../../lambdas/runtime/base/errors.ts';
import type { InboxChanges } from '../../lambdas/runtime/inbox/inbox-operator.ts';
import { neighborsOf } from '../../lambdas/runtime/operations/bus-consumers.ts';
import type { BusDirectory } from '../../lambdas/runtime/operations/bus-directory.ts';
import type { ConsumerEntry, Directory, SourceConsumer } from '../../lambdas/runtime/operations/directory.ts';
import type { BrokenDirectory } from '../../lambdas/runtime/operations/directory-reader.ts';
import type { Queues } from '../../lambdas/runtime/operations/queues.ts';
import { readSourceConsumers } from '../../lambdas/runtime/operations/source-consumers.ts';
import { sqsQueues } from '../../lambdas/runtime/operations/sqs-queues.ts';
import { readAllDirectories, readBusClaims } from '../../lambdas/runtime/operations/ssm-directory.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { type AwsClock, clockError, createAwsClock } from '../terminal/aws-clock.ts';
import type { Io } from '../terminal/io.ts';
import { type ShellText, shell } from '../terminal/shell.ts';
import { createTerminal, type Terminal } from '../terminal/terminal.ts';
import { appStacks } from './app-stacks.ts';
import { awsDeclarations } from './aws-declarations.ts';
import { awsReads } from './aws-reads.ts';
import { awsResources } from './aws-resources.ts';
import { choiceOf, chooseMailroom } from './choose-mailroom.ts';
import { type Clients, createClients } from './clients.ts';
import { inboxChangesOf } from './combined-inbox-changes.ts';
import { combinedRows } from './combined-rows.ts';
import type { Declarations } from './declared-resources.ts';
import { type FunctionSettings, readFunction } from './deployed-function.ts';
import { type DeployedProperties, deployedProperties } from './deployed-properties.ts';
import { dynamoRows } from './dynamo-rows.ts';
import { awsExecutions, type ReadExecution } from './executions.ts';
import { guardedTable } from './guarded-table.ts';
import { joinedReads } from './joined-reads.ts';
import { databaseUrl, type OpenDatabase, openDatabase, rowsIn } from './open-database.ts';
import type { Resources } from './resources.ts';
import { selectPartitions } from './select-partitions.ts';
import { consumerNamed } from './source-consumer.ts';
import type { StoredRows } from './stored-rows.ts';
import { type GlobalOptions, localEndpoints, targetOf } from './target.ts';

/** One deployed Mailroom, and the clients that reach its resources. */
export interface Deployment {
  readonly terminal: Terminal;
  readonly clients: Clients;
  /** AWS's time. No command reads this machine's clock, which may be wrong. */
  readonly clock: Clock;
  /** False if `clock` falls back to this machine's time. */
  readonly clockIsTrusted: boolean;
  /** The least by which this machine's clock is ahead of AWS's, milliseconds; negative if it is behind. */
  readonly machineAheadMs: number;
  /** True if the endpoint is a local engine. */
  readonly isLocal: boolean;
  readonly region: string;
  readonly directory: Directory;
  /** The other Mailrooms on its bus, each with commands that name its stack. @default none */
  readonly neighbors?: readonly Deployment[];
  /** The Mailrooms of the region whose entry cannot be used. @default none */
  readonly broken?: readonly BrokenDirectory[];
  /** Reads the claims on its bus. @default there are none */
  readonly claims?: () => Promise<BusDirectory | undefined>;
  /** Changes the rows of its table, except events. Reports read them through `stored`. */
  readonly table: Table;
  /** The rows of its table, and those of the database. */
  readonly stored: StoredRows;
  /** Changes the messages of the inboxes. @default those in the table */
  readonly inboxChanges?: InboxChanges | undefined;
  /** The database that also has rows. Absent: all are in DynamoDB. */
  readonly database?: OpenDatabase | undefined;
  readonly queues: Queues;
  /** Reads the state of an execution. @default none is read */
  readonly execution?: ReadExecution | undefined;
  readonly resources: Resources;
  /** Reads what its stacks declare, and what of it AWS has. Each call returns readers that read a resource once, so that the console does not compare with what it read before. */
  stacks(): { readonly declarations: Declarations; readonly properties: DeployedProperties };
  /** Enables or disables an event source mapping. Lambda needs about a minute to do it. */
  enableMapping(uuid: string, enabled: boolean): Promise<void>;
  /** Reads a function's settings; `undefined` if the function does not exist. */
  deployedFunction(name: string, alias?: string): Promise<FunctionSettings | undefined>;
  /** The caller's ARN, which is stored with a change. Requested once. */
  operator(): Promise<string>;
  /** A command to paste, with this run's options that select the Mailroom: e.g. `npx cdk-mailroom dlq list --stage dev`. */
  commandLine(command: ShellText): string;
  /** A command of the AWS CLI for the same region, account and endpoint. */
  awsLine(command: ShellText): string;
  /** @throws `NO_SUCH_CONSUMER`, listing the consumers */
  consumer(name: string): ConsumerEntry;
}

/**
 * Opens the Mailroom that the options select.
 *
 * @throws `NOTHING_DEPLOYED`, `NO_SUCH_STAGE`, `WHICH_MAILROOM`, each lists the choices; `BAD_DIRECTORY` if an entry of it cannot be used
 */
export async function openDeployment(io: Io, options: GlobalOptions): Promise<Deployment> {
  const terminal = createTerminal(io, options.json ?? false);
  const { isLocal, ...target } = await targetOf(options, io.env);
  const clock = createAwsClock();
  const clients = createClients(target, clock);
  const { ssm, lambdaReads } = clients;
  const region = await ssm.config.region().catch(noRegion);
  const reading = await readAllDirectories(ssm);
  const { directory, byApp, unnamedStack } = chooseMailroom(reading, {
    ...options,
    variable: io.env.MAILROOM_STACK,
    appStacks: await appStacks('.'),
    where: `${region}${target.endpoint === undefined ? '' : ` at ${target.endpoint}`}`,
  });
  const where = { ...options, stack: options.stack ?? unnamedStack };
  if (!terminal.json) {
    if (byApp) terminal.say(`Mailroom: ${directory.mailroom.stack}, of the CDK app in this folder.`);
    reportClock(terminal, clock);
  }
  let operator: Promise<string> | undefined;
  const url = databaseUrl(options.database, io.env, ['MAILROOM_POSTGRES', 'MAILROOM_MYSQL']);
  const database = url === undefined ? undefined : await openDatabase(url, io.env);
  const open = (directory: Directory, where: GlobalOptions, database?: OpenDatabase): Deployment => {
    const tableName = directory.mailroom.table;
    const resources = awsResources(clients, tableName, clock);
    return {
      ...storageOf(tableOf(clients, tableName), { database, clock, directory }),
      terminal,
      clients,
      clock,
      clockIsTrusted: clock.isKnown(),
      machineAheadMs: clock.machineAheadMs(),
      isLocal,
      region,
      directory,
      database,
      queues: sqsQueues(clients.sqs),
      execution: awsExecutions(clients),
      resources,
      stacks: () => ({
        declarations: awsDeclarations(clients.cloudFormation, directory),
        properties: deployedProperties(awsReads(clients)),
      }),
      enableMapping: async (UUID, Enabled) => {
        await lambdaReads.send(new UpdateEventSourceMappingCommand({ UUID, Enabled }));
      },
      deployedFunction: (name, alias) => readFunction(resources, name, alias),
      operator: () => {
        operator ??= clients.sts.send(new GetCallerIdentityCommand({})).then(({ Arn = 'unknown' }) => Arn);
        return operator;
      },
      awsLine: (command) =>
        [
          'aws',
          command,
          shell`--region ${region}`,
          ...(options.profile === undefined ? [] : [shell`--profile ${options.profile}`]),
          ...(target.endpoint === undefined ? [] : [shell`--endpoint-url ${target.endpoint}`]),
          // The local engine wants no credentials, and without them the CLI refuses to sign.
          ...(isLocal && options.profile === undefined ? ['--no-sign-request'] : []),
        ].join(' '),
      commandLine: (command) => ['npx cdk-mailroom', command, ...whereOptions(where)].join(' '),
      consumer: (name) => consumerNamed(directory, name),
    };
  };
  const neighbors = neighborsOf(directory, reading.directories).map((neighbor) =>
    open(neighbor, {
      ...options,
      stage: undefined,
      database: undefined,
      stack: choiceOf(neighbor, reading.directories),
    }),
  );
  return {
    ...open({ ...directory, sourceConsumers: await sourcesOf(clients, directory, clock) }, where, database),
    neighbors,
    broken: reading.broken,
    claims: () => readBusClaims(ssm, directory.mailroom.bus),
  };
}

/** The table of a Mailroom, whose concurrent reads are joined. */
function tableOf({ dynamo: client }: Clients, tableName: string): Table {
  return joinedReads(dynamoTable({ client, tableName }), selectPartitions({ client, tableName }));
}

/** The rows of a Mailroom, and their changes. */
function storageOf(
  table: Table,
  { database, clock, directory }: Pick<Deployment, 'database' | 'clock' | 'directory'>,
): Pick<Deployment, 'table' | 'stored' | 'inboxChanges'> {
  const inTable = dynamoRows(table);
  if (database === undefined)
    return { table, stored: inTable, inboxChanges: inboxChangesOf({ table, inTable, clock, directory }) };
  const inDatabase = rowsIn(database);
  return {
    table: guardedTable(table, inDatabase),
    stored: combinedRows(inDatabase, inTable, directory),
    inboxChanges: inboxChangesOf({ database, inDatabase, table, inTable, clock, directory }),
  };
}

/** The consumers of other sources. Without its table, `doctor` still names what else is there. */
async function sourcesOf({ dynamo }: Clients, directory: Directory, clock: Clock): Promise<SourceConsumer[]> {
  const table = dynamoTable({ client: dynamo, tableName: directory.mailroom.table });
  try {
    return await readSourceConsumers(table, directory, clock.now());
  } catch (error) {
    if (awsFault(errorCode(error)) === 'missing') return [];
    throw error; // a list without them would look complete
  }
}

/** Without a region, a local engine may be meant: names those that run. */
async function noRegion(error: unknown): Promise<never> {
  const endpoints = await localEndpoints();
  if (endpoints.length === 0) throw error;
  throw new Error(`${errorMessage(error)}. A local AWS runs at ${endpoints.join(' and ')} (--endpoint).`);
}

/** Reports a wrong machine clock: the command does not use it, but other programs do. */
function reportClock({ say }: Terminal, clock: AwsClock): void {
  if (!clock.isKnown()) {
    say(
      "AWS's responses carry no time, so ages use this machine's clock. A worker's lease counts as expired only after it was " +
        'seen unchanged for its whole duration.',
    );
    return;
  }
  const wrong = clockError(clock.machineAheadMs());
  if (wrong !== undefined) say(`This machine's clock is ${wrong}. Correct it. The times below are AWS's.`);
}

/** The options that select the Mailroom: as they were given, and the stack if none of them names it. */
function whereOptions(options: GlobalOptions): string[] {
  const named = (['stage', 'stack', 'profile', 'region', 'endpoint'] as const).flatMap((name) => {
    const value = options[name];
    return value === undefined ? [] : [shell`--${name} ${value}`];
  });
  // Not the address itself, which may hold a password.
  return options.database === undefined ? named : [...named, '--database "$DATABASE_URL"'];
}
