import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { DynamoDBDocumentClient, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import pMap from 'p-map';
import { clientSettings } from '../../lambdas/runtime/base/client-settings.ts';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { envelopeJson } from '../../lambdas/runtime/store/stored-envelope.ts';
import { argument } from '../child.ts';
import { relayPorts, streamBatch } from './measured-relay.ts';

/** The task of a fresh process. It works for a time whenever its parent says so, and answers with what it did. */
export interface CarryTask {
  /** `single` is the plain way: one PutEvents call and one update per event. */
  readonly path: 'stream' | 'sweep' | 'single';
  readonly concurrency: number;
  /** The number of records per stream batch. */
  readonly batch: number;
  /** When a batch was written, or when the stub's rows are due, in epoch milliseconds. */
  readonly now: number;
}

/** The parent's message: work for this time, in whole rounds. */
export interface CarryTurn {
  readonly forMs: number;
}

/** The result of a turn. */
export interface Carried {
  readonly events: number;
  readonly ms: number;
  readonly cpuMs: number;
}

const task = argument<CarryTask>();
const ports = relayPorts();

/** When the round began, which is `task.now` for it, so that the same rows are new, or due, again. */
let roundAt = Date.now();
const clock: Clock = { now: () => task.now + Date.now() - roundAt, sleep: systemClock.sleep };
const deps = { ...ports, clock, concurrency: task.concurrency };

/** Creates a round of work, which publishes events and returns their number. */
const rounds: Record<CarryTask['path'], () => Promise<() => Promise<number>>> = {
  stream: async () => {
    const batch = await streamBatch(task.batch, task.now);
    const handler = createRelayStream(deps);
    return async () => {
      const { batchItemFailures } = await handler(batch);
      return task.batch - batchItemFailures.length;
    };
  },
  sweep: async () => {
    const sweep = createRelaySweep(deps);
    return async () => {
      const report = await sweep({}, { getRemainingTimeInMillis: () => 55_000 });
      return report.published;
    };
  },
  single: async () => {
    const { Records } = await streamBatch(task.batch, task.now);
    // As a function without Mailroom has them, except for `clientSettings`, which spares them the SDK's logging.
    const documents = DynamoDBDocumentClient.from(new DynamoDBClient(clientSettings));
    const eventbridge = new EventBridgeClient({ logger: clientSettings.logger, maxAttempts: 1 });
    return async () => {
      await pMap(Records, ({ dynamodb }) => publishOne(documents, eventbridge, dynamodb?.NewImage ?? {}), {
        concurrency: task.concurrency,
      });
      return task.batch;
    };
  },
};

async function publishOne(
  documents: DynamoDBDocumentClient,
  eventbridge: EventBridgeClient,
  image: Readonly<Record<string, { readonly S?: string; readonly B?: string }>>,
): Promise<void> {
  const { PK, SK, source, type, envelope, encoding } = image;
  // The envelope may be compressed.
  const stored = envelopeJson({ envelope: envelope?.S ?? envelope?.B, encoding: encoding?.S });
  const Detail = stored.problem === undefined ? stored.json : undefined;
  const EventBusName = ports.config.busName;
  await eventbridge.send(
    new PutEventsCommand({ Entries: [{ EventBusName, Source: source?.S, DetailType: type?.S, Detail }] }),
  );
  await documents.send(
    new UpdateCommand({
      TableName: ports.config.tableName,
      Key: { PK: PK?.S, SK: SK?.S },
      UpdateExpression: 'SET #status = :published, publishedAt = :now',
      ConditionExpression: '#status = :pending',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':published': 'PUBLISHED', ':pending': 'PENDING', ':now': Date.now() },
    }),
  );
}

async function turn(round: () => Promise<number>, { forMs }: CarryTurn): Promise<Carried> {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  let events = 0;
  while (performance.now() - startedAt < forMs) {
    roundAt = Date.now();
    const published = await round();
    if (published === 0) throw new Error(`A round of the ${task.path} path published nothing`);
    events += published;
  }
  const { user, system } = process.cpuUsage(before);
  return { events, ms: performance.now() - startedAt, cpuMs: (user + system) / 1_000 };
}

const round = await rounds[task.path]();
process.on('message', async (wanted: CarryTurn) => process.send?.(await turn(round, wanted)));
