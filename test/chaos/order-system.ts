import { rename, rm } from 'node:fs/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { SQSClient } from '@aws-sdk/client-sqs';
import { DynamoDBDocumentClient, paginateQuery } from '@aws-sdk/lib-dynamodb';
import { required } from '../../demo/readings.ts';
import { pause } from '../../demo/shop.ts';
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Item } from '../../lambdas/runtime/index.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { deployLocal } from '../../localstack/deploy.ts';
import { startEngine } from '../../localstack/engine.ts';
import type { MiniStackProcess } from '../../localstack/ministack.ts';
import { runsWith } from '../../localstack/process-group.ts';
import { localEnvironment, localFile } from '../../localstack/workspace.ts';
import { type BusJournal, createBusJournal } from './bus-journal.ts';
import type { ChaosDatabase } from './chaos-database.ts';
import type { Cleanup } from './cleanup.ts';
import { adaptFunctions, type Caller, type DeployedNames } from './deployed-functions.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { warmUp } from './warm-up.ts';

/** The order system on its own engine, with the fault proxy between its functions and the engine. */
export interface OrderSystem {
  readonly endpoint: string;
  readonly outputs: Outputs;
  readonly tableName: string;
  readonly bankTableName: string;
  /** Clients that reach the engine directly, past the proxy. */
  readonly documents: DynamoDBDocumentClient;
  readonly lambda: LambdaClient;
  readonly sqs: SQSClient;
  /** A client whose calls the proxy sees as those of `naive`. One try a call, as the relay's own. */
  readonly naiveEvents: EventBridgeClient;
  /** The name that each function was deployed under. */
  readonly functions: DeployedNames;
  readonly proxy: FaultProxy<Caller>;
  readonly journal: BusJournal;
  /** The database of the orders. @default they are in the table */
  readonly database?: ChaosDatabase | undefined;
  /** The rows of one partition, of the Mailroom table unless another is named. */
  rows(pk: string, tableName?: string): Promise<Item[]>;
  /**
   * Kills the process of a function: SIGKILL, no chance to put anything right.
   *
   * @throws `NOT_OURS` when the process is not a function of this engine
   */
  kill(pid: number): Promise<void>;
}

/** What {@link startOrderSystem} may be told. */
export interface OrderSystemOptions {
  readonly port: number;
  /** The database of the orders. @default the table */
  readonly database?: DatabaseEngine | undefined;
  /** Gets what has to be stopped, as soon as it runs. */
  readonly cleanup: Cleanup;
  readonly onProgress: (line: string) => void;
}

/**
 * Starts an engine, deploys the order system to it, and leads the functions' calls through the fault proxy.
 *
 * @throws `CHAOS_ENGINE` when an engine runs on the port already, or when MiniStack cannot be started
 * @throws `CHAOS_WARM_UP` when it does not work even without faults
 */
export async function startOrderSystem({
  port,
  database: engineOfOrders,
  cleanup,
  onProgress,
}: OrderSystemOptions): Promise<OrderSystem> {
  // Before the engine, so that it is closed after the functions that are connected to it.
  const started = engineOfOrders && (await databaseOf({ engine: engineOfOrders, cleanup, onProgress }));
  // What AWS_ENDPOINT_URL points at is somebody's, and nobody wants faults in it.
  const engine = await startEngine({ port, env: {}, onProgress });
  cleanup.add(async () => {
    await engine.stop();
    if (!engine.startedHere) return;
    const name = ['engine-of-chaos', ...(engineOfOrders ? [engineOfOrders] : [])].join('-');
    if (engine.logFile) await rename(engine.logFile, localFile(`${name}.log`));
    await rm(localFile(`outputs-${port}.json`), { force: true });
  });
  const ministack = engine.process;
  if (!engine.startedHere || ministack === undefined) throw noEngine(engine.startedHere, port);

  const { endpoint } = engine;
  const outputs = await deployLocal({ endpoint, context: started?.context, onProgress });
  Object.assign(process.env, localEnvironment(endpoint));
  const journal = createBusJournal();
  const proxy = await startFaultProxy<Caller>({ endpoint, onAnswered: journal.note });
  cleanup.add(() => proxy.close());
  const lambda = new LambdaClient({});
  const sqs = new SQSClient({ useQueueUrlAsEndpoint: false });
  const functions = await adaptFunctions({ lambda, sqs, urlFor: proxy.urlFor });
  cleanup.add(keepSweeping(lambda, functions['relay-sweep']));
  const database = started?.startRelay({ endpoint, outputs, proxyUrl: proxy.urlFor('database-relay') });
  onProgress('Letting some orders through before anything is broken');
  await warmUp({ outputs, endpoint, database });

  const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
  const tableName = required(outputs, 'TableName');
  return {
    endpoint,
    outputs,
    tableName,
    bankTableName: required(outputs, 'BankTableName'),
    documents,
    lambda,
    sqs,
    naiveEvents: new EventBridgeClient({ endpoint: proxy.urlFor('naive'), maxAttempts: 1 }),
    functions,
    proxy,
    journal,
    database,
    rows: (pk, table = tableName) => rowsOf(documents, table, pk),
    kill: (pid) => killFunction(ministack, pid),
  };
}

/** Starts the database. Nothing of it is loaded without a scenario that needs it. */
async function databaseOf(
  deps: Pick<OrderSystemOptions, 'cleanup' | 'onProgress'> & { readonly engine: DatabaseEngine },
) {
  const { startChaosDatabase } = await import('./chaos-database.ts');
  return await startChaosDatabase(deps);
}

/**
 * Runs the sweep again whenever it ends. The schedule alone would leave it out for up to half a minute: it runs
 * once a minute, and the sweep loops for a part of that.
 *
 * @returns how to stop it
 */
function keepSweeping(lambda: LambdaClient, FunctionName: string): () => Promise<void> {
  const stop = new AbortController();
  const swept = (async () => {
    while (!stop.signal.aborted) {
      try {
        await lambda.send(new InvokeCommand({ FunctionName }), { abortSignal: stop.signal });
      } catch {
        // The engine is busy or gone; a killed sweep is an answer and no error.
        await pause(stop.signal.aborted ? 0 : 500);
      }
    }
  })();
  return async () => {
    stop.abort();
    await swept;
  };
}

async function rowsOf(client: DynamoDBDocumentClient, TableName: string, pk: string): Promise<Item[]> {
  const rows: Item[] = [];
  const query = {
    TableName,
    ConsistentRead: true,
    KeyConditionExpression: 'PK = :pk',
    ExpressionAttributeValues: { ':pk': pk },
  };
  for await (const { Items = [] } of paginateQuery({ client }, query)) rows.push(...Items);
  return rows;
}

async function killFunction({ tempDir }: MiniStackProcess, pid: number): Promise<void> {
  // The engine unpacks the functions there, so the folder is in the command line of each of their processes.
  if (pid < 2 || !(await runsWith(pid, tempDir))) {
    throw new MailroomError('NOT_OURS', `Process ${pid} is not a function of this engine: it is not killed.`);
  }
  process.kill(pid, 'SIGKILL');
}

function noEngine(startedHere: boolean, port: number): MailroomError {
  const why = startedHere
    ? 'Only LocalStack could be started: its functions run in containers, which the fault proxy does not reach. ' +
      'Install Python 3.10 or later, then MiniStack is started.'
    : `An engine runs on port ${port} already, and the scenarios break what they run on. Leave --port out to have ` +
      'one started on a free port.';
  return new MailroomError('CHAOS_ENGINE', `The scenarios need their own MiniStack. ${why}`);
}
