import { Kafka, logLevel } from 'kafkajs';
import { z } from 'zod';
import { runMailroom } from '../../cli/program.ts';
import { defineEvent, type EventDraft, leased } from '../../lambdas/runtime/index.ts';
import { createInboxProcessor, kafkaRun, readInboxConfig } from '../../lambdas/runtime/sources.ts';
import { poll } from '../../localstack/health.ts';
import { memoryTable, memoryTelemetry } from '../../testing/index.ts';
import type { Counted } from '../brokers/receipts.ts';
import { capturedIo } from '../support/captured-io.ts';
import type { Connector, ConnectWorker } from './connect-worker.ts';

export const DEADLINE_MS = 300_000;

/** The producer of these tests. */
export const PRODUCER = { service: 'orders', tableName: 'Mailroom', publishes: ['Placed'] };

const Placed = defineEvent({
  source: 'orders',
  type: 'Placed',
  version: 1,
  aggregateType: 'order',
  schema: z.object({ n: z.number() }),
});

/** The producer's outbox and its table in a database. */
export interface Transactions<Tx> {
  /** As that of the outbox. */
  readonly commit: (run: (tx: Tx) => Promise<readonly EventDraft[]>) => Promise<readonly Written[]>;
  readonly write: (tx: Tx, events: readonly EventDraft[]) => Promise<unknown>;
  /** Inserts a row of the application. */
  readonly insert: (tx: Tx, id: number) => Promise<unknown>;
}

interface Written {
  readonly eventId: string;
  readonly aggregateId: string;
}

/** A producer that counts what it commits. */
export function producing<Tx>({ commit, write, insert }: Transactions<Tx>) {
  const sent: Counted[] = [];
  let next = 0;
  return {
    sent,
    /** Commits events of some aggregates in parallel, those of each one after another; every fifth transaction is rolled back. */
    produce: async (each: number, aggregates = 10) => {
      await Promise.all(
        Array.from({ length: aggregates }, async (_, aggregate) => {
          for (let n = 0; n < each; n += 1) {
            const draft = Placed.create({ aggregateId: `a${aggregate}`, data: { n } });
            next += 1;
            const id = next;
            const isRolledBack = id % 5 === 0;
            const written = commit(async (tx) => {
              await insert(tx, id);
              if (isRolledBack) {
                await write(tx, [draft]);
                throw new Error('rolled back');
              }
              return [draft];
            });
            const [event] = await (isRolledBack ? written.catch(() => []) : written);
            if (event !== undefined) sent.push({ id: event.eventId, key: event.aggregateId });
          }
        }),
      );
    },
  };
}

/** The connector that `cdc config` prints for a database. */
export async function connectorOf(database: string, name: string): Promise<Connector> {
  const { io, written } = capturedIo();
  await runMailroom(['cdc', 'config', '--database', database, '--name', name], io);
  return JSON.parse(written.out) as Connector;
}

/** A client of the broker, after it has created the topic of orders with three partitions. */
export async function topicOf(kafka: string, name: string) {
  const topic = `${name}.order`;
  const client = new Kafka({ brokers: [kafka], logLevel: logLevel.NOTHING });
  const topics = client.admin();
  await topics.connect();
  await topics.createTopics({ topics: [{ topic, numPartitions: 3 }] });
  await topics.disconnect();
  return { name, client, topic };
}

/** A consumer with an inbox, and the effects of its handler in their order. */
export async function consuming(
  { client, topic, name }: Awaited<ReturnType<typeof topicOf>>,
  connect: ConnectWorker,
) {
  const effects: Counted[] = [];
  let deliveries = 0;
  const env = { MAILROOM_CONSUMER: name, MAILROOM_SERVICE: 'shipping', MAILROOM_TABLE: 'Mailroom' };
  const inbox = createInboxProcessor({
    config: readInboxConfig(env),
    table: memoryTable(),
    telemetry: memoryTelemetry(),
  });
  const dead: string[] = [];
  const consumer = client.consumer({ groupId: name });
  const run = kafkaRun({
    consumer,
    inbox: {
      ...inbox,
      process: (...message) => {
        deliveries += 1;
        return inbox.process(...message);
      },
    },
    handler: leased(Placed, async ({ eventId: id, aggregateId: key }) => {
      effects.push({ id, key });
    }),
    deadLetter: async ({ reason }) => dead.push(reason.message),
    concurrency: 10,
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run(run);
  return {
    effects,
    dead,
    deliveries: () => deliveries,
    until: async (count: number) => {
      const done = await poll(DEADLINE_MS, async () => effects.length >= count || undefined);
      if (!done)
        throw new Error(
          `${effects.length} of ${count} effects; dead: ${dead.slice(0, 3).join('; ')}; ${JSON.stringify(await connect.state(name))}`,
        );
    },
    stop: async () => {
      await run.stop();
      await consumer.disconnect();
    },
  };
}
