import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb';
import { TransactWriteCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { AttributeValue, DynamoDBRecord } from 'aws-lambda';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { BenchRun } from './system.ts';
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

/**
 * Updates a row of the outbox.
 *
 * @param values - by the names of their placeholders
 * @returns the row; undefined if the condition refused the update
 */
export async function updateOutbox(
  { documents }: BenchRun,
  eventId: string,
  UpdateExpression: string,
  ConditionExpression: string | undefined,
  values: object,
): Promise<StoredEvent | undefined> {
  const reserved = ['status', 'owner'].filter((name) =>
    `${UpdateExpression} ${ConditionExpression}`.includes(`#${name}`),
  );
  try {
    const { Attributes } = await documents.send(
      new UpdateCommand({
        TableName: OUTBOX,
        Key: { eventId },
        UpdateExpression,
        ConditionExpression,
        ExpressionAttributeNames: Object.fromEntries(reserved.map((name) => [`#${name}`, name])),
        ExpressionAttributeValues: Object.fromEntries(
          Object.entries(values).map(([name, value]) => [`:${name}`, value]),
        ),
        ReturnValues: 'ALL_NEW',
      }),
    );
    return Attributes as StoredEvent;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return undefined;
    throw error;
  }
}
