import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { type Readings, required } from '../../../demo/readings.ts';
import { countOrders } from '../counts.ts';
import type { Counts, Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

/** Orders that come when the spike is over, and go all the way. */
const ORDERS_AFTER = 3;

const NAIVE_ORDERS = 20;

/**
 * Far more orders at once than the system carries: the backlog waits in the table and in the queue until it is done. How long
 * that takes is a figure of this machine, and no verdict: `npm run bench -- relay` measures rates.
 *
 * Only inventory listens meanwhile. An order that goes all the way is 26 calls to the one thread of this engine, and
 * 2,000 of them take it minutes; relay and inventory make 4 of the 26.
 */
export const spike: Scenario = {
  name: 'spike',
  title: 'thousands of orders at once: nothing of the backlog is lost or duplicated',
  run: async (stage) => {
    const { spikeOrders } = stage.settings;
    stage.step(
      `Only inventory is subscribed; ${spikeOrders} orders are placed as fast as the table accepts them`,
    );
    const subscribeAgain = [await stage.unsubscribe('payments'), await stage.unsubscribe('order-status')];
    const startedAt = Date.now();
    const { wave, eventIds } = await stage.placeInRush(spikeOrders);
    const lastAt = Date.now();
    const sinceLast = () => `${((Date.now() - lastAt) / 1_000).toFixed(1)} s after the last order`;
    stage.step(`The orders are placed, ${Math.round((spikeOrders * 1_000) / (lastAt - startedAt))} a second`);
    const times = (eventId: string) => stage.system.journal.timesPublished(eventId);
    stage.note(`${eventIds.filter((id) => times(id) === 0).length} of their events wait in the outbox`);

    await stage.until('every OrderPlaced is published', () => eventIds.every((id) => times(id) > 0));
    stage.step(`All ${spikeOrders} OrderPlaced are published, ${sinceLast()}`);
    stage.note(`${await queued(stage)} of them wait in the queue of inventory`);
    await stage.until('the queue of inventory is empty', async () => (await queued(stage)) === 0);
    const readings = await stage.settleWhen((found) => lostOf(found, spikeOrders) === 0, wave);
    stage.step(`The system has settled: the backlog was gone ${sinceLast()}`);
    const lost = lostOf(readings, spikeOrders);
    stage.check(lost === 0, 'inventory has processed all of them, and every StockReserved is published');
    tellWays(stage, readings);
    const { duplicated } = countOrders(readings, spikeOrders);

    stage.step(`All consumers are subscribed again; ${ORDERS_AFTER} more orders are processed to the end`);
    for (const subscribe of subscribeAgain) await subscribe();
    const after = await afterwards(stage);
    const naive = await stage.naive.readThenTake(NAIVE_ORDERS);
    stage.note(
      `without Mailroom (read the stock, subtract, write it): of ${NAIVE_ORDERS} concurrent orders for one piece each, the ` +
        `stock was reduced by ${naive.taken}`,
    );
    return { lost: lost + after.lost, duplicated: duplicated + after.duplicated };
  },
};

/** How many messages the queue of inventory holds. They are only counted: reading thousands again and again is load. */
async function queued({ system }: Stage): Promise<number> {
  const { Attributes = {} } = await system.sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: required(system.outputs, 'InventoryQueueUrl'),
      AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'],
    }),
  );
  return Object.values(Attributes).reduce((sum, count) => sum + Number(count), 0);
}

/** Orders of which the part that is carried here is not whole: OrderPlaced, the reservation, and StockReserved. */
function lostOf({ orders, events, inbox }: Readings, placed: number): number {
  const published = (type: string) =>
    new Map(
      events
        .filter(({ row }) => row.type === type && row.status === 'PUBLISHED')
        .map(({ envelope }) => [(envelope.data as { orderId: string }).orderId, envelope.eventId]),
    );
  const [placedEvents, reservedEvents] = [published('OrderPlaced'), published('StockReserved')];
  const whole = orders.filter(
    ({ orderId }) =>
      inbox.inventory.get(placedEvents.get(orderId) ?? '')?.status === 'PROCESSED' &&
      reservedEvents.has(orderId),
  );
  return placed - whole.length;
}

/** Says how the relay came through: which path published, and what was published again. */
function tellWays(stage: Stage, { events }: Readings): void {
  const bySweep = events.filter(({ row }) => row.publishedBy === 'sweep').length;
  const again = events.filter(
    ({ envelope }) => stage.system.journal.timesPublished(envelope.eventId) > 1,
  ).length;
  stage.note(`of ${events.length} events the sweep published ${bySweep}; ${again} were published again`);
}

async function afterwards(stage: Stage): Promise<Counts> {
  const wave = await stage.placeOrders(ORDERS_AFTER);
  const isDone = (found: Readings) => countOrders(found, ORDERS_AFTER).lost === 0;
  return countOrders(await stage.settleWhen(isDone, wave), ORDERS_AFTER);
}
