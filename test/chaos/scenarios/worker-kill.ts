import { countOrders } from '../counts.ts';
import type { FunctionName } from '../deployed-functions.ts';
import type { Call } from '../fault-proxy.ts';
import { drawKills } from '../kill-plan.ts';
import { killByPlan, momentsOf } from '../planned-kills.ts';
import type { Scenario } from '../scenario.ts';

const ORDERS = 40;

/** Placed again and again until each function has been killed at least once. */
const MORE_ORDERS = 5;

/** Five of the first ones are for goods that are sold out: they have to be refunded, also by workers that are killed. */
const SOLD_OUT_EVERY = 8;

/** The functions that are killed, and among how many of its first calls the fatal ones of each are drawn. */
const VICTIMS: Readonly<Partial<Record<FunctionName, number>>> = {
  'relay-stream': 10,
  'relay-sweep': 40,
  payments: 120,
  inventory: 60,
  notifications: 90,
  'order-status': 60,
};

/** How often each function is killed. */
const KILLS_EACH = 3;

/** The processes of the relay and of all consumers are killed again and again, at calls drawn by lot. */
export const workerKill: Scenario = {
  name: 'worker-kill',
  title: 'the processes of the relay and of the consumers are killed at random',
  run: async (stage) => {
    const { seed } = stage.settings;
    const plans = drawKills({ seed, victims: VICTIMS, each: KILLS_EACH });
    stage.step(`${ORDERS} orders are placed; each function is killed ${KILLS_EACH} times (seed ${seed})`);
    const taken = new Set<string>();
    const killed = killByPlan(stage, plans, {
      onCall: (call) => {
        if (isTakeover(call)) taken.add(JSON.stringify(call.body.Key));
      },
    });
    const killsOf = (victim: FunctionName) => killed.filter((one) => one.victim === victim);
    let placed = ORDERS;
    await stage.placeOrders(ORDERS, SOLD_OUT_EVERY);
    let readings = await stage.settle(placed);
    // A slow machine makes larger batches, and so fewer calls: then the fatal ones are still to come.
    for (; stage.isTimeLeft() && [...plans.keys()].some((victim) => killsOf(victim).length === 0); ) {
      placed += MORE_ORDERS;
      await stage.placeOrders(MORE_ORDERS);
      readings = await stage.settle(placed);
    }

    stage.step(`The system has settled; ${killed.length} processes were killed`);
    for (const victim of plans.keys()) {
      stage.check(killsOf(victim).length > 0, momentsOf(killed, victim));
    }
    stage.check(taken.size > 0, `${taken.size} messages of killed workers were taken over`);
    const again = readings.events.filter(
      ({ envelope }) => stage.system.journal.timesPublished(envelope.eventId) > 1,
    ).length;
    stage.note(`${again} events were published more than once, and absorbed`);
    stage.note(`${readings.refunds.size} charges were refunded: their goods were sold out`);

    const naive = await stage.naive.chargeThenRemember();
    stage.note(
      'without Mailroom (charge, then record the event): killed between the two, it charges again when the event is ' +
        `redelivered, ${naive.charges} charges`,
    );
    return countOrders(readings, placed);
  },
};

/** Whether a call takes a message over from a worker that left it. */
function isTakeover({ body }: Call): boolean {
  return Object.keys(body.ExpressionAttributeValues ?? {}).includes(':unfinished');
}
