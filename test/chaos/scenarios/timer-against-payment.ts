import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { BILLS, type Bill, endsOf, isSettled, openCashier, readEnds } from '../bills.ts';
import type { Caller } from '../deployed-functions.ts';
import type { Call } from '../fault-proxy.ts';
import { killAfter, killBefore } from '../faults.ts';
import { drawKills, randomNumbers } from '../kill-plan.ts';
import { killByPlan, momentsOf } from '../planned-kills.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';

const ALL = BILLS.early + BILLS.never + BILLS.raced;

/** When a raced bill is paid: before the claim of its timer, at the same time, or after it. */
const MOMENTS = ['before', 'during', 'after'] as const;

const COLLECTOR_KILLS = 2;
const RELAYS: readonly Caller[] = ['relay-stream', 'relay-sweep'];

/** Bills are paid while both relays claim their timers, and relays, consumer and answers are lost. */
export const timerAgainstPayment: Scenario = {
  name: 'timer-against-payment',
  title:
    'bills are paid while relays claim their timers; processes are killed, and answers to payments are lost',
  run: async (stage) => {
    const { seed } = stage.settings;
    const { journal } = stage.system;
    const collector = await stage.deployExtra('collector');
    const plan = drawKills({ seed, victims: { collector: BILLS.never }, each: COLLECTOR_KILLS });
    const killed = killByPlan(stage, plan, { action: 'TransactWriteItems' });
    const cashier = openCashier(stage);

    stage.step(
      `${ALL} bills are committed, each with a timer; the relays are held until the timers are due (seed ${seed})`,
    );
    const resumeStream = await stage.pauseMapping('relay-stream');
    const resumeSweep = stage.holdSweep();
    const bills = await cashier.commitBills();
    const paidEarly = await Promise.all(bills.filter(({ kind }) => kind === 'early').map(cashier.pay));
    stage.check(paidEarly.every(Boolean), `${paidEarly.length} are paid long before they are due`);

    const told = raceClaims(stage, bills, cashier.pay);
    const { early, kills } = watchPublishing(stage, bills);
    const lastDue = Math.max(...bills.map(({ dueAt }) => dueAt));
    await stage.until('the timers are due', () => Date.now() > lastDue);
    stage.step('They are due, and both relays go on; each other bill is paid when its timer is claimed');
    const hasPassed = watchSweep(stage);
    resumeSweep();
    await resumeStream();

    const isOver = async () => {
      const ends = await readEnds(stage, bills);
      const { queued } = await collector.depths();
      const isTold = told.size === BILLS.raced && [...told.values()].every((answer) => answer !== undefined);
      return isTold && queued === 0 && ends.every((end) => isSettled(end) && hasPassed(end.bill));
    };
    await stage.until(
      'every bill has ended, and a sweep has passed its timer',
      async () => !stage.isTimeLeft() || (await isOver()),
    );
    const ends = await readEnds(stage, bills);
    const raced = ends.filter(({ bill }) => bill.kind === 'raced');
    const won = raced.filter(({ payments }) => payments > 0).length;
    stage.step(`${won} raced payments won, ${raced.length - won} timers did`);
    stage.check(won > 0 && won < raced.length, 'both happened');
    stage.check(kills.length === 2, `relays were killed ${kills.join(' and ')}`);
    stage.check(killed.length > 0, momentsOf(killed, 'collector'));
    stage.check(cashier.lostAnswers() > 0, `${cashier.lostAnswers()} answers to payments were lost`);
    stage.check(early.size === 0, `${early.size} timers were published before they were due`);
    const untrue = raced.filter(({ bill, payments }) => told.get(bill.billId) !== payments > 0).length;
    stage.check(untrue === 0, `${untrue} payers were told something else than what is stored`);
    const cancelled = ends.filter(({ timer }) => timer === 'CANCELLED');
    const received = cancelled.filter(
      ({ bill, inbox }) => inbox !== undefined || journal.timesPublished(bill.timerId) > 0,
    ).length;
    stage.check(received === 0, `of ${cancelled.length} cancelled timers, ${received} were published`);
    const again = ends.filter(({ bill }) => journal.timesPublished(bill.timerId) > 1).length;
    stage.check(again > 0, `${again} timers were published again; the inbox absorbed them`);
    const { dead } = await collector.depths();
    stage.check(dead === 0, `${dead} dead letters`);
    return {
      lost: ends.filter((end) => !isSettled(end)).length,
      duplicated: received + ends.reduce((sum, end) => sum + Math.max(0, endsOf(end) - 1), 0),
    };
  },
};

