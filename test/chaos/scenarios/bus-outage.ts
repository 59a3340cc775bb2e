import { pause } from '../../../demo/shop.ts';
import { countOrders } from '../counts.ts';
import type { Act } from '../fault-proxy.ts';
import { refuse, THROTTLED } from '../faults.ts';
import type { Scenario } from '../scenario.ts';

const ORDERS = 20;
const NAIVE_ORDERS = 5;
const OUTAGE_MS = 10_000;

const throttle = refuse(THROTTLED);
const failure = refuse({ status: 500, code: 'InternalFailure' });

/** EventBridge refuses every call for ten seconds or more, while orders come in. */
export const busOutage: Scenario = {
  name: 'bus-outage',
  title: 'PutEvents refuses every call for ten seconds',
  run: async (stage) => {
    stage.step('From now on, PutEvents returns a throttle or a 500');
    let calls = 0;
    let calledByRelay = false;
    const inTurn: Act = (call, forward) => {
      calls += 1;
      calledByRelay ||= call.from !== 'naive';
      return (calls % 2 === 0 ? throttle : failure)(call, forward);
    };
    const outage = stage.fault({ action: 'PutEvents' }, inTurn);
    const endsAt = Date.now() + OUTAGE_MS;
    await stage.placeOrders(ORDERS);
    stage.step(`${ORDERS} orders are placed, and the API has accepted all of them`);
    const naive = await stage.naive.writeThenPublish(NAIVE_ORDERS);
    await pause(endsAt - Date.now());
    await stage.until('the relay has tried to publish', () => calledByRelay);
    const during = (await stage.read()).events;

    stage.step(`The bus is back; it has refused ${outage.hits} calls`);
    outage.remove();
    const waiting = during.filter(({ row }) => row.status === 'PENDING');
    stage.check(waiting.length === ORDERS, `${waiting.length} events are PENDING, and none was published`);
    const readings = await stage.settle(ORDERS);
    stage.step('The system has settled');
    stage.check(
      [...during, ...readings.events].every(({ row }) => row.status !== 'DEAD' && row.attempts === 0),
      'no event became DEAD, and no attempt was counted',
    );
    stage.note(
      `without Mailroom (write, then publish): ${naive.done} orders were stored, and the events of ${naive.lost} ` +
        'were lost',
    );
    return countOrders(readings, ORDERS);
  },
};
