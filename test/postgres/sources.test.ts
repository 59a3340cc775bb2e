import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { RetryLater } from '../../lambdas/runtime/base/errors.ts';
import { type Handler, leased } from '../../lambdas/runtime/consume/handler.ts';
import type { DatabaseHandler } from '../../lambdas/runtime/database/database-handlers.ts';
import type { PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresInboxProcessor } from '../../lambdas/runtime/postgres/postgres-consumer.ts';
import { postgresHandlers } from '../../lambdas/runtime/postgres/postgres-handlers.ts';
import type { DecodeBody } from '../../lambdas/runtime/sources/body-decoder.ts';
import { createInboxProcessor, type InboxProcessor } from '../../lambdas/runtime/sources/inbox-processor.ts';
import { consumeJetStream } from '../../lambdas/runtime/sources/jet-stream-consumer.ts';
import { kafkaRun } from '../../lambdas/runtime/sources/kafka-consumer.ts';
import type { MessageAnswer } from '../../lambdas/runtime/sources/message-answer.ts';
import { consumeRabbit } from '../../lambdas/runtime/sources/rabbit-consumer.ts';
import { createSourceHandler } from '../../lambdas/runtime/sources/source-handler.ts';
import { lambdaContext, memoryTable, memoryTelemetry } from '../../testing/index.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { jetStreamDouble, rabbitDouble } from '../unit/runtime/sources/broker-doubles.ts';
import { kafkaDouble } from '../unit/runtime/sources/kafka-double.ts';
import { newEventId } from './consumer-parts.ts';
import { migratedPostgres, testOutbox } from './inbox-rig.ts';

/** A handler that runs a function for each event. */
type Make<H> = (handle: () => Promise<unknown>) => H;

/** An inbox in one storage, and its handlers. */
interface Storage<H> {
  readonly inbox: InboxProcessor<H>;
  readonly make: Make<H>;
}

/** A loop of one broker, whose messages are those of a test. */
interface TestedLoop {
  /** Delivers one message. */
  send(body: string): Promise<void> | void;
  /** The number of messages that the broker will not deliver again. */
  answered(): number;
  stop(): Promise<unknown>;
}

interface LoopOptions<H> {
  readonly inbox: InboxProcessor<H>;
  readonly handler: H | readonly H[];
  readonly deadLetter: (letter: { readonly id: string }) => Promise<unknown>;
}

/** Lambda repeats a batch at once, so its handler waits before; a test does not. */
const hurried = { ...systemClock, sleep: async () => {} };

/** Each loop, with any storage: that it compiles is a part of the test. */
const LOOPS = {
  JetStream: async <H>(options: LoopOptions<H>): Promise<TestedLoop> => {
    const { consumer, send, told } = jetStreamDouble();
    const loop = await consumeJetStream({ consumer, ...options });
    let seq = 0;
    return {
      send: (body) => {
        seq += 1;
        send(body, seq);
      },
      answered: () => told.filter((line) => /^(ack|term)/.test(line)).length,
      stop: () => loop.stop(),
    };
  },
  RabbitMQ: async <H>(options: LoopOptions<H>): Promise<TestedLoop> => {
    const { connection, send, told } = rabbitDouble();
    const loop = await consumeRabbit({ connection, queue: 'payments', ...options });
    let n = 0;
    return {
      send: (body) => {
        n += 1;
        send(body, `m${n}`);
      },
      answered: () => told.filter((line) => line.startsWith('ack')).length,
      stop: () => loop.stop(),
    };
  },
  Kafka: async <H>(options: LoopOptions<H>): Promise<TestedLoop> => {
    const sent: [string][] = [];
    const { consumer, fetch, log } = kafkaDouble(sent);
    const run = kafkaRun({ consumer, ...options });
    return {
      send: async (body) => {
        sent.push([body]);
        await fetch(run);
      },
      answered: () => log.filter((line) => line.startsWith('resolve')).length,
      stop: () => run.stop(),
    };
  },
  Kinesis: async <H>(options: LoopOptions<H>): Promise<TestedLoop> => {
    const handle = createSourceHandler({ ...options, partialFailures: true, clock: hurried });
    let [n, answered] = [0, 0];
    return {
      send: async (body) => {
        n += 1;
        const record = {
          eventSource: 'aws:kinesis',
          eventID: `shard:${n}`,
          eventSourceARN: 'arn:aws:kinesis:eu-west-1:123456789012:stream/orders',
          kinesis: {
            partitionKey: 'a',
            data: Buffer.from(body).toString('base64'),
            sequenceNumber: String(n),
            approximateArrivalTimestamp: Date.now() / 1_000,
          },
        };
        const { batchItemFailures } = await handle({ Records: [record] }, lambdaContext({}));
        answered += batchItemFailures.length === 0 ? 1 : 0;
      },
      answered: () => answered,
      stop: async () => {},
    };
  },
};

