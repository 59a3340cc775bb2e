import { rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { deployLocal } from '../localstack/deploy.ts';
import { type Engine, startEngine } from '../localstack/engine.ts';
import { freePort } from '../localstack/free-port.ts';
import { LOCAL_REGION, localFile } from '../localstack/workspace.ts';
import { type AtOnceCost, atOnceCosts, atOnceCostTable } from './latency/at-once-cost.ts';
import { awsLatency, awsLatencyTable } from './latency/aws-latency.ts';
import { createProducers, type Producer } from './latency/producers.ts';
import { highestCarried, lowestTooHigh, nextRate, type RateRun, runAtRate } from './latency/rate-run.ts';
import type { FigureTable, Part, PartSettings } from './part.ts';

/** The duration of a run in seconds. */
interface Lengths {
  /** Orders per second, and for how long. */
  readonly given: readonly (readonly [ordersPerSecond: number, seconds: number])[];
  /** For each rate that the search for the highest one tries. */
  readonly tried: number;
  /** The warm-up at the same rate before each run, which is not timed. */
  readonly warmUp: number;
  /** The maximum number of rates to try. */
  readonly triesMax: number;
}

/** A run in the result table. */
interface LatencyFigure extends RateRun {
  /** For a run at the highest rate that was sustained: the lowest rate that was not, `null` if none was tried. */
  readonly tooHigh?: number | null;
}

const LENGTHS: Lengths = {
  given: [
    [1, 15],
    [50, 8],
  ],
  tried: 5,
  warmUp: 2,
  triesMax: 5,
};

const LENGTHS_QUICK: Lengths = {
  given: [
    [1, 3],
    [50, 2],
  ],
  tried: 2,
  warmUp: 1,
  triesMax: 1,
};

/** The events whose cost is counted: one batch of the relay. */
const COSTED_EVENTS = 100;
const COSTED_EVENTS_QUICK = 5;

/** Measures how long events take to reach the bus and the consumer, with Mailroom and with publishing from the handler. */
export const latency: Part = {
  name: 'latency',
  title: 'commit to bus and to PROCESSED, compared with direct publishing',
  run: async (settings) => {
    // A separate engine: AWS_ENDPOINT_URL may point at one in use. It ends with this process, however it ends.
    const engine = await startEngine({ port: await freePort(), env: {}, onProgress: settings.say });
    try {
      const figures = await measure(engine, settings);
      settings.say('the price of publishing at once');
      const costs = await atOnceCosts(settings.quick ? COSTED_EVENTS_QUICK : COSTED_EVENTS);
      return {
        json: {
          latency: figures.map(asJson),
          latencyOnAws: awsLatency(),
          publishAtOnce: costs.map(costAsJson),
        },
        tables: [tableOf(figures), awsLatencyTable(), atOnceCostTable(costs)],
      };
    } finally {
      await stop(engine);
    }
  },
};

async function measure({ endpoint }: Engine, { say, quick }: PartSettings): Promise<LatencyFigure[]> {
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
      `${run.system}, ${ordersPerSecond} orders per second${run.keptUp ? '' : ', too many'}: on the bus after ` +
        `${run.toBus.p50Ms} ms, PROCESSED after ${run.toProcessed.p50Ms} ms (p50)`,
    );
    return run;
  }

  try {
    return await runInTurns(createProducers({ dynamo, bridge, tableName, busName }), lengths, runFor);
  } finally {
    dynamo.destroy();
    bridge.destroy();
  }
}

/** The systems take turns at every rate, so that each meets the machine under the same conditions. */
async function runInTurns(
  producers: readonly Producer[],
  { given, tried, triesMax }: Lengths,
  runFor: (producer: Producer, ordersPerSecond: number, seconds: number) => Promise<RateRun>,
): Promise<LatencyFigure[]> {
  const runs: RateRun[] = [];
  const runsOf = ({ system }: Producer) => runs.filter((run) => run.system === system);
  for (const [rate, seconds] of given) {
    for (const producer of producers) runs.push(await runFor(producer, rate, seconds));
  }
  const figures: LatencyFigure[] = [...runs];
  for (let tries = 0; tries < triesMax; tries += 1) {
    for (const producer of producers) {
      const rate = nextRate(runsOf(producer));
      if (rate === undefined) continue;
      const run = await runFor(producer, rate, tried);
      // A briefly busy machine is not a limit: a rate is too high only if it fails twice.
      runs.push(run.keptUp ? run : await runFor(producer, rate, tried));
    }
  }
  for (const producer of producers) {
    const most = highestCarried(runsOf(producer));
    if (most !== undefined) figures.push({ ...most, tooHigh: lowestTooHigh(runsOf(producer)) ?? null });
  }
  return figures;
}

async function stop(engine: Engine): Promise<void> {
  await engine.stop();
  if (engine.logFile) await rename(engine.logFile, localFile('engine-of-bench.log'));
  await rm(localFile(`outputs-${engine.port}.json`), { force: true });
}

function asJson({ handler, toBus, busToProcessed, toProcessed, ordersPerSecond, ...run }: LatencyFigure) {
  return {
    system: run.system,
    asked: run.tooHigh === undefined ? run.asked : 'most',
    ordersPerSecond: rounded(ordersPerSecond),
    ...(run.tooHigh !== undefined && { tooHigh: run.tooHigh }),
    keptUp: run.keptUp,
    orders: run.orders,
    handlerP50Ms: handler.p50Ms,
    handlerP99Ms: handler.p99Ms,
    toBusP50Ms: toBus.p50Ms,
    toBusP99Ms: toBus.p99Ms,
    busToProcessedP50Ms: busToProcessed.p50Ms,
    busToProcessedP99Ms: busToProcessed.p99Ms,
    toProcessedP50Ms: toProcessed.p50Ms,
    toProcessedP99Ms: toProcessed.p99Ms,
  };
}

function tableOf(figures: readonly LatencyFigure[]): FigureTable {
  return {
    name: 'latency',
    title: 'Latency on the local engine, ms, p50 / p99',
    head: [
      'system',
      'orders per second',
      'orders',
      'handler',
      'commit to bus',
      'bus to PROCESSED',
      'commit to PROCESSED',
    ],
    rows: figures.map(({ handler, toBus, busToProcessed, toProcessed, ...run }) => [
      run.system,
      `${rounded(run.ordersPerSecond)}${remark(run)}`,
      run.orders,
      ...[handler, toBus, busToProcessed, toProcessed].map(({ p50Ms, p99Ms }) => `${p50Ms} / ${p99Ms}`),
    ]),
  };
}

function remark({ keptUp, tooHigh }: Pick<LatencyFigure, 'keptUp' | 'tooHigh'>): string {
  if (tooHigh !== undefined)
    return tooHigh === null ? ' (more was not tried)' : ` (max; ${tooHigh} was too high)`;
  return keptUp ? '' : ' (the backlog grew)';
}

function rounded(rate: number): number {
  return Math.round(rate * 10) / 10;
}

function costAsJson({ payloadBytes, ...usd }: AtOnceCost) {
  const rounded = Object.entries(usd).map(([way, each]) => [`${way}Usd`, Math.round(each * 100) / 100]);
  return { payloadBytes, ...Object.fromEntries(rounded) };
}
