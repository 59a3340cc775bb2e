import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { ChaosPostgres } from '../chaos-postgres.ts';
import { countOrders } from '../counts.ts';
import type { Caller } from '../deployed-functions.ts';
import { drawKills, type Kill } from '../kill-plan.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

const ORDERS = 40;

/** Placed again and again until everything planned was killed. */
const MORE_ORDERS = 5;

const SOLD_OUT_EVERY = 8;

const RELAY = 'postgres-relay';

/**
 * The callers at whose calls of AWS the server is killed, and among how many of their first calls the fatal ones are drawn. Meanwhile, other
 * requests and messages are in the middle of their transactions. Payments causes the reports that order-status receives.
 */
const SERVER_KILLS: Readonly<Partial<Record<Caller, number>>> = {
  'orders-api': 80,
  payments: 120,
  [RELAY]: 8,
};

/** The same for the relay, at its own calls. */
const RELAY_KILLS: Readonly<Partial<Record<Caller, number>>> = { [RELAY]: 8 };

/** The number of kills at the calls of each caller. */
const KILLS_EACH = 2;

/** The server of the orders and its relay are killed again and again, at calls drawn by lot. */
export const postgresKilled: Scenario = {
  name: 'postgres-killed',
  title: 'the PostgreSQL of the orders and its relay are killed at random',
  isOnPostgres: true,
  run: async (stage) => {
    const { postgres } = stage.system;
    if (postgres === undefined)
      throw new MailroomError('CHAOS_POSTGRES', 'The order system has no PostgreSQL.');
    const { seed } = stage.settings;
    const plans: Plans = {
      server: drawKills({ seed, victims: SERVER_KILLS, each: KILLS_EACH }),
      relay: drawKills({ seed: seed + 1, victims: RELAY_KILLS, each: KILLS_EACH }),
    };
    const planned = plans.server.size * KILLS_EACH;
    stage.step(
      `${ORDERS} orders are placed; the server is killed ${planned} times, the relay ${KILLS_EACH} times (seed ${seed})`,
    );
    const killed = killByPlans(stage, postgres, plans);
    const isOver = () => killed.server === planned && killed.relay === KILLS_EACH;
    let placed = ORDERS;
    await stage.placeOrders(ORDERS, SOLD_OUT_EVERY);
    let readings = await stage.settle(placed);
    for (; stage.isTimeLeft() && !isOver(); ) {
      placed += MORE_ORDERS;
      await stage.placeOrders(MORE_ORDERS);
      readings = await stage.settle(placed);
    }

    stage.step('The system has settled');
    stage.check(isOver(), `the server was killed ${killed.server} times, the relay ${killed.relay} times`);
    stage.check(!postgres.relay().hasEnded(), 'the relay survived the kills of the server');
    checkOrders(stage, await postgres.items(), placed);
    const again = readings.events.filter(
      ({ envelope }) => stage.system.journal.timesPublished(envelope.eventId, RELAY) > 1,
    ).length;
    stage.note(`the relay published ${again} events more than once, and the inboxes absorbed them`);
    return countOrders(readings, placed);
  },
};

type Plan = ReadonlyMap<Caller, readonly Kill[]>;

/** Kills the server and the relay at the calls of their plans, from now on. @returns the number of kills so far; it grows */
function killByPlans(
  stage: Stage,
  postgres: ChaosPostgres,
  plans: { readonly server: Plan; readonly relay: Plan },
) {
  const killed = { server: 0, relay: 0 };
  for (const caller of plans.server.keys()) {
    let calls = 0;
    const dead = new Set<number>();
    stage.fault({ from: caller, where: ({ pid }) => !dead.has(pid) }, async ({ pid, action }, forward) => {
      calls += 1;
      const n = calls;
      const isDue = (plan: Plan, moment: Kill['moment']) =>
        plan.get(caller)?.some((kill) => kill.atCall === n && kill.moment === moment);
      const kill = async (moment: Kill['moment']) => {
        const when = `is killed ${moment} call ${n} of ${caller} (${action})`;
        if (isDue(plans.server, moment)) {
          await postgres.killServer();
          killed.server += 1;
          stage.step(`The server ${when}`);
        }
        if (isDue(plans.relay, moment)) {
          dead.add(pid);
          await postgres.killRelay();
          killed.relay += 1;
          stage.step(`The relay ${when}`);
        }
      };
      await kill('before');
      if (dead.has(pid)) return undefined;
      const answer = await forward();
      await kill('after');
      return answer;
    });
  }
  return killed;
}

/** Compares all orders in the database with their events, and with the answers of the API. */
function checkOrders(stage: Stage, items: readonly Record<string, unknown>[], placed: number): void {
  const orderIds = items.flatMap(({ PK, orderId }) =>
    String(PK).startsWith('ORDER#') ? [String(orderId)] : [],
  );
  const eventsOf = (type: string) =>
    items.flatMap((item) => (item.type === type ? [orderOf(String(item.envelope))] : []));
  const [placedEvents, expiries] = [eventsOf('OrderPlaced'), eventsOf('OrderExpired')];
  const answers = [...stage.answers().values()];
  const answered = answers.flatMap((bodies) => [...bodies]).map((body) => String(JSON.parse(body).orderId));
  stage.check(
    answers.length === placed && answered.length === placed && answered.every((id) => orderIds.includes(id)),
    `${placed} requests were answered, each always alike, and their orders exist`,
  );
  stage.check(
    isSame(orderIds, placedEvents) && isSame(orderIds, expiries),
    `each of ${orderIds.length} orders has its two events, and no event lacks its order`,
  );
}

function orderOf(envelope: string): string {
  return (JSON.parse(envelope) as { readonly data: { readonly orderId: string } }).data.orderId;
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.toSorted().join() === others.toSorted().join();
}
