import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetQueueAttributesCommand, type QueueAttributeName, SQSClient } from '@aws-sdk/client-sqs';
import { DynamoDBDocumentClient, paginateScan } from '@aws-sdk/lib-dynamodb';
import { BRIDGED } from '../lambdas/example/events.ts';
import type { Order } from '../lambdas/example/orders/order.ts';
import type { Envelope } from '../lambdas/runtime/events/event.ts';
import type { InboxRow } from '../lambdas/runtime/store/inbox-row.ts';
import type { OutboxRow } from '../lambdas/runtime/store/outbox-row.ts';
import { readable, readOutboxRow } from '../lambdas/runtime/store/stored-rows.ts';
import type { Item } from '../lambdas/runtime/store/table.ts';
import type { Outputs } from '../localstack/cdk-process.ts';

/** The consumers that must receive each event type, according to the rules of the order system. */
export const CONSUMERS_OF: Readonly<Record<string, readonly Consumer[]>> = {
  OrderPlaced: ['payments', 'inventory'],
  PaymentCaptured: ['notifications', 'order-status'],
  PaymentDeclined: ['order-status', 'inventory'],
  OrderExpired: ['payments'],
  PaymentRefunded: ['order-status', 'inventory'],
  PaymentCancelled: ['order-status', 'inventory'],
  PaymentRejected: ['order-status', 'inventory', 'payments'],
  StockReserved: ['order-status'],
  StockRejected: ['order-status', 'payments'],
  StockReleased: ['order-status'],
  OrderCancelled: ['notifications'],
};

/** The consumers of the order system. */
export const CONSUMERS = ['payments', 'inventory', 'notifications', 'order-status'] as const;
export type Consumer = (typeof CONSUMERS)[number];

/** The prefix of the outputs with a consumer's queue URLs. */
export const QUEUE_OUTPUTS: Readonly<Record<Consumer, string>> = {
  payments: 'Payments',
  inventory: 'Inventory',
  notifications: 'Notifications',
  'order-status': 'OrderStatus',
};

/** The attribute that counts the messages which a consumer could receive now. */
const WAITING: readonly QueueAttributeName[] = ['ApproximateNumberOfMessages'];

/** The attributes that count all messages of a queue. */
const HELD: readonly QueueAttributeName[] = [...WAITING, 'ApproximateNumberOfMessagesNotVisible'];

/** The prefix of the outputs with the queue URLs of the bridge, which only `--bridge` deploys. */
const BRIDGE_OUTPUTS = 'Bridge';

/** An event of the run, as stored in its outbox row. */
export interface WrittenEvent {
  readonly row: OutboxRow;
  readonly envelope: Envelope;
}

/** A charge or a refund in the bank's ledger. */
interface MoneyMove {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly amountCents: number;
}

/** The state of one run in the tables and queues. */
export interface Readings {
  readonly orders: readonly Pick<
    Order,
    'orderId' | 'customerId' | 'items' | 'totalCents' | 'payment' | 'stock' | 'expired'
  >[];
  /** The events that are published, or wait for that: without scheduled ones that are not due, or cancelled. */
  readonly events: readonly WrittenEvent[];
  /** The scheduled events `OrderExpired`, whatever became of them. */
  readonly expiries: readonly WrittenEvent[];
  /** Inbox rows by consumer and event id. */
  readonly inbox: Readonly<Record<Consumer, ReadonlyMap<string, InboxRow>>>;
  /** Inbox rows of the bridge by event id. @default the order system has no bridge */
  readonly bridge?: ReadonlyMap<string, InboxRow> | undefined;
  /** The bank's charges by order id. */
  readonly charges: ReadonlyMap<string, readonly MoneyMove[]>;
  /** The bank's refunds by order id. */
  readonly refunds: ReadonlyMap<string, readonly MoneyMove[]>;
  /** E-mails by order id. */
  readonly emails: ReadonlyMap<string, number>;
  /** Units left in stock, by SKU. */
  readonly stock: ReadonlyMap<string, number>;
  /** Messages waiting or in flight, in all queues. */
  readonly queued: number;
  /** Messages in all dead-letter queues. */
  readonly deadLetters: number;
}

