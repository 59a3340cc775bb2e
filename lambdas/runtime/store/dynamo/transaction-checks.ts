import type { Clock } from '../../base/clock.ts';
import { MailroomError } from '../../base/errors.ts';
import { eventIdInSortKey, eventIdTime } from '../event-id.ts';
import { itemBytes } from '../item-size.ts';
import { SYSTEM_PREFIXES } from '../keys.ts';
import { OUTBOX_PREFIX } from '../outbox-partition.ts';
import { TRANSACTION_ACTIONS_MAX, TRANSACTION_BYTES_MAX, type TransactAction } from '../table.ts';
import { isCancellation } from './cancellation.ts';
import { isSeed } from './last-sequence.ts';
import { type Action, checkedActions } from './table-checks.ts';
import { isUniqueAction } from './unique-event.ts';

/**
 * The maximum age of an entry that `commit` accepts. If an older entry were committed again after TTL had deleted its PUBLISHED
 * row, its event would be published again.
 */
const ENTRY_AGE_MAX_MS = 5 * 60_000;

/** The Mailroom table, the time, and the number of actions that Mailroom adds, such as a consumer's inbox row. */
interface CheckedAgainst {
  readonly table: { readonly name: string };
  readonly clock: Pick<Clock, 'now'>;
  /** @default 0 */
  readonly ownActions?: number;
}

/**
 * Refuses a transaction that DynamoDB or IAM would refuse or that cannot be sent, and entries that are too old, with an error that
 * names the remedy.
 *
 * @throws `EMPTY_COMMIT`, `TRANSACTION_TOO_LARGE`, `BAD_WRITE`, `BAD_ITEM`, `STALE_ENTRY`
 */
export function checkTransaction(
  actions: readonly TransactAction[],
  { table, clock, ownActions = 0 }: CheckedAgainst,
): void {
  const now = clock.now();
  const count = actions.length + ownActions;
  if (count === 0) {
    throw new MailroomError('EMPTY_COMMIT', 'Nothing to commit: pass at least one write or event.');
  }
  if (count > TRANSACTION_ACTIONS_MAX) {
    throw new MailroomError(
      'TRANSACTION_TOO_LARGE',
      `The transaction has ${count} actions (writes, events, uniqueBy keys, a consumer's own rows); DynamoDB allows ` +
        `at most ${TRANSACTION_ACTIONS_MAX}. Split the work into several commits.`,
    );
  }
  // Before the size check, which would not end for an item that contains itself.
  checkKeys(checkedActions(actions), table.name);
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
        `Event ${eventId} was created, or due, more than ${ENTRY_AGE_MAX_MS / 60_000} minutes ago. Use entries immediately and only once: ` +
          'call outbox.entries again.',
      );
    }
  }
}

/**
 * Refuses an action on a row that only Mailroom writes, which IAM denies to every service, and two actions on one item, of which
 * DynamoDB would not name the item. The key attributes of other tables are unknown here.
 */
function checkKeys(actions: readonly Action[], tableName: string): void {
  const seen = new Map<string, number>();
  for (const [index, { kind, request }] of actions.entries()) {
    const { PK, SK } = (kind === 'Put' ? request.Item : request.Key) ?? {};
    if (tableIn(request.TableName ?? tableName) !== tableIn(tableName) || typeof PK !== 'string') continue;
    const at = `Action ${index + 1} of ${actions.length} (${kind})`;
    const reserved = SYSTEM_PREFIXES.find((prefix) => PK.startsWith(prefix));
    const action: TransactAction = { [kind]: request };
    const isOurs =
      outboxEventId(action) !== undefined ||
      isCancellation(action) ||
      isSeed(action) ||
      isUniqueAction(action);
    if (reserved !== undefined && !isOurs) {
      throw new MailroomError(
        'BAD_WRITE',
        `${at}: the partition key begins with "${reserved}", which only Mailroom uses. Use a key of the service, as its domainKeys ` +
          'list them.',
      );
    }
    const key = JSON.stringify([PK, SK]);
    const first = seen.get(key);
    if (first !== undefined) {
      throw new MailroomError(
        'BAD_WRITE',
        `${at}: action ${first} already uses the item ${PK} / ${String(SK)}, and a transaction can use an item only once. Combine the two.`,
      );
    }
    seen.set(key, index + 1);
  }
}

/** The name of a table, which DynamoDB also accepts as an ARN. Untyped code may pass anything. */
function tableIn(nameOrArn: unknown): string {
  return String(nameOrArn).replace(/^.*\//, '');
}

/** Counts the events that a transaction writes. */
export function eventCount(actions: readonly TransactAction[]): number {
  return actions.filter((action) => outboxEventId(action) !== undefined).length;
}

function outboxEventId(action: TransactAction): string | undefined {
  const { PK, SK } = action.Put?.Item ?? {};
  return typeof PK === 'string' && PK.startsWith(OUTBOX_PREFIX) ? eventIdInSortKey(SK) : undefined;
}
