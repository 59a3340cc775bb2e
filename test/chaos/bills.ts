import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { createOutbox, dynamoTable, entryEventId, type Outbox } from '../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { BillDue, billKey, endOf } from './bills.handler.ts';
import type { Stage } from './stage.ts';
import { RELAY_TIMINGS } from './timings.ts';

/** Bills that are paid long before they are due, that are never paid, and that are paid when a relay claims their timer. */
export const BILLS = { early: 6, never: 6, raced: 18 };

/** From the commits to the first due time, and between two due times. */
const DUE_AFTER_MS = 20_000;
const DUE_EVERY_MS = 100;

/** The interval, in payments, at which the answer of the table is lost. */
const LOST_ANSWER_EVERY = 3;

const SHARDS = 8;

/** A bill and its timer. */
export interface Bill {
  readonly billId: string;
  readonly kind: keyof typeof BILLS;
  readonly timerId: string;
  readonly dueAt: number;
}

/** Commits bills with their timers, and pays them: the payment cancels the timer in its own transaction. */
export function openCashier(stage: Stage) {
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
          const dueAt = start + n * DUE_EVERY_MS;
          const entries = await outbox.entries([
            BillDue.create({ aggregateId: billId, data: {}, deliverAt: dueAt }),
          ]);
          const [timerId = ''] = entries.map(entryEventId);
          const bill = { ...billKey(billId), timerId };
          await outbox.commit({
            writes: [{ Put: { Item: bill, ConditionExpression: 'attribute_not_exists(PK)' } }, ...entries],
          });
          bills.push({ billId, kind, timerId, dueAt });
        }
      }
      isPaying = true;
      return bills;
    },
    /**
     * Returns true if the bill is paid, and false if it was too late. A payment whose answer is lost is made again: the cancelled timer
     * refuses a second one.
     */
    pay: async ({ billId, timerId }: Bill): Promise<boolean> => {
      for (;;) {
        try {
          await outbox.commit({ writes: [endOf(billId, 'payments'), outbox.cancellation(timerId)] });
          return true;
        } catch (error) {
          if (!isMailroomError(error) && stage.isTimeLeft()) continue;
          if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) throw error;
          const bill = await table.get(billKey(billId), { consistent: true });
          return Number(bill?.payments ?? 0) > 0;
        }
      }
    },
  };
}

/** The end of a bill. */
export interface End {
  readonly bill: Bill;
  readonly payments: number;
  readonly expirations: number;
  /** The status of the timer's row. */
  readonly timer: unknown;
  /** The status of the consumer's row of the timer. */
  readonly inbox: unknown;
}

/** How often a bill has ended: once, if all is well. */
export const endsOf = ({ payments, expirations }: End) => payments + expirations;

/** Returns true if a bill has ended, and its timer in the same way. */
export function isSettled({ payments, expirations, timer, inbox }: End): boolean {
  const isExpired = timer === 'PUBLISHED' && inbox === 'PROCESSED' && expirations > 0;
  return isExpired || (timer === 'CANCELLED' && payments > 0);
}

/** Reads what has become of bills. */
export function readEnds({ system }: Stage, bills: readonly Bill[]): Promise<readonly End[]> {
  return Promise.all(
    bills.map(async (bill) => {
      const { PK, SK } = outboxKeyOf(bill.timerId);
      const [stored] = await system.rows(billKey(bill.billId).PK);
      const timer = (await system.rows(String(PK))).find((row) => row.SK === SK);
      const [inbox] = await system.rows(inboxKey('collector', bill.timerId).PK);
      const count = (value: unknown) => Number(value ?? 0);
      return {
        bill,
        payments: count(stored?.payments),
        expirations: count(stored?.expirations),
        timer: timer?.status,
        inbox: inbox?.status,
      };
    }),
  );
}
