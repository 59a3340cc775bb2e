import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { ABOVE_MIN_BYTES } from '../../lambdas/runtime/base/payload-config.ts';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { type Commit, createOutbox, nextVersion } from '../../lambdas/runtime/index.ts';
import { createAtOncePublisher } from '../../lambdas/runtime/internals.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { eventIdTime } from '../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { s3Payloads } from '../../lambdas/runtime/store/s3-payloads.ts';
import { eventBridgeMessage, memoryTelemetry, producerConfig } from '../../testing/index.ts';
import { fixedRandom, orderId, orderRow, payload, SOURCE, type Workload } from '../alternatives/workload.ts';
import type { MeteredAws } from '../aws/metered-aws.ts';
import { type ConsumerVariant, consumersOf, NumberedOrderPlaced, OrderPlaced } from './mailroom-consumers.ts';
import { RELAY_CONFIG, SWEEP_TIMEOUT_MS, TABLE } from './sweep-minute.ts';

/** Default settings of a producer, as the constructs pass them. */
const PRODUCER_CONFIG = producerConfig({ service: SOURCE, tableName: TABLE });

/** Every payload above the smallest threshold is an object. */
const PAYLOAD_CONFIG = { bucket: 'payloads', aboveBytes: ABOVE_MIN_BYTES, aheadDays: 30, inline: [] };

/** The time from the commit of a scheduled event to its due time, milliseconds. */
const DELAY_MS = 60 * MINUTE_MS;

/** The differences between the runs. */
export interface MailroomVariant extends ConsumerVariant {
  /** Creates a payload whose JSON has exactly this many bytes. @default a realistic order */
  readonly payloadOf?: (index: number, bytes: number) => { readonly orderId: string; readonly note: string };
  /** The publisher of the events. `both`: a relay that does not know that the producer publishes. @default 'relay' */
  readonly publisher?: 'relay' | 'producer' | 'both';
  /** The payloads are objects in S3. @default the rows carry them */
  readonly payloadsInS3?: boolean;
  /** Each event has a `uniqueBy`. @default none has */
  readonly isUnique?: boolean;
  /** The events are scheduled, and become due or are cancelled. @default they are ordinary */
  readonly schedule?: 'due' | 'cancelled' | 'cancelled in a transaction';
}

/** The parts of one run, and the AWS services between them. */
export function createFlow(aws: MeteredAws, workload: Workload, variant: MailroomVariant) {
  const { publisher = 'relay', schedule, payloadsInS3 } = variant;
  const { clock } = aws;
  const { busName, publishedRetentionDays } = RELAY_CONFIG;
  const table = dynamoTable({ client: new DynamoDBClient(aws.client), tableName: TABLE });
  const bus = eventBridgeBus({ client: new EventBridgeClient(aws.client), busName });
  const payloads = payloadsInS3
    ? s3Payloads({ client: aws.objects.client, config: PAYLOAD_CONFIG })
    : undefined;
  const parts = { table, clock, random: fixedRandom(), telemetry: memoryTelemetry(), payloads };
  const atOnce = { busName, publishedRetentionDays, timeoutMs: 1_000 };
  const publishAtOnce = publisher === 'relay' ? undefined : createAtOncePublisher({ config: atOnce, bus });
  const outbox = createOutbox({ ...parts, config: PRODUCER_CONFIG, publishAtOnce });
  const relayStream = createRelayStream({ ...parts, bus, config: RELAY_CONFIG });
  const sweepPass = createSweepPass({
    ...parts,
    config: RELAY_CONFIG,
    // Its reads are standing costs; its claims, publishes and marks are those of the events.
    table: { ...table, updateEach: (updates) => aws.during('sweep', () => table.updateEach(updates)) },
    bus: { put: (...put) => aws.during('sweep', () => bus.put(...put)) },
  });
  const consumers = consumersOf(aws, parts, workload, variant);

  return {
    /** @returns the ids of the events */
    write: async (indexes: readonly number[]): Promise<string[]> => {
      const eventIds: string[] = [];
      for (const index of indexes) {
        const envelopes = await outbox.commit(orderCommit(index, workload, variant, clock.now()));
        eventIds.push(...envelopes.map(({ eventId }) => eventId));
        await clock.sleep(1);
      }
      return eventIds;
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
    /** Waits until the events are due, and runs the pass of the sweep that reads their minute for the first time. */
    sweepDue: async (eventIds: readonly string[]) => {
      const dueAt = Math.max(...eventIds.map(eventIdTime));
      await clock.sleep(dueAt + 2 * MINUTE_MS - clock.now());
      const sweptTo = clock.now() - 2 * MINUTE_MS;
      aws.seed(TABLE, [{ ...SWEEP_STATE_KEY, schema: SCHEMA, sweptTo, shards: RELAY_CONFIG.shards }]);
      const { published } = await sweepPass(clock.now() + SWEEP_TIMEOUT_MS);
      if (published !== eventIds.length)
        throw new Error(`The sweep published ${published} of ${eventIds.length} events`);
    },
    /** Cancels the events, one per call. */
    cancel: async (eventIds: readonly string[]) => {
      for (const eventId of eventIds) {
        if (schedule !== 'cancelled') await outbox.commit({ writes: [outbox.cancellation(eventId)] });
        else if ((await outbox.cancel(eventId)) !== 'cancelled')
          throw new Error('An event was not cancelled');
      }
    },
    consume: async () => {
      const publishedAt = clock.now();
      const bodies = aws
        .takePublished()
        .map(({ Source: source, DetailType: detailType, Detail: detail }, n) =>
          eventBridgeMessage({ source, detailType, detail, id: `published-${n}`, publishedAt }),
        );
      for (const consumer of consumers) {
        for (const body of bodies) consumer.send(body);
        await consumer.drain();
      }
    },
  };
}

/** The commit of a new order: for ordered consumers, the row's version is the sequence of the event. */
function orderCommit(
  index: number,
  { payloadBytes }: Workload,
  { payloadOf = payload, order, schedule, isUnique = false }: MailroomVariant,
  now: number,
): Commit {
  const [aggregateId, data] = [orderId(index), payloadOf(index, payloadBytes)];
  const put = { Put: { Item: orderRow(index) } };
  if (order !== undefined) {
    const { write, version: sequence } = nextVersion(put, { row: undefined });
    return { writes: [write], events: [NumberedOrderPlaced.create({ aggregateId, data, sequence })] };
  }
  const deliverAt = schedule === undefined ? undefined : now + DELAY_MS;
  const uniqueBy = isUnique ? aggregateId : undefined;
  return { writes: [put], events: [OrderPlaced.create({ aggregateId, data, deliverAt, uniqueBy })] };
}
