import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { isMailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { createOutbox, dynamoTable, entryEventId, type Outbox } from '../../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { BillDue, billKey, endOf } from '../bills.handler.ts';
import type { Caller } from '../deployed-functions.ts';
import type { Call } from '../fault-proxy.ts';
import { killAfter, killBefore } from '../faults.ts';
import { drawKills, randomNumbers } from '../kill-plan.ts';
import { killByPlan, momentsOf } from '../planned-kills.ts';
import type { Scenario } from '../scenario.ts';
import type { Stage } from '../stage.ts';
import { RELAY_TIMINGS } from '../timings.ts';

/** Bills that are paid long before they are due, that are never paid, and that are paid when a relay claims their timer. */
const BILLS = { early: 6, never: 6, raced: 18 };
const ALL = BILLS.early + BILLS.never + BILLS.raced;

/** From the commits to the first due time, and between two due times. */
const DUE_AFTER_MS = 20_000;
const DUE_EVERY_MS = 100;

/** The timers of unpaid bills are due this long after the others: once they are published, every sweep has passed the cancelled ones. */
const NEVER_PAID_LATER_MS = 10_000;

/** When a raced bill is paid: before the claim of its timer, at the same time, or after it. */
const MOMENTS = ['before', 'during', 'after'] as const;

/** The interval, in payments, at which the answer of the table is lost. */
const LOST_ANSWER_EVERY = 3;

const SHARDS = 8;
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
    await stage.deployExtra('collector');
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

    const raced = raceClaims(stage, bills, cashier.pay);
    const { early, kills } = watchPublishing(stage, bills);
    const lastDue = Math.max(...bills.filter(({ kind }) => kind === 'raced').map(({ dueAt }) => dueAt));
    await stage.until('the timers are due', () => Date.now() > lastDue);
    stage.step('They are due, and both relays go on; each other bill is paid when its timer is claimed');
    resumeSweep();
    await resumeStream();

    const ends = () => readEnds(stage, bills);
    await stage.until('every bill has ended, and every raced one was tried', async () => {
      const read = await ends();
      const isOver = read.every(({ status, timer }) => status !== 'open' && timer !== 'PENDING');
      return (
        !stage.isTimeLeft() || (isOver && raced.size === BILLS.raced && [...raced.values()].every(isTold))
      );
    });
    const read = await ends();
    const count = (is: (end: End) => boolean) => read.filter(is).length;
    const racedEnds = read.filter(({ bill }) => bill.kind === 'raced');
    const won = racedEnds.filter(({ status }) => status === 'paid').length;
    stage.step(`${won} raced payments won, ${racedEnds.length - won} timers did`);
    stage.check(won > 0 && won < racedEnds.length, 'both happened');
    stage.check(kills.length === 2, `relays were killed ${kills.join(' and ')}`);
    stage.check(killed.length > 0, momentsOf(killed, 'collector'));
    stage.check(cashier.lostAnswers() > 0, `${cashier.lostAnswers()} answers to payments were lost`);
    stage.check(early.size === 0, `${early.size} timers were published before they were due`);
    const untrue = racedEnds.filter(({ bill, status }) => raced.get(bill.billId) !== (status === 'paid'));
    stage.check(untrue.length === 0, `${untrue.length} payers were told something else than what is stored`);
    const cancelled = read.filter(({ timer }) => timer === 'CANCELLED');
    const received = cancelled.filter(({ bill, inbox }) => inbox || journal.timesPublished(bill.timerId) > 0);
    stage.check(
      received.length === 0,
      `of ${cancelled.length} cancelled timers, ${received.length} were published`,
    );
    const again = count(({ bill }) => journal.timesPublished(bill.timerId) > 1);
    stage.check(again > 0, `${again} timers were published again; the inbox absorbed them`);

    return {
      lost: count(
        ({ status, timer }) => status === 'open' || (status === 'expired') !== (timer === 'PUBLISHED'),
      ),
      duplicated: received.length + count(({ status, timer }) => status === 'paid' && timer !== 'CANCELLED'),
    };
  },
};

interface Bill {
  readonly billId: string;
  readonly kind: keyof typeof BILLS;
  readonly timerId: string;
  readonly dueAt: number;
}