const config = { ...consumerConfig, leaseMs: 60_000 };

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;
beforeAll(async () => {
  postgres = await migratedPostgres('sources');
});
afterAll(() => postgres.close());
beforeEach(() => postgres.database.query('TRUNCATE mailroom.inbox, mailroom.effect, mailroom.event'));

const dynamo = (read?: DecodeBody): Storage<Handler> => ({
  inbox: createInboxProcessor({
    config,
    table: memoryTable(),
    telemetry: memoryTelemetry(),
    decode: read,
  }),
  make: (handle) => leased(ThingHappened, handle),
});

const relational = (read?: DecodeBody): Storage<DatabaseHandler<PgClient>> => ({
  inbox: createPostgresInboxProcessor({
    config,
    database: postgres.database,
    outbox: testOutbox,
    telemetry: memoryTelemetry(),
    decode: read,
  }),
  make: (handle) => postgresHandlers(postgres.database).leased(ThingHappened, handle),
});

/** The JSON of a new event, as a bridge sends it. */
function eventText(): string {
  return JSON.stringify({
    eventId: newEventId(),
    type: 'ThingHappened',
    version: 2,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    correlationId: 'chain',
    occurredAt: Date.now(),
    data: { n: 1 },
  });
}

function suite<H>(
  open: (read?: DecodeBody) => Storage<H>,
  start: (options: LoopOptions<H>) => Promise<TestedLoop>,
) {
  const started = async (handle: () => Promise<unknown>, read?: DecodeBody) => {
    const { inbox, make } = open(read);
    const answers: MessageAnswer[] = [];
    const letters: string[] = [];
    const watched: InboxProcessor<H> = {
      consumer: inbox.consumer,
      handles: (handler) => inbox.handles(handler),
      process: async (...message) => {
        const answer = await inbox.process(...message);
        answers.push(answer);
        return answer;
      },
    };
    const deadLetter = async ({ id }: { readonly id: string }) => letters.push(id);
    const loop = await start({ inbox: watched, handler: [make(handle)], deadLetter });
    const deliver = async (body: string) => {
      const before = answers.length;
      await loop.send(body);
      await vi.waitFor(() => expect(answers).toHaveLength(before + 1), 60_000);
    };
    return { deliver, answers, letters, loop };
  };

  test('an event is done once, and a duplicate after that', async () => {
    const handle = vi.fn(async () => {});
    const { deliver, answers, letters, loop } = await started(handle);
    const body = eventText();
    await deliver(body);
    await deliver(body);
    await loop.stop();
    expect(answers.map(({ kind }) => kind)).toEqual(['done', 'duplicate']);
    expect(handle).toHaveBeenCalledTimes(1);
    expect([loop.answered(), letters]).toEqual([2, []]);
  });

  test('a body that cannot be read becomes a dead letter', async () => {
    const handle = vi.fn(async () => {});
    const { deliver, letters, loop } = await started(handle);
    await deliver('x');
    await deliver(eventText());
    await loop.stop();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(letters).toHaveLength(1);
    expect(loop.answered()).toBe(2);
  });

  test('a retry is not acknowledged, and its message is not a dead letter', async () => {
    const { deliver, answers, letters, loop } = await started(async () => {
      throw new RetryLater(60_000);
    });
    await deliver(eventText());
    await loop.stop();
    expect(answers).toMatchObject([{ kind: 'retry', afterMs: 60_000 }]);
    expect([loop.answered(), letters]).toEqual([0, []]);
  });

  test('decode reads the body, and skips a message', async () => {
    const handle = vi.fn(async () => {});
    const { deliver, answers, letters, loop } = await started(handle, async ({ body }) => {
      const text = Buffer.from(body ?? '').toString();
      return text === 'skip' ? undefined : Buffer.from(text, 'base64');
    });
    await deliver('skip');
    await deliver(Buffer.from(eventText()).toString('base64'));
    await loop.stop();
    expect(answers.map(({ kind }) => kind)).toEqual(['done', 'done']);
    expect(handle).toHaveBeenCalledTimes(1);
    expect([loop.answered(), letters]).toEqual([2, []]);
  });

  test('handlers that cannot be used are refused at the start', async () => {
    const { inbox, make } = open();
    const handler = make(async () => {});
    await expect(
      start({ inbox, handler: [handler, handler], deadLetter: async () => {} }),
    ).rejects.toMatchObject({ code: 'BAD_CONSUMER' });
  });
}

describe.each(['JetStream', 'RabbitMQ', 'Kafka', 'Kinesis'] as const)('%s', (name) => {
  describe('with an inbox in DynamoDB:', () => suite(dynamo, LOOPS[name]));
  describe('with an inbox in PostgreSQL:', () => suite(relational, LOOPS[name]));
});

test('a loop does not take the handlers of another storage', () => {
  const deadLetter = async () => {};
  const { consumer } = kafkaDouble([]);
  const inTable = { inbox: dynamo().inbox, handler: relational().make(deadLetter) };
  // @ts-expect-error: a table in DynamoDB has no transaction of a database
  expect(kafkaRun({ consumer, ...inTable, deadLetter })).toBeDefined();
});
