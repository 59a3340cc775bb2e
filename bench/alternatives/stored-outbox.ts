import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { AttributeValue, DynamoDBRecord } from 'aws-lambda';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { BenchRun } from './composed-system.ts';
import { DOMAIN, orderRow, type StoredEvent, storedEvent } from './workload.ts';

/** The outbox's table, a separate one in every alternative. */
export const OUTBOX = 'outbox';

/** Seconds per day. */
export const DAY_S = 86_400;

/**
 * Places an order: its row and its event in one transaction.
 *
 * @param attributes - the attributes of the outbox row in addition to the event
 */
export async function writeOrder(
  { documents, workload }: BenchRun,
  index: number,
  attributes: (event: StoredEvent) => Item,
): Promise<void> {
  const event = storedEvent(index, workload.payloadBytes);
  await documents.send(
    new TransactWriteCommand({
      TransactItems: [
        { Put: { TableName: DOMAIN.name, Item: orderRow(index) } },
        {
          Put: {
            TableName: OUTBOX,
            Item: { ...event, ...attributes(event) },
            ConditionExpression: 'attribute_not_exists(eventId)',
          },
        },
      ],
    }),
  );
}

/** The event in a record of the outbox's stream. */
export function streamedEvent(record: DynamoDBRecord): StoredEvent {
  const image: { [name: string]: AttributeValue } = record.dynamodb?.NewImage ?? {};
  return unmarshall(image as Parameters<typeof unmarshall>[0]) as StoredEvent;
}

/** Returns true if a conditional write was refused. */
export function isRefused(error: unknown): boolean {
  return error instanceof Error && error.name === 'ConditionalCheckFailedException';
}
