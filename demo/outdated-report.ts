import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { StockReleased, StockReserved } from '../lambdas/example/events.ts';
import { dynamoTable } from '../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { createOutbox } from '../lambdas/runtime/store/dynamo/outbox.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import { type Readings, required } from './readings.ts';

/** Publishes an outdated report. @returns its event id; none if there is no such order yet, or it was published before */
export type OutdatedReport = (readings: Pick<Readings, 'events' | 'inbox'>) => Promise<string[]>;

/**
 * Creates a function that publishes one outdated report of inventory, as a faulty restore of its data would: the items of an order are
 * reserved, after order-status has applied that they are released. It has the number of the first report, and its own id, so only the
 * order of the consumer absorbs it. The SDK client takes the endpoint from the environment.
 */
export function createOutdatedReport(outputs: Outputs): OutdatedReport {
  const tableName = required(outputs, 'TableName');
  const outbox = createOutbox({
    config: { service: StockReserved.source, tableName, shards: 1, bornLeaseMs: 30_000 },
    table: dynamoTable({ client: new DynamoDBClient({}), tableName }),
  });
  let isPublished = false;
  return async ({ events, inbox }) => {
    if (isPublished) return [];
    const isApplied = (eventId: string) => inbox['order-status'].get(eventId)?.status === 'PROCESSED';
    const released = new Set(
      events
        .filter(({ envelope: { type, eventId } }) => type === StockReleased.type && isApplied(eventId))
        .map(({ envelope }) => envelope.aggregateId),
    );
    const reserved = events.find(
      ({ envelope: { type, aggregateId } }) => type === StockReserved.type && released.has(aggregateId),
    )?.envelope;
    if (reserved === undefined) return [];
    isPublished = true;
    const { aggregateId, correlationId, sequence = 1 } = reserved;
    const data = reserved.data as { readonly orderId: string };
    const report = StockReserved.create({ aggregateId, correlationId, sequence, data });
    const made = await outbox.commit({ events: [report] });
    return made.map(({ eventId }) => eventId);
  };
}
