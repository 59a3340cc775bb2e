import { randomUUID } from 'node:crypto';
import { BatchWriteCommand, DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import pMap from 'p-map';
import { createReader, required } from '../../../demo/readings.ts';
import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { stockRow } from '../../../lambdas/example/inventory/stock.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import { createOutbox, dynamoTable, type Item } from '../../../lambdas/runtime/index.ts';
import { eventIdShard, mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { deadKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import type { Outputs } from '../../../localstack/cdk-process.ts';
import { callFunctionUrl } from '../../../localstack/function-url.ts';
import { producerConfig } from '../../../testing/index.ts';
import { dynamoClient } from '../../support/aws.ts';
import { envelopeOf } from '../../support/envelope-of.ts';

/** The most items of one BatchWriteItem (DynamoDB quotas). */
const BATCH_MAX = 25;

/** The stored texts of an event that was refused by the bus. */
interface DeadTexts {
  readonly type: string;
  readonly source: string;
  readonly lastError: string;
  readonly fingerprint: string;
  readonly customerId: string;
}

/** Writes what the screens show into a deployed order system. */
export interface Seeds {
  /** Places an order whose charges the bank fails, so that payments rejects it. @returns the id of its `OrderPlaced` */
  placeFailingOrder(): Promise<string>;
  /** Schedules an event. @returns its id, and a function that cancels it */
  schedule(inMs: number): Promise<{ readonly eventId: string; readonly cancel: () => Promise<unknown> }>;
  /** Writes DEAD events, as the relay does. @returns their ids */
  writeDead(count: number, texts?: Partial<DeadTexts>): Promise<string[]>;
}

/** Creates the seeds of a deployed order system. */
export function createSeeds({ endpoint, outputs }: { endpoint: string; outputs: Outputs }): Seeds {
  const documents = DynamoDBDocumentClient.from(dynamoClient(endpoint));
  const tableName = required(outputs, 'TableName');
  const table = dynamoTable({ client: dynamoClient(endpoint), tableName });
  const outbox = createOutbox({ config: producerConfig({ service: 'orders', tableName }), table });

  async function writeAll(items: readonly Item[]): Promise<void> {
    const batches = Array.from({ length: Math.ceil(items.length / BATCH_MAX) }, (_, n) =>
      items.slice(n * BATCH_MAX, (n + 1) * BATCH_MAX),
    );
    await pMap(
      batches,
      async (batch) => {
        const puts = batch.map((Item) => ({ PutRequest: { Item: { ...Item } } }));
        const { UnprocessedItems = {} } = await documents.send(
          new BatchWriteCommand({ RequestItems: { [tableName]: puts } }),
        );
        if (Object.keys(UnprocessedItems).length > 0) throw new Error('The engine left items unwritten');
      },
      { concurrency: 8 },
    );
  }

  return {
    placeFailingOrder: async () => {
      const sku = 'for-a-failing-charge';
      await documents.send(new PutCommand({ TableName: tableName, Item: stockRow(sku, 1_000) }));
      const url = new URL('orders', required(outputs, 'OrdersUrl'));
      const { status, text } = await callFunctionUrl(endpoint, url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': mintEventId(Date.now(), 1) },
        body: JSON.stringify({ customerId: 'fail-9', items: [{ sku, quantity: 1, unitPrice: 100 }] }),
      });
      if (status !== 201) throw new Error(`The orders API answered ${status}: ${text}`);
      const { orderId } = JSON.parse(text) as { orderId: string };
      const { events } = await createReader(outputs).read('fail-9');
      const placed = events.find(
        ({ envelope }) => envelope.type === OrderPlaced.type && envelope.aggregateId === orderId,
      );
      if (placed === undefined) throw new Error(`Order ${orderId} has no event`);
      return placed.envelope.eventId;
    },
    schedule: async (inMs) => {
      const orderId = randomUUID();
      const items = [{ sku: 'a-sku', quantity: 1, unitPrice: 100 }];
      const data = { orderId, customerId: 'a-customer', items, totalCents: 100 };
      const deliverAt = Date.now() + inMs;
      const due = OrderPlaced.create({ aggregateId: orderId, data, deliverAt });
      const [event] = await outbox.commit({ events: [due] });
      const eventId = event?.eventId ?? '';
      return { eventId, cancel: () => outbox.cancel(eventId) };
    },
    writeDead: async (count, texts = {}) => {
      const {
        type = OrderPlaced.type,
        source = 'orders',
        lastError = 'MalformedDetail: Detail is malformed.',
        fingerprint = 'MalformedDetail: Detail is malformed.',
        customerId = 'a-customer',
      } = texts;
      const orderId = randomUUID();
      const items = [{ sku: 'a-sku', quantity: 1, unitPrice: 100 }];
      const data = { orderId, customerId: 'a-customer', items, totalCents: 100 };
      const [entry] = await outbox.entries([OrderPlaced.create({ aggregateId: orderId, data })]);
      const row = entry?.Put.Item ?? {};
      // No writer of the library stores such data: another holder of the table could.
      const envelope: Envelope = { ...envelopeOf(row), type, data: { ...data, customerId } };
      const now = Date.now();
      const ids = Array.from({ length: count }, () => mintEventId(now, 8));
      const rows = ids.flatMap((eventId) => [
        {
          ...row,
          ...outboxKeyOf(eventId),
          ...{ source, type, lastError, fingerprint, attempts: 1, status: 'DEAD', deadAt: now },
          envelope: JSON.stringify({ ...envelope, eventId }),
        },
        {
          ...deadKey(eventIdShard(eventId), eventId),
          ...{ schema: SCHEMA, deadAt: now, type, lastError, fingerprint },
        },
      ]);
      await writeAll(rows as Item[]);
      return ids;
    },
  };
}
