import { rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { deployLocal } from '../localstack/deploy.ts';
import { type Engine, startEngine } from '../localstack/engine.ts';
import { freePort } from '../localstack/free-port.ts';
import { LOCAL_REGION, localFile } from '../localstack/workspace.ts';
import { createProducers, type Producer } from './latency/producers.ts';
import { type RateRun, runAtRate } from './latency/rate-run.ts';
import type { FigureTable, Part, PartSettings } from './part.ts';

/** How long orders are placed, seconds. */
interface Lengths {
  /** Orders a second, and for how long. */
  readonly given: readonly (readonly [ordersPerSecond: number, seconds: number])[];
  /** Before each run, at the same rate, without taking times. */
  readonly warmUp: number;
}

const LENGTHS: Lengths = {
  given: [
    [1, 15],
    [50, 8],
  ],
  warmUp: 2,
};

const LENGTHS_QUICK: Lengths = {
  given: [
    [1, 3],
    [50, 2],
  ],
  warmUp: 1,
};

/** How long events take to the bus and to the consumer, with Mailroom and when the handler publishes them itself. */
export const latency: Part = {
  name: 'latency',
  title: 'commit to bus and to PROCESSED on the local engine, beside publishing from the handler',
  run: async (settings) => {
    // An engine of its own: what AWS_ENDPOINT_URL points at is somebody's. It ends with this process, however that ends.
    const engine = await startEngine({ port: await freePort(), env: {}, onProgress: settings.say });
    try {
      const figures = await measure(engine, settings);
      return { json: { latency: figures.map(asJson) }, tables: [tableOf(figures)] };
    } finally {
      await stop(engine);
    }
  },
};

async function measure({ endpoint }: Engine, { say, quick }: PartSettings): Promise<RateRun[]> {
  const appDir = fileURLToPath(new URL('latency', import.meta.url));
  const { TableName: tableName = '', EventBusName: busName = '' } = await deployLocal({
    endpoint,
    appDir,
    onProgress: say,
  });
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const dynamo = new DynamoDBClient({ endpoint, region: LOCAL_REGION, credentials });
  const bridge = new EventBridgeClient({ endpoint, region: LOCAL_REGION, credentials });
  const documents = DynamoDBDocumentClient.from(dynamo);
  const lengths = quick ? LENGTHS_QUICK : LENGTHS;

  async function runFor(producer: Producer, ordersPerSecond: number, seconds: number): Promise<RateRun> {
    const run = await runAtRate({ documents, tableName }, producer, {
      ordersPerSecond,
      orders: seconds * ordersPerSecond,
      warmUpOrders: lengths.warmUp * ordersPerSecond,
    });
    say(
      `${run.system}, ${ordersPerSecond} orders a second${run.keptUp ? '' : ', too many'}: on the bus after ` +
        `${run.toBus.p50Ms} ms, PROCESSED after ${run.toProcessed.p50Ms} ms (p50)`,
    );
    return run;
  }

  try {
    const producers = createProducers({ dynamo, bridge, tableName, busName });
    const runs: RateRun[] = [];
    // The systems take turns at every rate, so that each meets the machine in the same mood.
    for (const [rate, seconds] of lengths.given) {
      for (const producer of producers) runs.push(await runFor(producer, rate, seconds));
    }
    return runs;
  } finally {
    dynamo.destroy();
    bridge.destroy();
  }
}

async function stop(engine: Engine): Promise<void> {
  await engine.stop();
  if (engine.logFile) await rename(engine.logFile, localFile('engine-of-bench.log'));
  await rm(localFile(`outputs-${engine.port}.json`), { force: true });
}

function asJson({ handler, toBus, toProcessed, ordersPerSecond, ...run }: RateRun) {
  return {
    system: run.system,
    asked: run.asked,
    ordersPerSecond: rounded(ordersPerSecond),
    keptUp: run.keptUp,
    orders: run.orders,
    handlerP50Ms: handler.p50Ms,
    handlerP99Ms: handler.p99Ms,
    toBusP50Ms: toBus.p50Ms,
    toBusP99Ms: toBus.p99Ms,
    toProcessedP50Ms: toProcessed.p50Ms,
    toProcessedP99Ms: toProcessed.p99Ms,
  };
}

function tableOf(figures: readonly RateRun[]): FigureTable {
  return {
    name: 'latency',
    title: 'Latency on the local engine, ms, p50 / p99',
    head: ['system', 'orders a second', 'orders', 'handler', 'commit to bus', 'commit to PROCESSED'],
    rows: figures.map(({ handler, toBus, toProcessed, ...run }) => [
      run.system,
      `${rounded(run.ordersPerSecond)}${run.keptUp ? '' : ' (the backlog grew)'}`,
      run.orders,
      ...[handler, toBus, toProcessed].map(({ p50Ms, p99Ms }) => `${p50Ms} / ${p99Ms}`),
    ]),
  };
}

function rounded(rate: number): number {
  return Math.round(rate * 10) / 10;
}
