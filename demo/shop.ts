import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import pMap from 'p-map';
import { stockRow } from '../lambdas/example/inventory/stock.ts';
import { errorMessage } from '../lambdas/runtime/base/errors.ts';
import type { Envelope } from '../lambdas/runtime/events/event.ts';
import { deliveredEvent } from '../lambdas/runtime/operations/delivered-event.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import {
  callFunctionUrl,
  type FunctionUrlAnswer,
  type FunctionUrlRequest,
} from '../localstack/function-url.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../localstack/workspace.ts';
import {
  isUnchargeable,
  type PlannedOrder,
  type PlannedOrders,
  plannedOrder,
  SKUS,
} from './planned-orders.ts';
import { CONSUMERS_OF, type Consumer, QUEUE_OUTPUTS, required, type WrittenEvent } from './readings.ts';

/** One in this many orders is requested twice at the same time. */
const REPEAT_EVERY = 5;

/** One in this many events is sent again to every queue that received it. */
const RESEND_EVERY = 10;

/** The units of each SKU in stock at the start of a run: enough for all orders. */
export const STOCK_PER_SKU = 1_000_000;

/** The maximum number of concurrent requests. */
const REQUESTS_AT_ONCE = 10;

/** The time that a request is retried while the API cannot answer yet: a cold engine on a busy laptop is slow. */
const REQUEST_DEADLINE_MS = 120_000;

/** Options for placing orders. */
interface OrderPlacement extends PlannedOrders {
  /** A function is asked before each order. */
  readonly ratePerSecond: number | (() => number);
  readonly onPlaced?: (() => void) | undefined;
  /** Places no further order once it is aborted. @default never */
  readonly ends?: AbortSignal | undefined;
  /** Also stops waiting for the orders that are not answered yet. @default never */
  readonly signal?: AbortSignal | undefined;
}

/** An order to place. */
interface OrderWish extends PlannedOrder {
  readonly signal: AbortSignal | undefined;
}

/** A request that was sent twice, and whether both got the same answer. */
export interface Repeat {
  readonly orderId: string;
  readonly sameAnswer: boolean;
}

/** A message that was sent again to one consumer's queue. */
export interface Resent {
  readonly consumer: Consumer;
  readonly eventId: string;
}

/** The customers of one run, and the source of duplicate messages. */
export interface Shop {
  /** Stocks the run's goods. */
  stockUp(): Promise<void>;
  /**
   * Places the orders, some of them twice at the same time. Resolves when every one is answered.
   *
   * @param count - `Infinity` for orders until `ends`
   */
  placeOrders(count: number, placement: OrderPlacement): Promise<Repeat[]>;
  /** Sends messages of some events again, at most once per event and run. */
  resendSome(events: readonly WrittenEvent[]): Promise<Resent[]>;
}

/** Sends a request to the orders API. */
export type OrdersCall = (url: URL, request: FunctionUrlRequest) => Promise<FunctionUrlAnswer>;

/** Dependencies of {@link createShop}. */
interface ShopDeps {
  readonly outputs: Outputs;
  readonly endpoint: string;
  readonly runId: string;
  /** @default an unsigned request to `endpoint` */
  readonly call?: OrdersCall | undefined;
}

