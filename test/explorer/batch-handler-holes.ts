import { INBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import type { Table, TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { InboxTamper } from './inbox-scenarios.ts';
import type { Hole } from './relay-holes.ts';
import { withCondition } from './tampered-table.ts';

/** A table whose transactions of several messages are sent in another way. */
function batches(
  send: (table: Table, actions: readonly TransactAction[], token: string) => Promise<void>,
): InboxTamper {
  return {
    tamperTable: (table) => ({
      ...table,
      transact: (actions, token) =>
        actions.filter(isInboxRow).length > 1
          ? send(table, actions, token ?? '')
          : table.transact(actions, token),
    }),
  };
}

function isInboxRow({ Update }: TransactAction): boolean {
  return String(Update?.Key?.PK).startsWith(INBOX_PREFIX);
}

/** The rules of a batch handler, one by one. */
export const BATCH_HANDLER_HOLES: readonly Hole<InboxTamper>[] = [
  {
    rule: 'each message of a batch requires that it has no row',
    where: 'batches that overlap',
    tamper: batches((table, actions, token) =>
      table.transact(
        actions.map((action, i) =>
          i > 0 && isInboxRow(action) && action.Update !== undefined
            ? { Update: withCondition(action.Update, undefined) }
            : action,
        ),
        token,
      ),
    ),
    found: /applied|became|changed/,
  },
  {
    rule: 'the rows of a batch and its writes are one transaction',
    where: 'a batch of two messages, in two workers at once',
    needs: { faults: 1, deviations: 1 },
    tamper: batches(async (table, actions, token) => {
      await table.transact(actions.filter(isInboxRow), token);
      await table.transact(
        actions.filter((action) => !isInboxRow(action)),
        `${token.slice(0, -1)}w`,
      );
    }),
    found: /The effects of the messages were applied 0 times/,
  },
  {
    rule: 'each message of a batch that was not committed is named in its response',
    where: 'a batch of two messages, in two workers at once',
    needs: { faults: 1, deviations: 1 },
    tamper: {
      tamperConsumer: (consume) =>
        Object.assign(
          async (...args: Parameters<typeof consume>) => {
            const { batchItemFailures } = await consume(...args);
            return { batchItemFailures: batchItemFailures.slice(0, 1) };
          },
          { handles: consume.handles },
        ),
    },
    found: /The message is stuck: it is without a row/,
  },
];
