import type { ConsumerContext } from '../consume/consumer-context.ts';
import type { SettlingStore } from '../consume/settling-store.ts';
import { refuseWrites } from '../store/mysql/inbox-commit.ts';
import { mysqlInboxChanges, withoutWrites } from '../store/mysql/inbox-operator.ts';
import { inOneTransaction } from '../store/mysql/whole-transaction.ts';
import type { Database } from '../store/sql/database.ts';
import type { DatabaseEvents } from '../store/sql/database-outbox.ts';

/** The function of the consumer runs inside the decision's transaction, and has the rights of the consumer's login. */
export function mysqlSettling<Tx>(
  { config, clock, random }: ConsumerContext,
  { database, outbox }: { readonly database: Database<Tx>; readonly outbox: DatabaseEvents<Tx> },
): SettlingStore {
  return {
    inboxChanges: mysqlInboxChanges({ database, clock, random }),
    checkWrites: (writes) => {
      if (writes.length > 0) throw withoutWrites(config.consumer);
    },
    committing: (make, _remainingMs, committed) => ({
      // Without a deadline of its own: the transaction's connection may not be used by anyone else while the function still runs.
      work: async (row, tx) => {
        const made = () => make(row, tx);
        const { commit, cause } = await inOneTransaction(database.in(tx as Tx), 'mailroom_inbox', made);
        const { writes, events = [] } = commit;
        refuseWrites(writes);
        if (events.length > 0) await outbox.write(tx as Tx, events, cause);
        committed(events.length);
      },
    }),
  };
}
