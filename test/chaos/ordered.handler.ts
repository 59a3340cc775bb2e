import { z } from 'zod/mini';
import {
  defineEvent,
  type Item,
  lambdaConsumer,
  leased,
  transactional,
} from '../../lambdas/runtime/index.ts';
import type { Put } from '../../lambdas/runtime/internals.ts';

/** The event of the ordered consumers. */
export const AccountChanged = defineEvent({
  source: 'accounts',
  type: 'AccountChanged',
  version: 1,
  aggregateType: 'Account',
  sequence: true,
  schema: z.object({}),
});

/** The key of the row in which a consumer records the numbers that it has applied to an account. */
export function accountKey(consumer: string, accountId: string): Item & { PK: string; SK: string } {
  return { PK: `ACCOUNT#${consumer}#${accountId}`, SK: 'ACCOUNT' };
}

/**
 * The function of both ordered consumers: `ledger` has a leased handler, `profile` a transactional one. It replaces the row that it has read,
 * without a condition: only the order of Mailroom keeps two events from reading the same state.
 */
export const handler = lambdaConsumer(({ table }) => {
  const consumer = process.env.MAILROOM_CONSUMER ?? '';
  const apply = async (accountId: string, sequence: number | undefined): Promise<{ readonly Put: Put }[]> => {
    const Key = accountKey(consumer, accountId);
    const row = await table.get(Key, { consistent: true });
    return [{ Put: { Item: { ...Key, applied: [...((row?.applied as number[]) ?? []), sequence] } } }];
  };
  return consumer === 'ledger'
    ? [
        leased(AccountChanged, async ({ aggregateId, sequence }, ctx) => {
          await ctx.commit({ writes: await apply(aggregateId, sequence) });
        }),
      ]
    : [
        transactional(AccountChanged, async ({ aggregateId, sequence }) => ({
          writes: await apply(aggregateId, sequence),
        })),
      ];
});