/** Creates a shop. The SDK clients take the endpoint from the environment. */
export function createShop(deps: ShopDeps): Shop {
  const { outputs, runId, call = callFunctionUrl.bind(null, deps.endpoint) } = deps;
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
  const sqs = new SQSClient({ useQueueUrlAsEndpoint: false });
  const ordersUrl = new URL('orders', required(outputs, 'OrdersUrl'));
  const resent = new Set<string>();

  /** Retries one request until it is answered; the idempotency key makes that safe. */
  async function post(n: number, { sku, customer, payWithinSeconds, signal }: OrderWish): Promise<string> {
    const order = {
      customerId: `${runId}-customer-${customer}`,
      items: [{ sku: `${runId}-${sku}`, quantity: 1 + (n % 3), unitPrice: 100 + n }],
      payWithinSeconds,
    };
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `${runId}-${n}` },
      body: JSON.stringify(order),
    };
    for (const until = Date.now() + REQUEST_DEADLINE_MS; ; await pause(250)) {
      signal?.throwIfAborted();
      const { status, text } = await call(ordersUrl, request).catch((error) => ({
        status: 0, // no answer
        text: errorMessage(error),
      }));
      if (status === 201) return text;
      const mayComeAgain = status === 0 || status === 409 || status >= 500;
      if (!mayComeAgain || Date.now() >= until) {
        throw new Error(`POST ${ordersUrl} answered ${status} for order ${n}: ${text.slice(0, 500)}`);
      }
    }
  }

  return {
    stockUp: async () => {
      const TableName = required(outputs, 'TableName');
      for (let n = 0; n < SKUS; n += 1) {
        await documents.send(
          new PutCommand({ TableName, Item: stockRow(`${runId}-sku-${n}`, STOCK_PER_SKU) }),
        );
      }
    },

    placeOrders: async (count, placement) => {
      const { ratePerSecond, onPlaced, ends, signal } = placement;
      const repeats: Repeat[] = [];
      await pMap(
        paced(count, ratePerSecond, ends),
        async (n) => {
          const wish = { ...plannedOrder(n, placement), signal };
          const times = Array.from({ length: n % REPEAT_EVERY === 0 ? 2 : 1 });
          const answers = await Promise.all(times.map(() => post(n, wish)));
          const [first = '', second] = answers;
          const { orderId } = JSON.parse(first) as { orderId: string };
          if (second !== undefined) repeats.push({ orderId, sameAnswer: first === second });
          onPlaced?.();
        },
        { concurrency: REQUESTS_AT_ONCE },
      );
      return repeats;
    },

    resendSome: async (events) => {
      const chosen = events.filter((event) => isResent(event) && !resent.has(event.envelope.eventId));
      const sent = await pMap(
        chosen,
        async ({ row, envelope }) => {
          resent.add(envelope.eventId);
          const consumers = CONSUMERS_OF[envelope.type] ?? [];
          for (const consumer of consumers) {
            await sqs.send(
              new SendMessageCommand({
                QueueUrl: required(outputs, `${QUEUE_OUTPUTS[consumer]}QueueUrl`),
                MessageBody: asDelivered(row.source, envelope),
              }),
            );
          }
          return consumers.map((consumer) => ({ consumer, eventId: envelope.eventId }));
        },
        { concurrency: 8 },
      );
      return sent.flat();
    },
  };
}

/** An order that is late makes the following ones faster, by this much at most. */
const CATCH_UP_MS = 1_000;

/** The numbers from 0, each when it is due, until `ends` is aborted. */
async function* paced(
  count: number,
  rate: OrderPlacement['ratePerSecond'],
  ends?: AbortSignal,
): AsyncGenerator<number> {
  let dueAt = Date.now();
  for (let n = 0; n < count; n += 1) {
    await pause(dueAt - Date.now());
    if (ends?.aborted) return;
    yield n;
    const perSecond = typeof rate === 'number' ? rate : rate();
    dueAt = Math.max(dueAt, Date.now() - CATCH_UP_MS) + 1_000 / perSecond;
  }
}

/** Returns true for an event whose messages are sent again. A duplicate of a rejected message would count as its redrive. */
function isResent({ envelope: { eventId, type, data } }: WrittenEvent): boolean {
  const isRejected = type === 'OrderPlaced' && isUnchargeable(data as { readonly customerId: string });
  return hash(eventId) % RESEND_EVERY === 0 && !isRejected;
}

/** A number derived from an event id, always the same one. */
function hash(eventId: string): number {
  return Number.parseInt(eventId.slice(-8, -2), 16);
}

/** Waits; returns at once for zero or less. */
export function pause(ms: number): Promise<void> {
  return ms <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * A message body as the bus delivers it to a queue, with a new EventBridge id: every redelivery of an event has a different one.
 *
 * @param source - the service that owns the event
 */
export function asDelivered(source: string, envelope: Envelope): string {
  return deliveredEvent(
    { source, type: envelope.type, envelope: JSON.stringify(envelope) },
    { account: LOCAL_ACCOUNT, region: LOCAL_REGION, time: envelope.occurredAt },
  );
}
