import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { DynamoDBDocumentClient, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import pMap from 'p-map';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { envelopeJson } from '../../lambdas/runtime/store/stored-envelope.ts';
import { answer, relayPorts, roundClock } from './ports.ts';
import { streamBatch } from './stream-batch.ts';

/** The task of a fresh process. */
export interface CarryTask {
  /** `single` is the plain way: one PutEvents call and one update per event. */
  readonly path: 'stream' | 'sweep' | 'single';
  readonly concurrency: number;
  /** The number of records per stream batch. */
  readonly batch: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** When a batch was written, or when the stub's rows are due, in epoch milliseconds. */
  readonly now: number;
}

/** The result. */
export interface Carried {
  readonly eventsPerSecond: number;
  readonly cpuMsPerEvent: number;
}

const task = JSON.parse(process.argv[2] ?? '') as CarryTask;
const { dynamodb, eventbridge, deps } = relayPorts();
const clock = roundClock(task.now);
const handlerDeps = { ...deps, clock, concurrency: task.concurrency };

/** Creates a round of work, which publishes events and returns their number. */
const rounds: Record<CarryTask['path'], () => Promise<() => Promise<number>>> = {
  stream: async () => {
    const batch = await streamBatch(task.batch, task.now);
    const handler = createRelayStream(handlerDeps);
    return async () => {
      const { batchItemFailures } = await handler(batch);
      return task.batch - batchItemFailures.length;
    };
  },
  sweep: async () => {
    const sweep = createRelaySweep(handlerDeps);
    return async () => {
      const report = await sweep({}, { getRemainingTimeInMillis: () => 55_000 });
      return report.published;
    };
  },
  single: async () => {
    const { Records } = await streamBatch(task.batch, task.now);
    const documents = DynamoDBDocumentClient.from(dynamodb);
    return async () => {
      await pMap(Records, (record) => publishOne(documents, record.dynamodb?.NewImage ?? {}), {
        concurrency: task.concurrency,
      });
      return task.batch;
    };
  },
};

async function publishOne(
  documents: DynamoDBDocumentClient,
  image: Readonly<Record<string, { readonly S?: string }>>,
): Promise<void> {
  const { PK, SK, source, type } = image;
  const { busName, tableName } = deps.config;
  await eventbridge.send(
    new PutEventsCommand({
      Entries: [{ EventBusName: busName, Source: source?.S, DetailType: type?.S, Detail: detailOf(image) }],
    }),
  );
  await documents.send(
    new UpdateCommand({
      TableName: tableName,
      Key: { PK: PK?.S, SK: SK?.S },
      UpdateExpression: 'SET #status = :published, publishedAt = :now',
      ConditionExpression: '#status = :pending',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':published': 'PUBLISHED', ':pending': 'PENDING', ':now': Date.now() },
    }),
  );
}

async function run(round: () => Promise<number>, forMs: number): Promise<{ events: number; ms: number }> {
  const startedAt = performance.now();
  let events = 0;
  while (performance.now() - startedAt < forMs) {
    clock.putBack();
    const published = await round();
    if (published === 0) throw new Error(`A round of the ${task.path} path published nothing`);
    events += published;
  }
  return { events, ms: performance.now() - startedAt };
}

const round = await rounds[task.path]();
await run(round, task.warmUpMs);
const before = process.cpuUsage();
const { events, ms } = await run(round, task.measureMs);
const { user, system } = process.cpuUsage(before);
const carried: Carried = {
  eventsPerSecond: Math.round((events / ms) * 1_000),
  cpuMsPerEvent: Number(((user + system) / 1_000 / events).toFixed(3)),
};
answer(carried);

/** The envelope, which may be compressed. */
function detailOf({
  envelope,
  encoding,
}: Readonly<Record<string, { readonly S?: string; readonly B?: string }>>) {
  const stored = envelopeJson({ envelope: envelope?.S ?? envelope?.B, encoding: encoding?.S });
  return stored.problem === undefined ? stored.json : undefined;
}
