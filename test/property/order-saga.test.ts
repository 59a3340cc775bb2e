import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CONSUMERS_OF, type Consumer } from '../../demo/readings.ts';
import { OrderExpired, UNPAID } from '../../lambdas/example/events.ts';
import { releaseStock } from '../../lambdas/example/inventory/release-stock.ts';
import { reserveStock } from '../../lambdas/example/inventory/reserve-stock.ts';
import { stockKey, stockRow } from '../../lambdas/example/inventory/stock.ts';
import { storedEmails } from '../../lambdas/example/notifications/email-provider.ts';
import { sendCancellation } from '../../lambdas/example/notifications/send-cancellation.ts';
import { sendReceipt } from '../../lambdas/example/notifications/send-receipt.ts';
import { orderKey, orderOfRow, orderRow, orderStatus } from '../../lambdas/example/orders/order.ts';
import { orderStatusHandlers } from '../../lambdas/example/orders/order-status.ts';
import { type Bank, BankError } from '../../lambdas/example/payments/bank-client.ts';
import { cancelPayment } from '../../lambdas/example/payments/cancel-payment.ts';
import { chargeOrder } from '../../lambdas/example/payments/charge-order.ts';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { type Clock, type Envelope, entryEventId, systemClock } from '../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { type MemoryTable, memoryTable } from '../../testing/index.ts';
import { fakeBank } from '../support/fake-bank.ts';
import { order, orderPlaced } from '../support/order-events.ts';
import { ordersOutbox } from '../support/orders-outbox.ts';
import { type ConsumerRig, consumerRig } from '../unit/example/consumer-rig.ts';
import { runs } from './support/runs.ts';

/** What may differ from order to order. */
interface Setting {
  /** Pieces in stock; the order is for two. */
  readonly inStock: number;
  readonly declines: boolean;
  /** How many of its requests the bank answers with no decision. */
  readonly failures: number;
  /** How often the customer has not approved the charge when the bank is asked. */
  readonly unapproved: number;
  /** The expiry may be published at any time. Otherwise the order never expires. */
  readonly expires: boolean;
  /** Which of the messages that wait comes next, and which that was processed is redelivered: one number for each delivery. */
  readonly draws: readonly number[];
}

const settings = fc.record({
  inStock: fc.constantFrom(1, 10),
  declines: fc.boolean(),
  failures: fc.integer({ min: 0, max: 2 }),
  unapproved: fc.integer({ min: 0, max: 2 }),
  expires: fc.boolean(),
  draws: fc.array(fc.nat(), { minLength: 40, maxLength: 40 }),
});

it('an order is paid and reserved, or cancelled with no money kept and no stock held, in whatever order its messages come', async () => {
  await fc.assert(
    fc.asyncProperty(settings, async (setting) => {
      const { table, bank, sold, events, expiry } = await deliverAll(setting);
      const status = orderStatus(orderOfRow(table.item(orderKey(order.orderId)) ?? {}));
      const confirmed = status === 'confirmed';
      expect(['confirmed', 'cancelled']).toContain(status);
      if (setting.inStock < 2 || setting.declines) expect(status).toBe('cancelled');
      else if (expiry() === 'CANCELLED') expect(status).toBe('confirmed');
      expect(expiry()).toBeOneOf(setting.expires ? ['CANCELLED', 'PUBLISHED'] : ['CANCELLED']);
      expect(bank.refunds.size).toBeLessThanOrEqual(1);
      expect(bank.keptCents()).toBe(confirmed ? order.totalCents : 0);
      expect(bank.charges.size).toBeLessThanOrEqual(1);
      expect(sold()).toBe(confirmed ? 2 : 0);
      expect(events('OrderCancelled')).toBe(confirmed ? 0 : 1);
      const emails = table.items().filter(({ PK }) => String(PK).startsWith('NOTIFICATION#'));
      expect(emails).toHaveLength(events('PaymentCaptured') + events('OrderCancelled'));
    }),
    runs(60),
  );
});

