import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { z } from 'zod';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { defineEvent } from '../../lambdas/runtime/event.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo-table.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/rows.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { createOutbox } from '../../lambdas/runtime/write/outbox.ts';
import { producerConfig } from '../../testing/index.ts';
import { chunks } from '../alternatives/queue-delivery.ts';
import { receiptTable } from '../alternatives/receipts.ts';
import type { System } from '../alternatives/system.ts';
import { EVENT, orderId, orderRow, payload, SOURCE } from '../alternatives/workload.ts';
import type { MeteredAws } from '../aws/metered-aws.ts';
import { fixedRandom, RELAY_CONFIG, silent, TABLE } from '../cost/settings.ts';

/** How it is kept in mind what was published. */
export interface Variant {
  readonly name: string;
  /** After how many days TTL may delete a row that has a receipt. Absent for marks. */
  readonly bornDays?: number;
}

/** What a publishing function is made of. @param onPage - told of every page of items that DynamoDB hands over */
export function partsOf(
  aws: MeteredAws,
  { bornDays }: Variant,
  onPage: (items: readonly Item[]) => void = () => {},
) {
  const { clock } = aws;
  const random = fixedRandom();
  const dynamo = dynamoTable({ client: new DynamoDBClient(aws.client), tableName: TABLE });
  const plain: Table = {
    ...dynamo,
    query: async (query) => {
      const page = await dynamo.query(query);
      onPage(page.items);
      return page;
    },
  };
  const table = bornDays === undefined ? plain : receiptTable(plain, { clock, random, bornDays });
  const bus = eventBridgeBus({ client: new EventBridgeClient(aws.client), busName: RELAY_CONFIG.busName });
  return { clock, random, table, bus, telemetry: silent, config: RELAY_CONFIG };
}

const OrderPlaced = defineEvent({ ...EVENT, schema: z.object({ orderId: z.string(), note: z.string() }) });

/** The real outbox and stream handler; nobody consumes. */
export function outboxSide(variant: Variant): System {
  return {
    name: variant.name,
    promise: { publishes: 'at least once', effects: 'exactly once' },
    tables: [{ name: TABLE, keys: ['PK', 'SK'] }],
    run: async (aws, { events, payloadBytes, batchSize }) => {
      const parts = partsOf(aws, variant);
      const config = producerConfig({ service: SOURCE, tableName: TABLE });
      const outbox = createOutbox({ ...parts, config });
      const relayStream = createRelayStream(parts);
      const indexes = Array.from({ length: events }, (_, index) => index);
      for (const batch of chunks(indexes, batchSize)) {
        for (const index of batch) {
          const data = payload(index, payloadBytes);
          const event = OrderPlaced.create({ aggregateId: orderId(index), data });
          const commit = { writes: [{ Put: { Item: orderRow(index) } }], events: [event] };
          await aws.during('write', () => outbox.commit(commit));
        }
        const isEvent = (keys: Record<string, { S?: string }> = {}) => keys.PK?.S?.startsWith(OUTBOX_PREFIX);
        const Records = aws.takeInserts(TABLE).filter(({ dynamodb }) => isEvent(dynamodb?.Keys));
        await aws.during('relay', () => relayStream({ Records }));
        aws.book('lambda', 'Invoke', 1);
      }
    },
  };
}
