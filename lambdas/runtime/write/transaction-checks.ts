import { MailroomError } from '../errors.ts';
import { eventIdTime } from '../store/event-id.ts';
import { itemBytes } from '../store/item-size.ts';
import { eventIdInSortKey } from '../store/keys.ts';
import { OUTBOX_PREFIX } from '../store/rows.ts';
import { TRANSACTION_ACTIONS_MAX, TRANSACTION_BYTES_MAX, type TransactAction } from '../store/table.ts';
import { checkedActions } from '../store/table-checks.ts';

/**
 * The maximum age of an entry that `commit` accepts. If an older entry were committed again after TTL had deleted its PUBLISHED
 * row, its event would be published again.
 */
const ENTRY_AGE_MAX_MS = 5 * 60_000;

/**
 * Refuses a transaction that DynamoDB would refuse or that cannot be sent, and entries that are too old, with an error that
 * names the remedy.
 *
 * @param ownActions - the number of actions that Mailroom adds, such as a consumer's inbox row @default 0
 * @throws `EMPTY_COMMIT`, `TRANSACTION_TOO_LARGE`, `BAD_WRITE`, `BAD_ITEM`, `STALE_ENTRY`
 */
export function checkTransaction(actions: readonly TransactAction[], now: number, ownActions = 0): void {
  const count = actions.length + ownActions;
  if (count === 0) {
    throw new MailroomError('EMPTY_COMMIT', 'Nothing to commit: pass at least one write or event');
  }
  if (count > TRANSACTION_ACTIONS_MAX) {
    throw new MailroomError(
      'TRANSACTION_TOO_LARGE',
      `The transaction has ${count} actions (writes, events and, in a consumer, the inbox row); DynamoDB allows ` +
        `at most ${TRANSACTION_ACTIONS_MAX}. Split the work into several commits.`,
    );
  }
  checkedActions(actions); // before the size check, which would not end for an item that contains itself
  const bytes = actions.reduce((sum, action) => sum + (action.Put?.Item ? itemBytes(action.Put.Item) : 0), 0);
  if (bytes > TRANSACTION_BYTES_MAX) {
    throw new MailroomError(
      'TRANSACTION_TOO_LARGE',
      `The items of the transaction take ${bytes} bytes; DynamoDB allows at most ${TRANSACTION_BYTES_MAX}. Split the work ` +
        'into several commits, or store the large parts elsewhere.',
    );
  }
  for (const action of actions) {
    const eventId = outboxEventId(action);
    if (eventId !== undefined && now - eventIdTime(eventId) > ENTRY_AGE_MAX_MS) {
      throw new MailroomError(
        'STALE_ENTRY',
        `Event ${eventId} was created more than ${ENTRY_AGE_MAX_MS / 60_000} minutes ago. Use entries immediately and only once: ` +
          'call outbox.entries again.',
      );
    }
  }
}

/** Counts the events that a transaction writes. */
export function eventCount(actions: readonly TransactAction[]): number {
  return actions.filter((action) => outboxEventId(action) !== undefined).length;
}

function outboxEventId(action: TransactAction): string | undefined {
  const { PK, SK } = action.Put?.Item ?? {};
  return typeof PK === 'string' && PK.startsWith(OUTBOX_PREFIX) ? eventIdInSortKey(SK) : undefined;
}
