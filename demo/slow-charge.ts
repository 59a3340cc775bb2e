import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import { stockRow } from '../lambdas/example/inventory/stock.ts';
import { callFunctionUrl } from '../localstack/function-url.ts';
import type { FaultDeps } from './made-faults.ts';
import { createReader, type Readings, required } from './readings.ts';
import { pause } from './shop.ts';

/** The bank charges this customer at once, and answers after 20 seconds. */
const SLOW_CUSTOMER = 'slow-20000';

const SKU = 'demo-slow-charge';

const LOOK_EVERY_MS = 500;

/** A charge that the bank has made and not yet answered. */
export interface SlowCharge {
  /** The event whose message payments is working on. */
  readonly eventId: string;
  /** Resolves when the message is PROCESSED, or no worker will process it any more: a redrive of its dead letter is then up to a person. */
  ended(): Promise<void>;
}

/** The states in which the charge has failed, or will not be tried again. */
const UNCHARGED = new Set(['FAILED', 'REJECTED', 'DISCARDED']);

const ENDED = new Set(['PROCESSED', 'REJECTED', 'DISCARDED']);

/**
 * Places an order of a slow customer, and resolves when the bank has charged it and payments waits for the answer. The order is not
 * one of the run: the receipt does not count it.
 *
 * @throws if the bank does not charge it, e.g. while it is down
 */
export async function slowCharge({ deployment, outputs, endpoint, signal }: FaultDeps): Promise<SlowCharge> {
  const documents = DynamoDBDocumentClient.from(deployment.clients.dynamo);
  await documents.send(
    new PutCommand({ TableName: deployment.directory.mailroom.table, Item: stockRow(SKU, 1_000) }),
  );
  const { status, text } = await callFunctionUrl(
    endpoint,
    new URL('orders', required(outputs, 'OrdersUrl')),
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `slow-${Date.now()}` },
      body: JSON.stringify({
        customerId: SLOW_CUSTOMER,
        items: [{ sku: SKU, quantity: 1, unitPrice: 100 }],
      }),
    },
  );
  if (status !== 201) throw new Error(`The orders API answered ${status}: ${text.slice(0, 500)}`);
  const { orderId } = JSON.parse(text) as { orderId: string };

  const reader = createReader(outputs);
  async function until(holds: (readings: Readings) => boolean): Promise<Readings> {
    for (;;) {
      signal.throwIfAborted();
      const readings = await reader.read(SLOW_CUSTOMER);
      if (holds(readings)) return readings;
      await pause(LOOK_EVERY_MS);
    }
  }
  const eventIdOf = ({ events }: Readings) =>
    events.find(({ envelope }) => envelope.type === 'OrderPlaced' && envelope.aggregateId === orderId)
      ?.envelope.eventId ?? '';
  const statusOf = (readings: Readings) => readings.inbox.payments.get(eventIdOf(readings))?.status ?? '';
  const started = await until(
    (readings) =>
      (readings.charges.has(orderId) && eventIdOf(readings) !== '') || UNCHARGED.has(statusOf(readings)),
  );
  if (!started.charges.has(orderId))
    throw new Error('The bank did not charge the order. Repair the bank, then break this again.');
  return {
    eventId: eventIdOf(started),
    ended: async () => {
      await until((readings) => ENDED.has(statusOf(readings)));
    },
  };
}
