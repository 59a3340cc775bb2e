import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import pMap from 'p-map';
import { stockRow } from '../lambdas/example/inventory/stock.ts';
import { errorMessage } from '../lambdas/runtime/errors.ts';
import type { Outputs } from '../localstack/deploy.ts';
import { callFunctionUrl } from '../localstack/function-url.ts';
import { asDelivered } from './delivered-message.ts';
import { CONSUMERS_OF, type Consumer, QUEUE_OUTPUTS, required, type WrittenEvent } from './readings.ts';

/** Every so many orders, the same request is sent twice at once. */
const REPEAT_EVERY = 5;

/** Every so many events, the message is sent again to every queue that got it. */
const RESEND_EVERY = 10;

/** Pieces of each SKU in stock when the run begins: enough for all orders. */
export const STOCK_PER_SKU = 1_000_000;

const SKUS = 5;

/** What the SKU that is never in stock ends with. */
const SOLD_OUT = 'sold-out';

/** The most requests under way at once. */
const REQUESTS_AT_ONCE = 10;

/** How long one request is tried while the API cannot answer it yet: a cold engine takes its time, and a busy laptop. */
const REQUEST_DEADLINE_MS = 120_000;

/** Whether an order asks for goods that are not in stock, and so must end cancelled. */
export function isSoldOut({ items }: { readonly items: readonly { readonly sku: string }[] }): boolean {
  return items.some(({ sku }) => sku.endsWith(SOLD_OUT));
}

/** How the orders are placed. */
interface OrderPlacement {
  readonly ratePerSecond: number;
  /** Every so many orders, the first one too, the goods are sold out. @default none */
  readonly soldOutEvery?: number | undefined;
  readonly onPlaced?: (() => void) | undefined;
}

/** A request that was sent twice, and what the API made of it. */
export interface Repeat {
  readonly orderId: string;
  readonly sameAnswer: boolean;
}

/** A message that was sent again to one consumer's queue. */
export interface Resent {
  readonly consumer: Consumer;
  readonly eventId: string;
}

/** The customers of one run, and whoever delivers messages twice. */
export interface Shop {
  /** Puts the run's goods into stock. */
  stockUp(): Promise<void>;
  /** Places the orders, some of them twice at once. Returns when every one is answered. */
  placeOrders(count: number, placement: OrderPlacement): Promise<Repeat[]>;
  /** Sends some of the events' messages again, each once in the run. */
  resendSome(events: readonly WrittenEvent[]): Promise<Resent[]>;
}

/** Opens a shop. The SDK clients take the endpoint from the environment. */
export function createShop(deps: {
  readonly outputs: Outputs;
  readonly endpoint: string;
  readonly runId: string;
}): Shop {
  const { outputs, endpoint, runId } = deps;
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
  const sqs = new SQSClient({ useQueueUrlAsEndpoint: false });
  const ordersUrl = new URL('orders', required(outputs, 'OrdersUrl'));
  const resent = new Set<string>();

  /** One request, tried again until it is answered: that is what an idempotency key is for. */
  async function post(n: number, sku: string): Promise<string> {
    const order = {
      customerId: `${runId}-customer-${n}`,
      items: [{ sku: `${runId}-${sku}`, quantity: 1 + (n % 3), unitPrice: 100 + n }],
    };
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `${runId}-${n}` },
      body: JSON.stringify(order),
    };
    for (const until = Date.now() + REQUEST_DEADLINE_MS; ; await pause(250)) {
      const { status, text } = await callFunctionUrl(endpoint, ordersUrl, request).catch((error) => ({
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

    placeOrders: async (count, { ratePerSecond, soldOutEvery, onPlaced }) => {
      const repeats: Repeat[] = [];
      const startedAt = Date.now();
      await pMap(
        Array.from({ length: count }, (_, n) => n),
        async (n) => {
          await pause(startedAt + (n / ratePerSecond) * 1_000 - Date.now());
          const isSoldOut = soldOutEvery !== undefined && n % soldOutEvery === 0;
          const sku = isSoldOut ? SOLD_OUT : `sku-${n % SKUS}`;
          const answers = await Promise.all(
            Array.from({ length: n % REPEAT_EVERY === 0 ? 2 : 1 }, () => post(n, sku)),
          );
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
      const chosen = events.filter(
        ({ envelope }) => hash(envelope.eventId) % RESEND_EVERY === 0 && !resent.has(envelope.eventId),
      );
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

/** Some number of an event id, the same each time. */
function hash(eventId: string): number {
  return Number.parseInt(eventId.slice(-8, -2), 16);
}

/** Waits; not at all for zero and less. */
export function pause(ms: number): Promise<void> {
  return ms <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}
