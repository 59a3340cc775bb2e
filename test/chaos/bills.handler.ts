import { z } from 'zod/mini';
import { defineEvent, type Item, lambdaConsumer, transactional } from '../../lambdas/runtime/index.ts';
import type { Update } from '../../lambdas/runtime/internals.ts';

/** The timer of a bill: it is due unless the bill is paid before. */
export const BillDue = defineEvent({
  // The relays publish only events of services that the system declares.
  source: 'orders',
  type: 'BillDue',
  version: 1,
  aggregateType: 'Bill',
  schema: z.object({}),
});

export function billKey(billId: string): Item & { PK: string; SK: string } {
  return { PK: `BILL#${billId}`, SK: 'BILL' };
}

/** Counts an end of a bill. Only the cancellation of its timer keeps a bill from ending twice: the row has no condition for that. */
export function endOf(billId: string, end: 'payments' | 'expirations'): { readonly Update: Update } {
  return {
    Update: {
      Key: billKey(billId),
      UpdateExpression: 'ADD #end :one',
      ConditionExpression: 'attribute_exists(PK)',
      ExpressionAttributeNames: { '#end': end },
      ExpressionAttributeValues: { ':one': 1 },
    },
  };
}

/** The function of `collector`: the bills of the timers that it receives expire. */
export const handler = lambdaConsumer(() => [
  transactional(BillDue, async ({ aggregateId }) => ({ writes: [endOf(aggregateId, 'expirations')] })),
]);
