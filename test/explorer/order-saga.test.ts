import { describe, expect, it } from 'vitest';
import {
  OrderExpired,
  OrderPlaced,
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  StockRejected,
} from '../../lambdas/example/events.ts';
import { releaseStock } from '../../lambdas/example/inventory/release-stock.ts';
import { reserveStock } from '../../lambdas/example/inventory/reserve-stock.ts';
import { stockKey, stockRow } from '../../lambdas/example/inventory/stock.ts';
import { orderKey, orderOfRow, orderRow, orderStatus } from '../../lambdas/example/orders/order.ts';
import { orderStatusHandlers } from '../../lambdas/example/orders/order-status.ts';
import { cancelPayment } from '../../lambdas/example/payments/cancel-payment.ts';
import { chargeOrder } from '../../lambdas/example/payments/charge-order.ts';
import { paymentKey } from '../../lambdas/example/payments/payment.ts';
import { HOUR_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import {
  type AnyEventDefinition,
  type Clock,
  type Handler,
  type Item,
  type Key,
  leased,
  systemClock,
  type Table,
} from '../../lambdas/runtime/index.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { eventIdOf } from '../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { relayConfig } from '../../testing/default-config.ts';
import { exploreScenario, START, timelineText } from '../../testing/explorer/exploration.ts';
import { type MemoryBus, memoryBus, memoryTable, memoryTelemetry } from '../../testing/index.ts';
import type { MemoryTable } from '../../testing/memory-table.ts';
import { type FakeBank, fakeBank } from '../support/fake-bank.ts';
import {
  order,
  orderExpired,
  orderPlaced,
  paymentCancelled,
  paymentCaptured,
  paymentDeclined,
  paymentRefunded,
  stockRejected,
} from '../support/order-events.ts';
import { ordersOutbox } from '../support/orders-outbox.ts';
import { deviations } from './rounds.ts';
import { type Meeting, meeting, writtenEvents } from './two-messages.ts';

/** How far a meeting is walked: how much goes wrong, and how often a schedule leaves the ordinary way. */
interface Bounds {
  readonly faults: number;
  readonly deviations: number | undefined;
}

const remembered = ({ asked, charges, refunds }: FakeBank) => [asked(), [...charges], [...refunds]];

const declining = () => fakeBank({ declines: true });

const slowToApprove = () => fakeBank({ unapproved: 1 });

const charges = { event: orderPlaced, handler: chargeOrderOf };
const cancels = { event: stockRejected, handler: cancelPaymentOf };
const expires = { event: orderExpired, handler: expirePaymentOf };

function chargeOrderOf({ table }: Parts, bank: FakeBank): Handler {
  return chargeOrder({ bank, table });
}

function cancelPaymentOf({ table }: Parts, bank: FakeBank): Handler {
  return cancelPayment({ bank, table });
}

function expirePaymentOf({ table }: Parts, bank: FakeBank): Handler {
  return cancelPayment({ bank, table }, OrderExpired);
}

type Parts = Parameters<Meeting<FakeBank>['sides'][0]['handler']>[0];

/** An order that inventory rejects while payments charges it. */
function rejectedWhileCharged(bank: () => FakeBank, sides: Meeting<FakeBank>['sides']): Meeting<FakeBank> {
  return {
    name: 'an order that is charged and rejected',
    sides,
    world: bank,
    remembered,
    check: (table, bank) => {
      if (bank.keptCents() !== 0) return `${bank.keptCents()} cents are kept for a rejected order`;
      return wrongPayment(table, bank, (type) => type !== 'PaymentCaptured');
    },
  };
}

/** An order whose time to pay ends while payments charges it: it is paid in time, or no money is kept. */
function expiredWhileCharged(bank: () => FakeBank, sides: Meeting<FakeBank>['sides']): Meeting<FakeBank> {
  return {
    name: 'an order that is charged and expires',
    sides,
    world: bank,
    remembered,
    check: (table, bank) => {
      const { status, expired } = table.item(paymentKey(order.orderId)) ?? {};
      if (bank.keptCents() !== (status === 'captured' ? order.totalCents : 0))
        return `${bank.keptCents()} cents are kept for a payment that is ${status}`;
      if ((status === 'refunded' || status === 'cancelled') && expired !== true) return 'The reason is lost';
      return wrongPayment(table, bank, () => true);
    },
  };
}

/** What is wrong with a payment that ended. @param isEnd - selects the events that announce its end */
function wrongPayment(
  table: MemoryTable,
  { charges, refunds }: FakeBank,
  isEnd: (type: string) => boolean,
): string | undefined {
  if (charges.size > 1 || refunds.size > 1) return 'It was charged, or refunded, more than once';
  const { status } = table.item(paymentKey(order.orderId)) ?? {};
  const expected = {
    captured: 'PaymentCaptured',
    refunded: 'PaymentRefunded',
    cancelled: 'PaymentCancelled',
    declined: 'PaymentDeclined',
  };
  return writtenEvents(table).filter(isEnd).join() === expected[status as keyof typeof expected]
    ? undefined
    : `The payment is ${status}, and announced as ${writtenEvents(table)}`;
}

describe('two messages that meet on one row, in every order and with a crash at every call:', () => {
  it.each<[string, () => FakeBank, Meeting<FakeBank>['sides'], Bounds]>([
    ['in every order', fakeBank, [charges, cancels], { faults: 0, deviations: deviations(3) }],
    ['with a fault', fakeBank, [charges, cancels], { faults: 1, deviations: deviations(1, 2) }],
    ['with a fault, rejected first', fakeBank, [cancels, charges], { faults: 1, deviations: 1 }],
    ['by a bank that declines', declining, [charges, cancels], { faults: 0, deviations: deviations(3) }],
  ])('no money is kept for an order that was charged and rejected, %s', async (_, bank, sides, bounds) => {
    await walk(rejectedWhileCharged(bank, sides), bounds);
  });

  it.each<[string, () => FakeBank, Meeting<FakeBank>['sides'], Bounds]>([
    ['in every order', fakeBank, [charges, expires], { faults: 0, deviations: deviations(3) }],
    ['with a fault', fakeBank, [charges, expires], { faults: 1, deviations: deviations(1, 2) }],
    ['with a fault, expired first', fakeBank, [expires, charges], { faults: 1, deviations: 1 }],
    ['by a bank that declines', declining, [charges, expires], { faults: 0, deviations: deviations(3) }],
    ['approved late', slowToApprove, [charges, expires], { faults: 0, deviations: deviations(3) }],
    ['approved late, with a fault', slowToApprove, [charges, expires], { faults: 1, deviations: 1 }],
  ])('an order that expires is paid in time, or no money is kept, %s', async (_, bank, sides, bounds) => {
    await walk(expiredWhileCharged(bank, sides), bounds);
  });

  it.each([
    [PaymentDeclined, paymentDeclined],
    [PaymentCancelled, paymentCancelled],
  ])('no stock is held for an order that is not paid ($type)', async (unpaid, event) => {
    await walk(
      {
        name: 'an order that is reserved and not paid',
        sides: [
          { event: orderPlaced, handler: ({ table }) => reserveStock({ table }) },
          { event, handler: ({ table }) => releaseStock({ table }, unpaid) },
        ],
        world: () => undefined,
        remembered: () => '',
        items: [stockRow('coffee', 10)],
        check: (table) => {
          const available = table.item(stockKey('coffee'))?.available;
          if (available !== 10) return `${available} of 10 pieces are in stock`;
          const released = writtenEvents(table).filter((type) => type === 'StockReleased').length;
          return released === 1 ? undefined : `It was released ${released} times`;
        },
      },
      { faults: 1, deviations: deviations(1, 3) },
    );
  });

  it('an order is cancelled and announced once, whichever report is last', async () => {
    await walk(
      {
        name: 'an order that is rejected and refunded',
        sides: [
          { event: stockRejected, handler: ({ table }) => reportOf(StockRejected, table) },
          { event: paymentRefunded, handler: ({ table }) => reportOf(PaymentRefunded, table) },
        ],
        world: () => undefined,
        remembered: () => '',
        items: [orderRow(order)],
        check: (table) => {
          const status = orderStatus(orderOfRow(table.item(orderKey(order.orderId)) ?? {}));
          const written = writtenEvents(table).join();
          return status === 'cancelled' && written === 'OrderCancelled'
            ? undefined
            : `The order is ${status}, and announced as "${written}"`;
        },
      },
      { faults: 1, deviations: deviations(2) },
    );
  });
});

describe('a payment that cancels the expiry of its order while a relay publishes it', () => {
  it.each([
    ['in every order', { faults: 0, deviations: deviations(2, 3) }],
    ['with a fault', { faults: 1, deviations: deviations(1) }],
  ])('is applied, and the expiry is either cancelled or published, %s', async (_, bounds) => {
    const expiry = await dueExpiry();
    await walk(
      {
        name: 'a payment, and a sweep',
        sides: [
          {
            event: paymentCaptured,
            handler: ({ table }, _, clock) => reportOf(PaymentCaptured, table, clock),
          },
          { event: orderPlaced, handler: ({ table }, bus, clock) => sweepOf(table, bus, clock) },
        ],
        world: memoryBus,
        remembered: (bus) => bus.published().length,
        // By the clock of order-status, which is behind, the order has two more seconds.
        items: [
          orderRow({ ...order, payBy: START + 2_000, expiryId: eventIdOf(expiry) }),
          expiry,
          { ...SWEEP_STATE_KEY, schema: SCHEMA, sweptTo: START - MINUTE_MS, shards: 1 },
        ],
        check: (table, bus) => {
          const { payment } = orderOfRow(table.item(orderKey(order.orderId)) ?? {});
          const { status, leaseUntil, dueAt } = table.item(expiry) ?? {};
          if (payment !== 'captured') return `The payment is ${payment}`;
          if (status === 'CANCELLED' && bus.published().length > 0) return 'A cancelled expiry was published';
          return status === 'CANCELLED' || leaseUntil !== dueAt ? undefined : `The expiry is ${status}`;
        },
      },
      bounds,
    );
  });
});

/** The outbox row of an expiry that has been due for two minutes: a sweep reads it. */
async function dueExpiry(): Promise<Item & Key> {
  const clock = { now: () => START - HOUR_MS, sleep: async () => {} };
  const { orderId } = order;
  const [entry] = await ordersOutbox(memoryTable(), clock).entries([
    OrderExpired.create({ aggregateId: orderId, deliverAt: START - 2 * MINUTE_MS, data: { orderId } }),
  ]);
  if (entry === undefined) throw new Error('The outbox made no entry');
  return { ...entry.Put.Item };
}

/** A pass of the sweep, as the work of a message. */
function sweepOf(table: Table, bus: MemoryBus, clock: Clock): Handler {
  const telemetry = memoryTelemetry();
  const pass = createSweepPass({ config: relayConfig({ shards: 1 }), table, bus, clock, telemetry });
  return leased(OrderPlaced, async () => {
    await pass(clock.now() + MINUTE_MS);
  });
}

async function walk<W>(met: Meeting<W>, { faults, deviations: deviationsMax }: Bounds): Promise<void> {
  const { violations, crashPoints } = await exploreScenario(meeting(met, { faults, stalls: 0 }), {
    deviationsMax,
  });
  expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
  expect(crashPoints.size > 0).toBe(faults > 0);
}

/** The handler of an event among those of order-status. */
function reportOf(definition: AnyEventDefinition, table: Table, clock: Clock = systemClock): Handler {
  const handlers = orderStatusHandlers({ table, outbox: ordersOutbox(table, clock), clock });
  const handler = handlers.find((candidate) => candidate.definition === definition);
  if (handler === undefined) throw new Error(`order-status does not handle ${definition.type}`);
  return handler;
}
