import { randomUUID } from 'node:crypto';
import {
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  paginateQuery,
  paginateScan,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { expect, inject } from 'vitest';
import { CONSUMERS_OF, type Consumer, required, type WrittenEvent } from '../../../demo/readings.ts';
import { stockKey, stockRow } from '../../../lambdas/example/inventory/stock.ts';
import { isSettled, type Order, orderKey } from '../../../lambdas/example/orders/order.ts';
import type { Item, Key } from '../../../lambdas/runtime/index.ts';
import type { InboxRow, RejectedPointer } from '../../../lambdas/runtime/store/inbox-row.ts';
import { INBOX_PREFIX, inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import type { StoredEffect } from '../../../lambdas/runtime/store/stored-effect.ts';
import type { FunctionUrlRequest } from '../../../localstack/function-url.ts';
import { dynamoClient } from '../../support/aws.ts';
import { envelopeOf } from '../../support/envelope-of.ts';
import { eventually } from './eventually.ts';
import { signedCall } from './signed-call.ts';

const endpoint = inject('endpoint');
const outputs = inject('outputs');
export const documents = DynamoDBDocumentClient.from(dynamoClient(endpoint));

/** The Mailroom table. */
export const tableName = required(outputs, 'TableName');
const bankTableName = required(outputs, 'BankTableName');
const apiUrl = required(outputs, 'OrdersUrl');
/** True for a deployment of `npm run verify`. */
const isVerified = inject('stack') !== undefined;
/** Calls the orders API with a signature, which the stage `local` does not require. */
export const call = signedCall(endpoint);

/** What the API answered. */
export interface Answer {
  readonly status: number;
  /** The body, as it came. */
  readonly text: string;
  readonly location: string | null;
}

/** HTTP: a new account runs 10 functions at a time, and refuses more. */
const THROTTLED = 429;

/** Sends a request to the orders API. */
export async function request(method: string, path: string, init: FunctionUrlRequest = {}): Promise<Answer> {
  const answer = await eventually(async () => {
    const tried = await call(new URL(path, apiUrl), { method, ...init }).catch((error: Error) => error);
    expect(tried).not.toMatchObject({ status: THROTTLED });
    return tried;
  });
  if (answer instanceof Error) throw answer;
  const { status, headers, text } = answer;
  return { status, text, location: headers.location ?? null };
}

/** Sends `POST /orders`. */
export async function post(wish: unknown, key: string = randomUUID()): Promise<Answer> {
  return request('POST', 'orders', {
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(wish),
  });
}

/** Places an order of three pieces at 4.50, of goods that only this order asks for. @returns its id and its SKU */
export async function placeOrder({
  customerId = `customer-${randomUUID()}`,
  inStock = 10,
  payWithinSeconds = undefined as number | undefined,
  key = randomUUID() as string,
} = {}): Promise<{ readonly orderId: string; readonly sku: string }> {
  const sku = await newGoods(inStock);
  const answer = await post(
    { customerId, items: [{ sku, quantity: 3, unitPrice: 450 }], payWithinSeconds },
    key,
  );
  expect(answer.status, answer.text).toBe(201);
  return { orderId: JSON.parse(answer.text).orderId, sku };
}

/** Shows an order as `GET /orders/{id}` does. */
export async function shownOrder(orderId: string): Promise<Order & { readonly status: string }> {
  const answer = await request('GET', `orders/${orderId}`);
  expect(answer.status, answer.text).toBe(200);
  return JSON.parse(answer.text);
}

/** Puts goods of their own into stock. @returns their SKU */
export async function newGoods(available: number): Promise<string> {
  const sku = `sku-${randomUUID()}`;
  await put(stockRow(sku, available));
  return sku;
}

/** How many pieces are left. */
export async function inStock(sku: string): Promise<unknown> {
  return (await get(stockKey(sku)))?.available;
}

/** Writes a row of the Mailroom table as it is. In an account, the policy of the table denies putting an inbox row, so a new one is updated. */
export async function put(row: Item): Promise<void> {
  const { PK, SK, ...attributes } = row;
  if (isVerified && String(PK).startsWith(INBOX_PREFIX)) {
    const entries = Object.entries(attributes);
    await documents.send(
      new UpdateCommand({
        TableName: tableName,
        Key: { PK, SK },
        UpdateExpression: `SET ${entries.map((_, n) => `#${n} = :${n}`).join(', ')}`,
        ExpressionAttributeNames: Object.fromEntries(entries.map(([name], n) => [`#${n}`, name])),
        ExpressionAttributeValues: Object.fromEntries(entries.map(([, value], n) => [`:${n}`, value])),
      }),
    );
    return;
  }
  await documents.send(new PutCommand({ TableName: tableName, Item: row }));
}

/** Reads a row of the Mailroom table. */
export async function get(key: Key): Promise<Item | undefined> {
  const { Item } = await documents.send(
    new GetCommand({ TableName: tableName, Key: { ...key }, ConsistentRead: true }),
  );
  return Item;
}

export async function partition(pk: string, table = tableName): Promise<Item[]> {
  const rows: Item[] = [];
  const query = {
    TableName: table,
    ConsistentRead: true,
    KeyConditionExpression: 'PK = :pk',
    ExpressionAttributeValues: { ':pk': pk },
  };
  for await (const page of paginateQuery({ client: documents }, query)) rows.push(...(page.Items ?? []));
  return rows;
}

/** The requests that the bank got for an order, in the order in which they came. */
export async function bankRequests(orderId: string): Promise<Item[]> {
  return partition(`REQUEST#${orderId}`, bankTableName);
}

/** The charges that the bank made for an order. */
export async function charges(orderId: string): Promise<Item[]> {
  return partition(`CHARGE#${orderId}`, bankTableName);
}

/** The refunds that the bank made for an order. */
export async function refunds(orderId: string): Promise<Item[]> {
  return partition(`REFUND#${orderId}`, bankTableName);
}

/** The e-mails about an order. */
export async function emails(orderId: string): Promise<Item[]> {
  return partition(`NOTIFICATION#${orderId}`);
}

/** A consumer's inbox row of an event. */
export async function message(consumer: Consumer, eventId: string): Promise<InboxRow | undefined> {
  return (await get(inboxKey(consumer, eventId))) as InboxRow | undefined;
}

/** A consumer's pointer at a rejected event. */
export async function rejection(consumer: Consumer, eventId: string): Promise<RejectedPointer | undefined> {
  return (await get(rejectedKey(consumer, eventId))) as RejectedPointer | undefined;
}

/** A side effect of a consumer's handler. */
export async function effect(
  consumer: Consumer,
  eventId: string,
  name: string,
): Promise<StoredEffect | undefined> {
  return (await message(consumer, eventId))?.effects?.[name];
}

/** The outbox rows whose envelope holds a text, e.g. an order's id, with their envelopes. */
export async function eventsWith(text: string): Promise<WrittenEvent[]> {
  const events: WrittenEvent[] = [];
  const scan = {
    TableName: tableName,
    ConsistentRead: true,
    FilterExpression: 'begins_with(PK, :outbox)',
    ExpressionAttributeValues: { ':outbox': 'OUTBOX#' },
  };
  for await (const page of paginateScan({ client: documents }, scan)) {
    for (const item of page.Items ?? []) {
      const envelope = envelopeOf(item);
      if (JSON.stringify(envelope).includes(text)) events.push({ row: item as OutboxRow, envelope });
    }
  }
  return events;
}

/** The one event of a type among some. */
export function only(events: readonly WrittenEvent[], type: string): WrittenEvent {
  const found = events.filter(({ envelope }) => envelope.type === type);
  const [event] = found;
  if (event === undefined || found.length > 1) throw new Error(`There are ${found.length} events ${type}`);
  return event;
}

/**
 * Waits until nothing is left to do for an order: it is confirmed or cancelled, every event is PUBLISHED, every
 * consumer that must see one has PROCESSED it. Its expiry is PUBLISHED, CANCELLED, or not due.
 *
 * @returns the order's row, its events without an expiry that is not published, and the row of its expiry
 */
export async function settled(orderId: string): Promise<{
  readonly order: Order;
  readonly events: readonly WrittenEvent[];
  readonly expiry: OutboxRow | undefined;
}> {
  const order = await eventually(async () => {
    const row = (await get(orderKey(orderId))) as unknown as Order | undefined;
    expect(row).toSatisfy((order: Order | undefined) => order !== undefined && isSettled(order));
    return row as Order;
  });
  const { events, expiry } = await eventually(async () => {
    const all = await eventsWith(orderId);
    const found = all.filter(({ row }) => row.dueAt === undefined || row.status === 'PUBLISHED');
    for (const { row } of found) expect(row).toMatchObject({ status: 'PUBLISHED' });
    const timer = all.find(({ row }) => row.dueAt !== undefined)?.row;
    if (timer?.status === 'PENDING') expect(timer.dueAt).toBeGreaterThan(Date.now());
    for (const { envelope } of found) {
      for (const consumer of CONSUMERS_OF[envelope.type] ?? []) {
        expect(await message(consumer, envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
      }
    }
    return { events: found, expiry: timer };
  });
  return { order, events, expiry };
}
