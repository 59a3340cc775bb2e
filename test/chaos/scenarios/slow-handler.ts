import { pause } from '../../../demo/shop.ts';
import { countOrders } from '../counts.ts';
import { answerWhen } from '../faults.ts';
import { isRenew, receivesOf, watchClaims } from '../inbox-calls.ts';
import type { Scenario } from '../scenario.ts';
import { CONSUMER_TIMINGS } from '../timings.ts';

/** Less than the handler takes, against the advice of synth: only the heartbeat keeps the message hidden. */
const HIDDEN_S = 15;

/** After the lease that the claim was granted, so that only renewals can still hold the message. */
const PAST_MS = 250;

/** The bank takes longer to answer than the lease and the visibility timeout last; the heartbeat holds both. */
export const slowHandler: Scenario = {
  name: 'slow-handler',
  title: 'a handler takes longer than its lease and its visibility timeout',
  run: async (stage) => {
    stage.step(
      `A lease lasts ${CONSUMER_TIMINGS.leaseMs / 1_000} s, the visibility timeout ${HIDDEN_S} s; an order is placed`,
    );
    await stage.hideFor('payments', HIDDEN_S);
    const tries = watchClaims(stage, 'payments');
    const renewals = stage.fault({ from: 'payments', action: 'UpdateItem', where: isRenew }, (_, forward) =>
      forward(),
    );
    let mayAnswer = false;
    const bankCalls = stage.fault(
      { from: 'payments', action: 'Invoke' },
      answerWhen(() => mayAnswer),
    );
    await stage.placeOrders(1);
    await stage.until('the handler calls the bank', () => bankCalls.hits === 1);
    const [claim] = tries;
    const placed = (await stage.read()).events.find(({ row }) => row.type === 'OrderPlaced');
    if (claim === undefined || placed === undefined)
      throw new Error('The handler runs without a claim or an event');

    stage.step('The handler has called the bank, which does not respond');
    await pause(claim.leaseUntil + PAST_MS - Date.now());
    await stage.deliver('payments', placed, 1);
    const refused = await stage.until('a duplicate is refused', () =>
      tries.find(({ messageId, granted }) => messageId !== claim.messageId && !granted),
    );
    const row = (await stage.read()).inbox.payments.get(claim.eventId);
    const receives = await receivesOf(stage.system, 'payments', claim.messageId);
    const ranMs = Date.now() - claim.at;
    mayAnswer = true;
    stage.step(
      `The handler has run for ${(ranMs / 1_000).toFixed(1)} s when a duplicate of its message arrives; now the bank responds`,
    );
    stage.check(
      refused.at > claim.leaseUntil &&
        row?.status === 'PROCESSING' &&
        (row.leaseUntil ?? 0) > claim.leaseUntil,
      `the copy found it leased: the lease has been renewed ${renewals.hits} times`,
    );
    stage.check(
      ranMs > HIDDEN_S * 1_000,
      'without a renewal, the queue would have redelivered the message by then',
    );
    stage.note(`SQS has delivered it ${receives === 1 ? 'once' : `${receives} times`}`);

    const readings = await stage.settle(1);
    stage.step('The system has settled');
    const granted = tries.filter((tried) => tried.granted);
    stage.check(
      granted.length === 1 && bankCalls.hits === 1,
      `claims granted: ${granted.length}; calls to the bank: ${bankCalls.hits}`,
    );
    const naive = await stage.naive.leaseThenCharge();
    stage.note(
      `without Mailroom (a lease that is not renewed): a second worker ran, ${naive.charges} charges`,
    );
    return countOrders(readings, 1);
  },
};
