import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { ChaosDatabase } from './chaos-database.ts';
import { countOrders } from './counts.ts';
import type { Caller } from './deployed-functions.ts';
import { drawKills, type Kill } from './kill-plan.ts';
import { killQuietServer } from './quiet-producers.ts';
import type { Counts, Scenario } from './scenario.ts';
import type { Stage } from './stage.ts';

const ORDERS = 40;

/** Placed again and again until everything planned was killed. */
const MORE_ORDERS = 5;

const SOLD_OUT_EVERY = 8;

const QUIET_KILLS = 200;

/** A kill and the recovery take 1 to 4 seconds. */
const LIMIT_MS = 40 * 60_000;

const RELAY = 'database-relay';

/**
 * The callers at whose calls of AWS something is killed, and among how many of their first calls the fatal ones are drawn. Meanwhile, other
 * requests and messages are in the middle of their transactions. Payments causes the reports that order-status receives.
 */
const CALLERS: Readonly<Partial<Record<Caller, number>>> = { 'orders-api': 80, payments: 120, [RELAY]: 12 };

/** The number of kills at the calls of each caller. */
const KILLS_EACH = 3;

/** The server of the orders and its relay are killed again and again, at calls drawn by lot. */
export function databaseKilled(engine: DatabaseEngine, product: string): Scenario {
  return {
    name: `${engine}-killed`,
    title: `the ${product} of the orders and its relay are killed at random`,
    engine,
    limitMs: LIMIT_MS,
    run: async (stage) => {
      const counts = await killBusy(stage);
      await killQuiet(stage, engine);
      return counts;
    },
  };
}

async function killBusy(stage: Stage): Promise<Counts> {
  const { database } = stage.system;
  if (database === undefined)
    throw new MailroomError('CHAOS_DATABASE', 'The order system has no database beside its table.');
  const { seed } = stage.settings;
  const plans = drawKills({ seed, victims: CALLERS, each: KILLS_EACH });
  const planned = KILLS_EACH * plans.size;
  stage.step(
    `${ORDERS} orders are placed; the server or the relay is killed ${planned} times (seed ${seed})`,
  );
  const killed = killByPlans(stage, database, plans);
  const isOver = () => killed.server + killed.relay === planned;
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
  stage.check(!database.relay().hasEnded(), 'the relay survived the kills of the server');
  checkOrders(stage, await database.items(), placed);
  const again = readings.events.filter(
    ({ envelope }) => stage.system.journal.timesPublished(envelope.eventId, RELAY) > 1,
  ).length;
  stage.note(`the relay published ${again} events more than once, and the inboxes absorbed them`);
  return countOrders(readings, placed);
}

/** Kills another server, whose producers are quiet: after the crash of a busy one, hardly a transaction id is assigned again. */
async function killQuiet(stage: Stage, engine: DatabaseEngine): Promise<void> {
  stage.step(`A server with few, light producers is killed ${QUIET_KILLS} times`);
  const answers = await killQuietServer({ engine, kills: QUIET_KILLS, seed: stage.settings.seed });
  const { commits, rolledBack, falselyCommitted, falselyFailed, lost, ghosts, lostAnswers, unknown, reused } =
    answers;
  stage.check(
    falselyCommitted === 0 && falselyFailed === 0,
    `of ${commits} transactions, ${falselyCommitted} were answered as committed without their rows, and ${falselyFailed} as failed with them`,
  );
  stage.check(
    lost === 0 && ghosts === 0,
    `${lost} rows have no event, and ${ghosts} events have no row; ${rolledBack} producers rolled back`,
  );
  stage.note(`${lostAnswers} lost the answer to COMMIT; ${unknown} were answered as unknown`);
  if (engine === 'postgres')
    stage.note(
      `by the status of their transaction id, ${reused} would have been called committed without their rows`,
    );
}

/**
 * Kills the server at the calls of the plans, from now on; at every other one of the relay, the relay.
 *
 * @returns the number of kills so far; it grows
 */
function killByPlans(stage: Stage, database: ChaosDatabase, plans: ReadonlyMap<Caller, readonly Kill[]>) {
  const killed = { server: 0, relay: 0 };
  for (const [caller, plan] of plans) {
    let calls = 0;
    const dead = new Set<number>();
    stage.fault({ from: caller, where: ({ pid }) => !dead.has(pid) }, async ({ pid, action }, forward) => {
      calls += 1;
      const n = plan.findIndex(({ atCall }) => atCall === calls);
      const kill = plan[n];
      if (kill === undefined) return forward();
      const victim = caller === RELAY && n % 2 === 0 ? 'relay' : 'server';
      if (victim === 'relay') dead.add(pid);
      const answer = kill.moment === 'after' ? await forward() : undefined;
      await (victim === 'relay' ? database.killRelay() : database.killServer());
      killed[victim] += 1;
      stage.step(`The ${victim} is killed ${kill.moment} call ${kill.atCall} of ${caller} (${action})`);
      return answer ?? (victim === 'relay' ? undefined : forward());
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