/** The order system around one table, and every message of one order handed out in the order that was drawn. */
async function deliverAll({ inStock, declines, failures, unapproved, expires, draws }: Setting) {
  const table = memoryTable();
  const bank = fakeBank({ declines, unapproved });
  const payBy = systemClock.now() + HOUR_MS;
  const [entry] = await ordersOutbox(table).entries([
    OrderExpired.create({ aggregateId: order.orderId, deliverAt: payBy, data: { orderId: order.orderId } }),
  ]);
  if (entry === undefined) throw new Error('The outbox made no entry');
  const expiryId = entryEventId(entry);
  const expiry = () => table.item(outboxKeyOf(expiryId))?.status;
  // Published means that it is due: until then, the clock of order-status is before that time.
  const clock = { now: () => (expiry() === 'PENDING' ? payBy - 1 : payBy), sleep: async () => {} };
  const rigs = consumersOf(table, failing(bank, failures), clock);
  await table.transact([entry]);
  for (const Item of [stockRow('coffee', inStock), orderRow({ ...order, payBy, expiryId })])
    await table.write({ Put: { Item } });
  await rigs.payments.announce(orderPlaced);

  const written = () =>
    table
      .items()
      .filter(({ PK }) => String(PK).startsWith('OUTBOX#'))
      .map(({ envelope }) => JSON.parse(String(envelope)) as Envelope);
  const done = new Map<string, () => Promise<unknown>>();
  for (let delivery = 0; ; delivery += 1) {
    const draw = draws[delivery % draws.length] ?? 0;
    if (expires && draw % 7 === 0 && expiry() === 'PENDING') await publish(table, expiryId);
    const waiting = written()
      .filter(({ eventId }) => eventId !== expiryId || expiry() === 'PUBLISHED')
      .flatMap((event) => (CONSUMERS_OF[event.type] ?? []).map((consumer) => ({ event, consumer })))
      .map(({ event, consumer }) => ({ name: `${consumer} ${event.eventId}`, event, consumer }))
      .filter(({ name }) => !done.has(name));
    const next = waiting[draw % waiting.length];
    if (next === undefined) break;
    const deliver = () => rigs[next.consumer].deliver(next.event);
    if ((await deliver()) === 'done') done.set(next.name, deliver);
    // Sometimes one of those that were processed comes once more.
    if (draw % 3 === 0) await [...done.values()][draw % Math.max(1, done.size)]?.();
  }
  return {
    table,
    bank,
    expiry,
    sold: () => inStock - Number(table.item(stockKey('coffee'))?.available),
    events: (wanted: string) => written().filter(({ type }) => type === wanted).length,
  };
}

/** Publishes a scheduled event, as the sweep does. */
async function publish(table: MemoryTable, eventId: string): Promise<void> {
  await table.write({
    Update: {
      Key: { ...outboxKeyOf(eventId) },
      UpdateExpression: 'SET #status = :published, leaseUntil = leaseUntil + :claim',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':published': 'PUBLISHED', ':claim': 30_000 },
    },
  });
}

function consumersOf(table: MemoryTable, bank: Bank, clock: Clock): Record<Consumer, ConsumerRig> {
  const emails = storedEmails({ table, clock: systemClock });
  return {
    payments: consumerRig(
      () => [
        chargeOrder({ bank, table }),
        cancelPayment({ bank, table }),
        cancelPayment({ bank, table }, OrderExpired),
      ],
      table,
      'payments',
    ),
    inventory: consumerRig(
      () => [reserveStock({ table }), ...UNPAID.map((unpaid) => releaseStock({ table }, unpaid))],
      table,
      'inventory',
    ),
    notifications: consumerRig(
      () => [sendReceipt({ emails }), sendCancellation({ emails })],
      table,
      'notifications',
    ),
    'order-status': consumerRig(
      () => orderStatusHandlers({ table, outbox: ordersOutbox(table, clock), clock }),
      table,
      'order-status',
    ),
  };
}

/** The bank, which does not decide at first. */
function failing(bank: Bank, failures: number): Bank {
  let left = failures;
  const fails = () => {
    left -= 1;
    if (left >= 0) throw new BankError('the bank answered 500');
  };
  return {
    charge: async (charge, signal) => {
      fails();
      return bank.charge(charge, signal);
    },
    refund: async (refund, signal) => {
      fails();
      return bank.refund(refund, signal);
    },
  };
}
