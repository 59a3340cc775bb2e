import type { ConsumerContext } from '../consume/consumer-context.ts';
import type { SettlingStore } from '../consume/settling-store.ts';
import { refuseAborted, refuseWrites } from '../store/postgres/inbox-commit.ts';
import { postgresInboxChanges, withoutWrites } from '../store/postgres/inbox-operator.ts';
import { raiseLast } from '../store/postgres/last-sequence.ts';
import type { Database } from '../store/sql/database.ts';
import type { DatabaseEvents } from '../store/sql/database-outbox.ts';

/** The function of the consumer runs inside the decision's transaction, and has the rights of the consumer's login. */
export function postgresSettling<Tx>(
  { config, clock, random }: ConsumerContext,
  { database, outbox }: { readonly database: Database<Tx>; readonly outbox: DatabaseEvents<Tx> },
): SettlingStore {
  return {
    inboxChanges: postgresInboxChanges({ database, whole: database, clock, random, raise: raiseLast }),
    checkWrites: (writes) => {
      if (writes.length > 0) throw withoutWrites(config.consumer);
    },
    committing: (make, _remainingMs, committed) => ({
      // Without a deadline of its own: the transaction's connection may not be used by anyone else while the function still runs.
      work: async (row, tx) => {
        const { commit, cause } = await make(row, tx);
        const { writes, events = [] } = commit;
        refuseWrites(writes);
        if (events.length > 0) await outbox.write(tx as Tx, events, cause);
        else await refuseAborted(database.in(tx as Tx));
        committed(events.length);
      },
    }),
  };
}