/** Reads the run's state from the tables and queues. */
export interface Reader {
  /** @param runId - the prefix of every customer and SKU of the run */
  read(runId: string): Promise<Readings>;
  /** The number of messages in all dead-letter queues. */
  deadLetters(): Promise<number>;
  /** The number of messages that a consumer could receive now, in all queues. */
  waiting(): Promise<number>;
}

/**
 * Creates the reader of one deployment. The SDK clients take the endpoint from the environment.
 *
 * @param itemsElsewhere - rows that are not in the table, as its items
 */
export function createReader(
  outputs: Outputs,
  itemsElsewhere: () => Promise<Record<string, unknown>[]> = async () => [],
): Reader {
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
  const sqs = new SQSClient({ useQueueUrlAsEndpoint: false });

  const hasBridge = outputs[`${BRIDGE_OUTPUTS}QueueUrl`] !== undefined;
  const queues = [...Object.values(QUEUE_OUTPUTS), ...(hasBridge ? [BRIDGE_OUTPUTS] : [])];

  async function scan(tableName: string): Promise<Record<string, unknown>[]> {
    const items: Record<string, unknown>[] = [];
    for await (const page of paginateScan(
      { client: documents },
      { TableName: tableName, ConsistentRead: true },
    )) {
      items.push(...(page.Items ?? []));
    }
    return items;
  }

  async function depth(
    suffix: 'QueueUrl' | 'DlqUrl',
    of: readonly QueueAttributeName[] = HELD,
  ): Promise<number> {
    const depths = await Promise.all(
      queues.map(async (name) => {
        const { Attributes = {} } = await sqs.send(
          new GetQueueAttributesCommand({
            QueueUrl: outputs[`${name}${suffix}`],
            AttributeNames: [...of],
          }),
        );
        return Object.values(Attributes).reduce((sum, value) => sum + Number(value), 0);
      }),
    );
    return depths.reduce((sum, value) => sum + value, 0);
  }

  return {
    deadLetters: () => depth('DlqUrl'),
    waiting: () => depth('QueueUrl', WAITING),
    read: async (runId) => {
      // The queues are read first: messages that have left them by then are visible in the tables.
      const [queued, deadLetters] = await Promise.all([depth('QueueUrl'), depth('DlqUrl')]);
      // The bank is read last: whatever a row records about it has already happened there.
      const items = [...(await scan(required(outputs, 'TableName'))), ...(await itemsElsewhere())];
      const bank = await scan(required(outputs, 'BankTableName'));
      const { inboxOf, ...sorted } = sort(runId, items, bank);
      return { ...sorted, bridge: hasBridge ? inboxOf('bridge') : undefined, queued, deadLetters };
    },
  };
}

