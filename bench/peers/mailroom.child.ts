import type { DynamoDBRecord } from 'aws-lambda';
import { z } from 'zod/mini';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { createOutbox } from '../../lambdas/runtime/outbox/outbox.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import { producerConfig } from '../../testing/index.ts';
import { chunks } from '../alternatives/queue-delivery.ts';
import { EVENT, orderId, orderRow, payload, SOURCE } from '../alternatives/workload.ts';
import { answer, argument } from '../child.ts';
import { relayPorts } from '../relay/measured-relay.ts';
import { type Carrier, control, measureCarrier, type PeerTask } from './carried.ts';

/** The construct's default number of records per stream batch. */
const BATCH_SIZE = 100;

const OrderPlaced = defineEvent({ ...EVENT, schema: z.looseObject({ orderId: z.string() }) });

const ports = relayPorts();
const { tableName } = ports.config;
const outbox = createOutbox({ table: ports.table, config: producerConfig({ service: SOURCE, tableName }) });
const relayStream = createRelayStream(ports);

/** Mailroom as deployed: its outbox, and its stream relay, invoked with one batch after the other as by one stream shard. */
const mailroom: Carrier = {
  write: async (index, payloadBytes) => {
    const event = OrderPlaced.create({ aggregateId: orderId(index), data: payload(index, payloadBytes) });
    await outbox.commit({ writes: [{ Put: { Item: orderRow(index) } }], events: [event] });
  },
  relay: async () => {
    const { Records } = await control<{ Records: DynamoDBRecord[] }>('Inserts', { table: tableName });
    // The mapping's filter passes new outbox rows only.
    const isEvent = ({ dynamodb }: DynamoDBRecord) => dynamodb?.Keys?.PK?.S?.startsWith(OUTBOX_PREFIX);
    for (const batch of chunks(Records.filter(isEvent), BATCH_SIZE)) {
      const { batchItemFailures } = await relayStream({ Records: batch });
      if (batchItemFailures.length > 0) throw new Error('The relay returned failed events');
    }
  },
};

answer(await measureCarrier(mailroom, argument<PeerTask>()));