/** Commits bills with their timers, and pays them: the payment cancels the timer in its own transaction. */
function openCashier(stage: Stage) {
  const { runId, system } = stage;
  const { tableName, proxy } = system;
  const client = new DynamoDBClient({ endpoint: proxy.urlFor('cashier') });
  const table = dynamoTable({ client, tableName });
  const { bornLeaseMs } = RELAY_TIMINGS;
  const outbox: Outbox = createOutbox({
    config: { service: BillDue.source, tableName, shards: SHARDS, bornLeaseMs },
    table,
  });
  let isPaying = false;
  let calls = 0;
  let lost = 0;
  stage.fault(
    { from: 'cashier', action: 'TransactWriteItems', where: () => isPaying },
    async (_, forward) => {
      calls += 1;
      const answer = await forward();
      if (calls % LOST_ANSWER_EVERY !== 0) return answer;
      lost += 1;
      return undefined;
    },
  );
  return {
    lostAnswers: () => lost,
    commitBills: async (): Promise<readonly Bill[]> => {
      const start = Date.now() + DUE_AFTER_MS;
      const bills: Bill[] = [];
      for (const kind of Object.keys(BILLS) as (keyof typeof BILLS)[]) {
        for (let n = 0; n < BILLS[kind]; n += 1) {
          const billId = `${runId}-${kind}-${n}`;
          const dueAt = start + n * DUE_EVERY_MS + (kind === 'never' ? NEVER_PAID_LATER_MS : 0);
          const entries = await outbox.entries([
            BillDue.create({ aggregateId: billId, data: {}, deliverAt: dueAt }),
          ]);
          const [timerId = ''] = entries.map(entryEventId);
          const bill = { ...billKey(billId), status: 'open', timerId };
          await outbox.commit({
            writes: [{ Put: { Item: bill, ConditionExpression: 'attribute_not_exists(PK)' } }, ...entries],
          });
          bills.push({ billId, kind, timerId, dueAt });
        }
      }
      isPaying = true;
      return bills;
    },
    /** Returns true if the bill is paid, and false if it was too late. A payment whose answer is lost is made again: its conditions refuse a second one. */
    pay: async ({ billId, timerId }: Bill): Promise<boolean> => {
      for (;;) {
        try {
          await outbox.commit({ writes: [endOf(billId, 'paid'), outbox.cancellation(timerId)] });
          return true;
        } catch (error) {
          if (!isMailroomError(error)) continue;
          if (error.code !== 'TRANSACTION_CANCELLED') throw error;
          const bill = await table.get(billKey(billId), { consistent: true });
          return bill?.status === 'paid';
        }
      }
    },
  };
}

/** Kills a relay that is about to publish timers, and one whose timers the bus has just accepted; notes timers that are published too early. */
function watchPublishing(stage: Stage, bills: readonly Bill[]) {
  const early = new Set<string>();
  const kills: string[] = [];
  const kill = { before: killBefore(stage.system.kill), after: killAfter(stage.system.kill) };
  for (const from of RELAYS) {
    stage.fault({ from, action: 'PutEvents' }, (call, forward) => {
      const published = bills.filter((bill) => isAbout(call, bill));
      for (const { timerId } of published.filter(({ dueAt }) => dueAt > Date.now())) early.add(timerId);
      const moment = (['before', 'after'] as const)[kills.length];
      if (published.length === 0 || moment === undefined) return forward();
      kills.push(`${moment} a publish (${from})`);
      return kill[moment](call, forward);
    });
  }
  return { early, kills };
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

const isTold = (answer: boolean | undefined) => answer !== undefined;

/** What has become of a bill. */
interface End {
  readonly bill: Bill;
  readonly status: unknown;
  /** The status of the timer's row. */
  readonly timer: unknown;
  /** Whether the consumer has a row of the timer. */
  readonly inbox: boolean;
}

function readEnds({ system }: Stage, bills: readonly Bill[]): Promise<readonly End[]> {
  return Promise.all(
    bills.map(async (bill) => {
      const { PK, SK } = outboxKeyOf(bill.timerId);
      const [stored] = await system.rows(billKey(bill.billId).PK);
      const timer = (await system.rows(String(PK))).find((row) => row.SK === SK);
      const inbox = await system.rows(String(inboxKey('collector', bill.timerId).PK));
      return { bill, status: stored?.status, timer: timer?.status, inbox: inbox.length > 0 };
    }),
  );
}

/** Whether a call names the timer of a bill. */
function isAbout({ body }: Call, { timerId }: Bill): boolean {
  return JSON.stringify(body).includes(timerId);
}