/** Selects the rows of the run from both tables. */
function sort(
  runId: string,
  items: readonly Record<string, unknown>[],
  bank: readonly Record<string, unknown>[],
): Omit<Readings, 'bridge' | 'queued' | 'deadLetters'> & {
  readonly inboxOf: (consumer: string) => Map<string, InboxRow>;
} {
  const ofKind = (prefix: string, from = items) => from.filter((item) => String(item.PK).startsWith(prefix));
  const orders = ofKind('ORDER#').filter((item) =>
    String(item.customerId).startsWith(runId),
  ) as never as Readings['orders'];
  const orderIds = new Set(orders.map((order) => order.orderId));

  const written = ofKind('OUTBOX#')
    .flatMap((item) => readable(readOutboxRow(item as Item)) ?? [])
    .map((row) => ({ row, envelope: JSON.parse(row.envelope) as Envelope }))
    .filter(({ envelope }) => orderIds.has((envelope.data as { orderId: string }).orderId));
  const events = written.filter(({ row }) => row.dueAt === undefined || row.status === 'PUBLISHED');
  const eventIds = new Set(events.map(({ envelope }) => envelope.eventId));

  const inboxOf = (consumer: string) => {
    const prefix = `INBOX#${consumer}#`;
    const rows = ofKind(prefix)
      .filter((item) => item.SK === 'MESSAGE')
      .map((item) => [String(item.PK).slice(prefix.length), item as never as InboxRow] as const)
      .filter(([eventId]) => eventIds.has(eventId));
    return new Map(rows);
  };
  const inbox = Object.fromEntries(CONSUMERS.map((consumer) => [consumer, inboxOf(consumer)])) as Record<
    Consumer,
    Map<string, InboxRow>
  >;

  const emails = new Map<string, number>();
  for (const email of ofKind('NOTIFICATION#')) {
    const orderId = String(email.PK).slice('NOTIFICATION#'.length);
    if (orderIds.has(orderId)) emails.set(orderId, (emails.get(orderId) ?? 0) + 1);
  }
  const stock = ofKind(`STOCK#${runId}`).map(
    (item) => [String(item.PK).slice('STOCK#'.length), Number(item.available)] as const,
  );
  return {
    orders,
    events,
    expiries: written.filter(({ row }) => row.type === 'OrderExpired'),
    inbox,
    inboxOf,
    charges: moneyMoves(ofKind('CHARGE#', bank), 'chargedAt', orderIds),
    refunds: moneyMoves(ofKind('REFUND#', bank), 'refundedAt', orderIds),
    emails,
    stock: new Map(stock),
  };
}

/** The bank's rows of the given orders, by order id. */
function moneyMoves(
  rows: readonly Record<string, unknown>[],
  at: 'chargedAt' | 'refundedAt',
  orderIds: ReadonlySet<string>,
): Map<string, MoneyMove[]> {
  const moves = new Map<string, MoneyMove[]>();
  for (const row of rows) {
    const orderId = String(row.orderId);
    if (!orderIds.has(orderId)) continue;
    const move = { at: Number(row[at]), amountCents: Number(row.amountCents) };
    moves.set(orderId, [...(moves.get(orderId) ?? []), move]);
  }
  return moves;
}

/** The inbox row of each message that the events must cause; `undefined` for one that has not been received. */
export function messagesOf({ events, inbox, bridge }: Readings): readonly (InboxRow | undefined)[] {
  return events.flatMap(({ envelope: { type, eventId } }) => [
    ...(CONSUMERS_OF[type] ?? []).map((consumer) => inbox[consumer].get(eventId)),
    ...(bridge !== undefined && isBridged(type) ? [bridge.get(eventId)] : []),
  ]);
}

/** Returns true for a type of event that the bridge forwards. */
export function isBridged(type: string): boolean {
  return BRIDGED.some((event) => event.type === type);
}

/** The amount that the bank has charged for an order and not refunded, in cents. */
export function keptCents({ charges, refunds }: Readings, orderId: string): number {
  const sum = (moves: readonly MoneyMove[] = []) =>
    moves.reduce((cents, { amountCents }) => cents + amountCents, 0);
  return sum(charges.get(orderId)) - sum(refunds.get(orderId));
}

/** The e-mails due per order: one for a payment and one for a cancellation, so at least one. */
export function emailsDue({ orders, events }: Readings): ReadonlyMap<string, number> {
  const due = new Map<string, number>();
  for (const { envelope } of events) {
    if (!['PaymentCaptured', 'OrderCancelled'].includes(envelope.type)) continue;
    const { orderId } = envelope.data as { readonly orderId: string };
    due.set(orderId, (due.get(orderId) ?? 0) + 1);
  }
  return new Map(orders.map(({ orderId }) => [orderId, Math.max(1, due.get(orderId) ?? 0)]));
}

/** Returns an output of the deployment. */
export function required(outputs: Outputs, name: string): string {
  const value = outputs[name];
  if (value === undefined) {
    throw new Error(
      `The deployed stacks have no output ${name}, so they are from another version. Run npm run local:stop and try again.`,
    );
  }
  return value;
}
