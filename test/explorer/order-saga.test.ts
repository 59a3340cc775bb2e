import { describe, expect, it } from 'vitest';
import { PaymentRefunded, StockRejected } from '../../lambdas/example/events.ts';
import { releaseStock } from '../../lambdas/example/inventory/release-stock.ts';
import { reserveStock } from '../../lambdas/example/inventory/reserve-stock.ts';
import { stockKey, stockRow } from '../../lambdas/example/inventory/stock.ts';
import { orderKey, orderOfRow, orderRow, orderStatus } from '../../lambdas/example/orders/order.ts';
import { orderStatusHandlers } from '../../lambdas/example/orders/order-status.ts';
import { cancelPayment } from '../../lambdas/example/payments/cancel-payment.ts';
import { chargeOrder } from '../../lambdas/example/payments/charge-order.ts';
import { paymentKey } from '../../lambdas/example/payments/payment.ts';
import type { AnyEventDefinition, Handler, Table } from '../../lambdas/runtime/index.ts';
import { exploreScenario, timelineText } from '../../testing/explorer/exploration.ts';
import { type FakeBank, fakeBank } from '../support/fake-bank.ts';
import {
  order,
  orderPlaced,
  paymentDeclined,
  paymentRefunded,
  stockRejected,
} from '../support/order-events.ts';
import { deviations } from './rounds.ts';
import { type Meeting, meeting, writtenEvents } from './two-messages.ts';

/** How far a meeting is walked: how much goes wrong, and how often a schedule leaves the ordinary way. */
interface Bounds {
  readonly faults: number;
  readonly deviations: number | undefined;
}

const remembered = ({ charges, refunds }: FakeBank) => [[...charges], [...refunds]];

const declining = () => fakeBank({ declines: true });

const charges = { event: orderPlaced, handler: chargeOrderOf };
const cancels = { event: stockRejected, handler: cancelPaymentOf };

function chargeOrderOf({ table }: Parts, bank: FakeBank): Handler {
  return chargeOrder({ bank, table });
}

function cancelPaymentOf({ table }: Parts, bank: FakeBank): Handler {
  return cancelPayment({ bank, table });
}

type Parts = Parameters<Meeting<FakeBank>['sides'][0]['handler']>[0];

/** An order that inventory rejects while payments charges it. */
function rejectedWhileCharged(bank: () => FakeBank, sides: Meeting<FakeBank>['sides']): Meeting<FakeBank> {
  return {
    name: 'an order that is charged and rejected',
    sides,
    world: bank,
    remembered,
    check: (table, { charges, refunds, keptCents }) => {
      if (keptCents() !== 0) return `${keptCents()} cents are kept for a rejected order`;
      if (charges.size > 1 || refunds.size > 1) return 'It was charged, or refunded, more than once';
      const { status } = table.item(paymentKey(order.orderId)) ?? {};
      const ends = writtenEvents(table).filter((type) => type !== 'PaymentCaptured');
      const expected = {
        refunded: 'PaymentRefunded',
        cancelled: 'PaymentCancelled',
        declined: 'PaymentDeclined',
      };
      return ends.join() === expected[status as keyof typeof expected]
        ? undefined
        : `The payment is ${status}, and announced as ${writtenEvents(table)}`;
    },
  };
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

  it('no stock is held for an order whose payment was declined', async () => {
    await walk(
      {
        name: 'an order that is reserved and declined',
        sides: [
          { event: orderPlaced, handler: ({ table }) => reserveStock({ table }) },
          { event: paymentDeclined, handler: ({ table }) => releaseStock({ table }) },
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

async function walk<W>(met: Meeting<W>, { faults, deviations: deviationsMax }: Bounds): Promise<void> {
  const { violations, crashPoints } = await exploreScenario(meeting(met, { faults, stalls: 0 }), {
    deviationsMax,
  });
  expect(violations.map(({ what, timeline }) => `${what}\n${timelineText(timeline)}`)).toEqual([]);
  expect(crashPoints.size > 0).toBe(faults > 0);
}

/** The handler of an event among those of order-status. */
function reportOf(definition: AnyEventDefinition, table: Table): Handler {
  const handler = orderStatusHandlers({ table }).find((candidate) => candidate.definition === definition);
  if (handler === undefined) throw new Error(`order-status does not handle ${definition.type}`);
  return handler;
}
