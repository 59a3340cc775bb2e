import { z } from 'zod/mini';
import {
  defineEvent,
  type Item,
  lambdaConsumer,
  transactional,
  type Update,
} from '../../lambdas/runtime/index.ts';

/** The timer of a bill: it is due unless the bill is paid before. */
export const BillDue = defineEvent({
  // The relays publish only events of services that the system declares.
  source: 'orders',
  type: 'BillDue',
  version: 1,
  aggregateType: 'Bill',
  schema: z.object({}),
});

/** The key of a bill. */
export function billKey(billId: string): Item & { PK: string; SK: string } {
  return { PK: `BILL#${billId}`, SK: 'BILL' };
}

/** Ends a bill that is open, and nothing else: a second end of it is refused. */
export function endOf(billId: string, status: 'paid' | 'expired'): { readonly Update: Update } {
  return {
    Update: {
      Key: billKey(billId),
      UpdateExpression: 'SET #status = :status',
      ConditionExpression: '#status = :open',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':status': status, ':open': 'open' },
    },
  };
}

/** The function of `collector`: the bills of the timers that it receives expire. It reads no bill: a timer of a paid one is refused, and counted. */
export const handler = lambdaConsumer(() => [
  transactional(BillDue, async ({ aggregateId }) => ({ writes: [endOf(aggregateId, 'expired')] })),
]);
