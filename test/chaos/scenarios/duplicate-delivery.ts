import { countOrders } from '../counts.ts';
import { answerWhen } from '../faults.ts';
import type { Scenario } from '../scenario.ts';

const ORDERS = 3;
const COPIES = 5;

/** The same event comes to payments again and again: before, while and after the bank charges for it. */
export const duplicateDelivery: Scenario = {
  name: 'duplicate-delivery',
  title: 'the same event is delivered sixteen times',
  run: async (stage) => {
    stage.step(`The relay is paused, and the bank is slow; ${ORDERS} orders are placed`);
    let mayAnswer = false;
    const bankCalls = stage.fault(
      { from: 'payments', action: 'Invoke' },
      answerWhen(() => mayAnswer),
    );
    const sweepAgain = stage.holdSweep();
    const resume = await stage.pauseMapping('relay-stream');
    await stage.placeOrders(ORDERS);
    const placed = (await stage.read()).events.filter(({ envelope }) => envelope.type === 'OrderPlaced');
    const deliverAll = () => Promise.all(placed.map((event) => stage.deliver('payments', event, COPIES)));

    stage.step(`payments receives ${COPIES} duplicates of each OrderPlaced before it is published`);
    await deliverAll();
    await stage.until('payments calls the bank', () => bankCalls.hits > 0);
    stage.step(`${COPIES} more arrive while the bank decides, and the relay publishes the event itself`);
    await deliverAll();
    await resume();
    sweepAgain();
    mayAnswer = true;
    await stage.settle(ORDERS);

    stage.step(`${COPIES} more arrive after everything is done`);
    await deliverAll();
    const readings = await stage.settle(ORDERS);
    const requests = await Promise.all(
      placed.map(({ envelope }) =>
        stage.system.rows(`REQUEST#${envelope.aggregateId}`, stage.system.bankTableName),
      ),
    );
    const attempts = placed.map(({ envelope }) => readings.inbox.payments.get(envelope.eventId)?.attempts);
    const keys = requests.flat().map(({ idempotencyKey }) => idempotencyKey);
    stage.check(
      new Set(keys).size === ORDERS,
      `the bank was called ${keys.length} times for ${ORDERS} orders, with one key for each`,
    );
    stage.check(
      attempts.every((count) => count === 1),
      'payments started each event once',
    );

    const naive = await stage.naive.lookThenCharge(COPIES);
    stage.note(
      `without Mailroom (check for a record, charge, record it): ${COPIES} concurrent duplicates of one ` +
        `order, ${naive.charges} charges`,
    );
    return countOrders(readings, ORDERS);
  },
};
