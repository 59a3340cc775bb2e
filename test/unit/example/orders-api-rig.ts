import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import { afterEach, beforeEach, vi } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { createOrdersApi } from '../../../lambdas/example/orders/api.ts';
import type { HttpRequest } from '../../../lambdas/example/orders/http.ts';
import { orderIdOf, orderKey } from '../../../lambdas/example/orders/order.ts';
import { tableOrders } from '../../../lambdas/example/orders/order-records.ts';
import { createPlaceOrder } from '../../../lambdas/example/orders/place-order.ts';
import { createOncePerKey, type HttpAnswer } from '../../../lambdas/runtime/http.ts';
import {
  createOutbox,
  dynamoTable,
  type Outbox,
  systemClock,
  type Table,
} from '../../../lambdas/runtime/index.ts';
import { producerConfig } from '../../../testing/index.ts';

export const NOW = Date.parse('2026-11-21T10:00:00Z');
export const FUNCTION_TIMEOUT_MS = 10_000;
export const PAY_WITHIN_SECONDS = 1_800;
export const order = { customerId: 'alice', items: [{ sku: 'coffee', quantity: 2, unitPrice: 1_250 }] };

/** The clock of each test stalls. */
export function withStillClock(): void {
  beforeEach(() => {
    vi.useFakeTimers({ now: NOW, toFake: ['Date'] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });
}

/** The API on a metered table in memory, by the real SDK client. */
export function setUp() {
  const aws = createMeteredAws([{ name: 'Mailroom', keys: ['PK', 'SK'] }]);
  const client = new DynamoDBClient(aws.client);
  const table = dynamoTable({ client, tableName: 'Mailroom' });
  const outbox = createOutbox({ config: producerConfig({ service: 'orders' }), table });
  const errors: Error[] = [];
  const oncePerKey = createOncePerKey({ client, tableName: table.name, operation: 'orders' });

  const apiWith = (part: Partial<Outbox> = {}) =>
    createOrdersApi({
      placeOrder: createPlaceOrder({
        orders: tableOrders({ outbox: { ...outbox, ...part }, table }),
        clock: systemClock,
        oncePerKey,
        payWithinSeconds: PAY_WITHIN_SECONDS,
      }),
      orders: tableOrders({ outbox, table }),
      payWithinSeconds: PAY_WITHIN_SECONDS,
      onError: (_, error) => errors.push(error),
    });
  const items = () => aws.items(table.name);
  const rows = (prefix: string) => items().filter((item) => String(item.PK).startsWith(prefix));
  return { table, items, outbox, errors, apiWith, api: apiWith(), rows };
}

export function context(remainingMs = FUNCTION_TIMEOUT_MS): Context {
  return { getRemainingTimeInMillis: () => remainingMs } as Context;
}

export function request(
  method: string,
  rawPath: string,
  part: { key?: string; body?: string } = {},
): HttpRequest {
  return {
    rawPath,
    headers: part.key === undefined ? {} : { 'idempotency-key': part.key },
    requestContext: { http: { method } },
    body: part.body,
    isBase64Encoded: false,
  } as HttpRequest;
}

export function post(body: unknown = order, key = 'key-1'): HttpRequest {
  return request('POST', '/orders', { key, body: JSON.stringify(body) });
}

export function parsed(response: { body?: string | undefined }) {
  return JSON.parse(response.body ?? '');
}

/** The answer to a repeated request, by the answer to the first one. */
export function replayOf(first: HttpAnswer): HttpAnswer {
  return { ...first, headers: { ...first.headers, 'idempotent-replayed': 'true' } };
}

/** What another service does to the order that was placed under `key-1`. */
export async function moveOn(table: Table, half: string, state: string): Promise<void> {
  await table.write({
    Update: {
      Key: { ...orderKey(orderIdOf('key-1')) },
      UpdateExpression: 'SET #half = :state',
      ExpressionAttributeNames: { '#half': half },
      ExpressionAttributeValues: { ':state': state },
    },
  });
}
