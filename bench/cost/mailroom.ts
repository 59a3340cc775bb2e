import { createHash } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { z } from 'zod';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import {
  createAtOncePublisher,
  createConsumer,
  createOutbox,
  defineEvent,
  type Handler,
  leased,
  transactional,
} from '../../lambdas/runtime/index.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo-table.ts';
import { inboxHistoryKey, OUTBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/rows.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import {
  consumerConfig,
  eventBridgeMessage,
  memoryQueue,
  memoryTelemetry,
  producerConfig,
} from '../../testing/index.ts';
import { bookInvocation, bookSend, chunks } from '../alternatives/queue-delivery.ts';
import type { System } from '../alternatives/system.ts';
import {
  consumerNames,
  EVENT,
  fixedRandom,
  handledWrite,
  handlerFaults,
  isRetried,
  jumpingClock,
  orderId,
  orderRow,
  payload,
  SOURCE,
  type Workload,
} from '../alternatives/workload.ts';
import { createMeteredAws, type MeteredAws } from '../aws/metered-aws.ts';
import { RELAY_CONFIG, sweepMinute, TABLE } from './sweep-minute.ts';

/** Default settings of producer and consumer, as the constructs pass them. */
const PRODUCER_CONFIG = producerConfig({ service: SOURCE, tableName: TABLE });
const CONSUMER_CONFIG = consumerConfig({ service: SOURCE, tableName: TABLE, queueUrl: 'queue' });

const OrderPlaced = defineEvent({ ...EVENT, schema: z.object({ orderId: z.string(), note: z.string() }) });

/** The differences between the runs. */
interface MailroomVariant {
  /** The handler returns its write; commits it under its lease; or also makes one external call with `ctx.once`. */
  readonly handler: 'transactional' | 'leased' | 'leased, once';
  /** Creates a payload whose JSON has exactly this many bytes. @default a realistic order */
  readonly payloadOf?: (index: number, bytes: number) => { readonly orderId: string; readonly note: string };
  /** The publisher of the events. `both`: a relay that does not know that the producer publishes. @default 'relay' */
  readonly publisher?: 'relay' | 'producer' | 'both';
}

/** Mailroom as deployed, by handler: the real outbox, stream handler and consumer, with the SDK clients that they use in AWS. */
export const MAILROOM: Readonly<Record<MailroomVariant['handler'], System>> = {
  transactional: mailroom('mailroom (transactional)', { handler: 'transactional' }),
  leased: mailroom('mailroom (leased)', { handler: 'leased' }),
  'leased, once': mailroom('mailroom (leased, ctx.once)', { handler: 'leased, once' }),
};

/** Leased handlers, and payloads that hardly compress: random text. */
export const UNCOMPRESSED = mailroom('mailroom (leased, random text)', {
  handler: 'leased',
  payloadOf: randomText,
});

/** Transactional handlers, and a producer that publishes at once. */
export const AT_ONCE = mailroom('mailroom (transactional, at once)', {
  handler: 'transactional',
  publisher: 'producer',
});

/** As {@link AT_ONCE}, with a relay that publishes every event again. */
export const AT_ONCE_AGAIN = mailroom('mailroom (transactional, published again)', {
  handler: 'transactional',
  publisher: 'both',
});

function mailroom(name: string, variant: MailroomVariant): System {
  return {
    name,
    promise: { publishes: 'at least once', effects: 'exactly once' },
    tables: [{ name: TABLE, keys: ['PK', 'SK'] }],
    standing: sweepStanding,
    run: async (aws, workload) => {
      const flow = createFlow(aws, workload, variant);
      const indexes = Array.from({ length: workload.events }, (_, index) => index);
      for (const batch of chunks(indexes, workload.batchSize)) {
        await aws.during('write', () => flow.write(batch));
        aws.failNextEntries(batch.filter((index) => isRetried(workload, index)).length);
        await aws.during('relay', () => flow.relay());
        await aws.during('consume', () => flow.consume());
      }
    },
  };
}

/** The sweep does not depend on the handlers. */
async function sweepStanding(...[aws, load]: Parameters<NonNullable<System['standing']>>): Promise<number> {
  await sweepMinute(aws, await publishedRow(load.payloadBytes), load.eventsPerSecond);
  return 1;
}

/** A published outbox row. */
export async function publishedRow(payloadBytes: number): Promise<Item> {
  const aws = createMeteredAws(MAILROOM.transactional.tables, { clock: jumpingClock() });
  const workload = { events: 1, payloadBytes, consumers: 0, retries: 0, batchSize: 1 };
  await MAILROOM.transactional.run(aws, workload);
  const row = aws.items(TABLE).find(({ status }) => status === 'PUBLISHED');
  if (row) return row;
  throw new Error('The event was not published');
}

/** The parts of one run, and the AWS services between them. */
function createFlow(aws: MeteredAws, workload: Workload, variant: MailroomVariant) {
  const { handler, payloadOf = payload, publisher = 'relay' } = variant;
  const { clock } = aws;
  const { busName, publishedRetentionDays } = RELAY_CONFIG;
  const table = dynamoTable({ client: new DynamoDBClient(aws.client), tableName: TABLE });
  const bus = eventBridgeBus({ client: new EventBridgeClient(aws.client), busName });
  const parts = { table, clock, random: fixedRandom(), telemetry: memoryTelemetry() };
  const atOnce = { busName, publishedRetentionDays, timeoutMs: 1_000 };
  const publishAtOnce = publisher === 'relay' ? undefined : createAtOncePublisher({ config: atOnce, bus });
  const outbox = createOutbox({ ...parts, config: PRODUCER_CONFIG, publishAtOnce });
  const relayStream = createRelayStream({ ...parts, bus, config: RELAY_CONFIG });
  const faults = handlerFaults(workload);
  const consumers = consumerNames(workload).map((consumer) => {
    const queue = memoryQueue({ clock, visibilityTimeoutMs: CONSUMER_CONFIG.visibilityTimeoutMs });
    const handle = createConsumer({
      ...parts,
      table: ofRunningConsumer(table, consumer),
      config: { ...CONSUMER_CONFIG, consumer },
      queue: {
        changeVisibility: (receiptHandle, seconds) => {
          aws.book('sqs', 'ChangeMessageVisibility', 1);
          return queue.changeVisibility(receiptHandle, seconds);
        },
      },
      handlers: [handlerOf(handler, consumer, faults)],
    });
    return { queue, handle };
  });

  /** Delivers until the queue is empty. */
  async function drain({ queue, handle }: (typeof consumers)[number]): Promise<void> {
    for (let waiting = queue.messages(); waiting.length > 0; waiting = queue.messages()) {
      await clock.sleep(Math.min(...waiting.map(({ visibleAt }) => visibleAt)) - clock.now());
      let bodies: string[] = [];
      const { received, failed } = await queue.deliver(async (event, context) => {
        bodies = event.Records.map(({ body }) => body);
        return handle(event, context);
      });
      bookInvocation(aws, bodies, received - failed.length);
    }
  }

  return {
    write: async (indexes: readonly number[]) => {
      for (const index of indexes) {
        const data = payloadOf(index, workload.payloadBytes);
        const event = OrderPlaced.create({ aggregateId: orderId(index), data });
        await outbox.commit({ writes: [{ Put: { Item: orderRow(index) } }], events: [event] });
        await clock.sleep(1);
      }
    },
    relay: async () => {
      // The mapping's filter passes new outbox rows only.
      const isEvent = (keys: Record<string, { S?: string }> = {}) => keys.PK?.S?.startsWith(OUTBOX_PREFIX);
      const Records = aws.takeInserts(TABLE).filter(({ dynamodb }) => isEvent(dynamodb?.Keys));
      if (publisher === 'both') for (const { dynamodb } of Records) delete dynamodb?.NewImage?.producerUntil;
      const { batchItemFailures } = await relayStream({ Records });
      if (batchItemFailures.length > 0) throw new Error('The relay returned failed events');
      aws.book('lambda', 'Invoke', 1);
    },
    consume: async () => {
      const publishedAt = clock.now();
      const bodies = aws
        .takePublished()
        .map(({ Source: source, DetailType: detailType, Detail: detail }, n) =>
          eventBridgeMessage({ source, detailType, detail, id: `published-${n}`, publishedAt }),
        );
      for (const consumer of consumers) {
        for (const body of bodies) {
          bookSend(aws, body);
          consumer.queue.send(body);
        }
        await drain(consumer);
      }
    },
  };
}

/** The table without the read unit of the inbox history, which is a cost of a function's start and not of an event. */
function ofRunningConsumer(table: Table, consumer: string): Table {
  const key = inboxHistoryKey(consumer);
  const retentions = [{ days: CONSUMER_CONFIG.inboxRetentionDays, since: 0 }];
  const history = { ...key, schema: SCHEMA, retentions, changedAt: 0 };
  return {
    ...table,
    get: async (asked, options) => (asked.PK === key.PK ? history : table.get(asked, options)),
  };
}

/** A handler that writes one row per event, and fails once first if the workload says so. */
function handlerOf(
  kind: MailroomVariant['handler'],
  consumer: string,
  mayFail: (consumer: string, order: string) => void,
): Handler {
  const writes = (order: string) => [{ Update: handledWrite(consumer, order) }];
  if (kind === 'transactional') {
    return transactional(OrderPlaced, async ({ data }) => {
      mayFail(consumer, data.orderId);
      return { writes: writes(data.orderId) };
    });
  }
  return leased(OrderPlaced, async ({ data }, ctx) => {
    mayFail(consumer, data.orderId);
    if (kind === 'leased, once')
      await ctx.once('charge', async () => ({ chargeId: `charge-${data.orderId}` }));
    await ctx.commit({ writes: writes(data.orderId) });
  });
}

/** A payload of random characters, the same in every run: it compresses to four fifths at best. */
function randomText(index: number, bytes: number) {
  const empty = { orderId: orderId(index), note: '' };
  const count = bytes - JSON.stringify(empty).length;
  const random = createHash('shake256', { outputLength: count }).update(empty.orderId).digest();
  // From ] to ~, and from # to [: the 91 characters of ASCII that JSON does not escape.
  const codes = [...random].map((byte) => 35 + (byte % 91) + (byte % 91 < 57 ? 0 : 1));
  return { ...empty, note: String.fromCharCode(...codes) };
}