/** Kills a relay that is about to publish timers, and one whose timers the bus has just accepted; notes timers that are published too early. */
function watchPublishing(stage: Stage, bills: readonly Bill[]) {
  const early = new Set<string>();
  const kills: string[] = [];
  const dead = new Set<number>();
  const kill = { before: killBefore(stage.system.kill), after: killAfter(stage.system.kill) };
  for (const from of RELAYS) {
    stage.fault({ from, action: 'PutEvents', where: ({ pid }) => !dead.has(pid) }, (call, forward) => {
      const published = bills.filter((bill) => isAbout(call, bill));
      for (const { timerId } of published.filter(({ dueAt }) => dueAt > Date.now())) early.add(timerId);
      const moment = (['before', 'after'] as const)[kills.length];
      if (published.length === 0 || moment === undefined) return forward();
      dead.add(call.pid);
      kills.push(`${moment} a publish (${from})`);
      return kill[moment](call, forward);
    });
  }
  return { early, kills };
}

/** Returns a function that returns true once a sweep has read the partition of a timer after it was due. */
function watchSweep({ fault }: Stage): (bill: Bill) => boolean {
  const readAt = new Map<string, number>();
  fault({ from: 'relay-sweep', action: 'Query' }, async (call, forward) => {
    const startedAt = Date.now();
    const answer = await forward();
    const values = (call.body.ExpressionAttributeValues ?? {}) as Record<string, { readonly S?: string }>;
    for (const { S } of Object.values(values)) if (S !== undefined) readAt.set(S, startedAt);
    return answer;
  });
  return ({ timerId, dueAt }) => (readAt.get(String(outboxKeyOf(timerId).PK)) ?? 0) > dueAt + CLOCK_SKEW_MS;
}

/**
 * Pays each raced bill when a relay first claims its timer: before the claim, during it, or after it.
 *
 * @returns the answers to the payers, by bill; it grows
 */
function raceClaims(
  stage: Stage,
  bills: readonly Bill[],
  pay: (bill: Bill) => Promise<boolean>,
): ReadonlyMap<string, boolean | undefined> {
  const random = randomNumbers(stage.settings.seed);
  const moments = new Map(
    bills
      .filter(({ kind }) => kind === 'raced')
      .map((bill, n) => [bill, MOMENTS[(n + Math.floor(random() * 2)) % MOMENTS.length]] as const),
  );
  const answers = new Map<string, boolean | undefined>();
  const payThose = (those: readonly Bill[], moment: (typeof MOMENTS)[number]) =>
    Promise.all(
      those
        .filter((bill) => moments.get(bill) === moment)
        .map(async (bill) => void answers.set(bill.billId, await pay(bill))),
    );
  for (const from of RELAYS) {
    stage.fault({ from, action: 'BatchExecuteStatement' }, async (call, forward) => {
      const claimed = [...moments.keys()].filter((bill) => !answers.has(bill.billId) && isAbout(call, bill));
      for (const { billId } of claimed) answers.set(billId, undefined);
      await payThose(claimed, 'before');
      const [answer] = await Promise.all([forward(), payThose(claimed, 'during')]);
      await payThose(claimed, 'after');
      return answer;
    });
  }
  return answers;
}

/** Whether a call names the timer of a bill. */
function isAbout({ body }: Call, { timerId }: Bill): boolean {
  return JSON.stringify(body).includes(timerId);
}
