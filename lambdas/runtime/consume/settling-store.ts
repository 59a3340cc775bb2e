import { withDeadline } from '../base/clock.ts';
import type { InboxChanges } from '../inbox/inbox-operator.ts';
import type { Settlement } from '../inbox/settle-message.ts';
import type { CausingEvent } from '../outbox/outbox-entry.ts';
import { dynamoInboxChanges } from '../store/dynamo/inbox-operator.ts';
import type { Commit } from '../store/dynamo/outbox.ts';
import { eventCount } from '../store/dynamo/transaction-checks.ts';
import type { InboxRow } from '../store/inbox-row.ts';
import type { DynamoContext } from './consumer-context.ts';
import { checkOperatorWrites } from './operator-writes.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './out-of-time.ts';
import type { WritesCheck } from './settle-requests.ts';

/**
 * Makes what commits with an operator's decision, from the row as it was read.
 *
 * @param tx - the decision's transaction, of a store that has such
 */
export type MadeCommit = (
  row: InboxRow | undefined,
  tx: unknown,
) => Promise<{ readonly commit: Commit; readonly cause?: CausingEvent | undefined }>;

/** The store in which a consumer's function settles a message for an operator. */
export interface SettlingStore {
  readonly inboxChanges: InboxChanges;
  readonly checkWrites: WritesCheck;
  /**
   * The commit, in the form of this store.
   *
   * @param committed - called with the number of events, each time the commit is made
   */
  committing(
    make: MadeCommit,
    remainingMs: () => number,
    committed: (events: number) => void,
  ): Pick<Settlement, 'writes' | 'work'>;
}

/** The decision's transaction is made from what the function of the consumer returns. */
export function dynamoSettling({ table, clock, random, outbox }: DynamoContext): SettlingStore {
  return {
    inboxChanges: dynamoInboxChanges({ table, clock, random }),
    checkWrites: checkOperatorWrites,
    committing: (make, remainingMs, committed) => ({
      writes: async (row) => {
        const waitMs = remainingMs() - RESPONSE_MARGIN_MS;
        const { commit, cause } = await withDeadline(clock, waitMs, make(row, undefined), (): never => {
          throw outOfTime();
        });
        const { writes = [], events = [] } = commit;
        const actions = [...writes, ...(await outbox.entries(events, cause))];
        committed(eventCount(actions));
        return actions;
      },
    }),
  };
}
