import { AlreadyCommitted, isMailroomError } from '../../base/errors.ts';
import { textOf } from '../../base/json.ts';
import type { EventDraft } from '../../events/event.ts';
import { eventIdTime } from '../event-id.ts';
import { UNIQUE_PREFIX, uniqueKey } from '../keys.ts';
import { expiresAt } from '../row-expiry.ts';
import { SCHEMA } from '../row-schema.ts';
import { conditionalUpdate, isExactly } from '../row-update.ts';
import type { TransactAction, Update } from '../table.ts';

/** The time for which a key is taken, days: from the commit of its event, or from when a scheduled one is due. */
const UNIQUE_RETENTION_DAYS = 35;

/** No event has taken the key, or its time is over and TTL has not deleted its row yet. */
const FREE = 'attribute_not_exists(PK) OR expiresAt < :nowS';

/**
 * Makes the actions that take the keys of events. Invariant: of all events of a service and type with one key, at most one is committed while the key
 * is taken. The event's row and the row of its key are in one transaction, which requires that the key is free.
 *
 * @param eventIds - those of the events, in order
 * @param now - epoch milliseconds
 */
export function uniqueActions(
  events: readonly EventDraft[],
  eventIds: readonly string[],
  now: number,
): TransactAction[] {
  return events.flatMap(({ definition, uniqueBy }, i) =>
    typeof uniqueBy === 'string' ? [takingOf(uniqueKey(definition, uniqueBy), eventIds[i] ?? '', now)] : [],
  );
}

function takingOf(
  key: ReturnType<typeof uniqueKey>,
  eventId: string,
  now: number,
): { readonly Update: Update } {
  // From the whole second that the condition has: the action can be made again from its own values.
  const nowS = Math.floor(now / 1_000);
  const end = expiresAt(Math.max(nowS * 1_000, eventIdTime(eventId)), UNIQUE_RETENTION_DAYS);
  const values = { ':nowS': nowS };
  const change = { set: { schema: SCHEMA, eventId, expiresAt: end } };
  return { Update: conditionalUpdate(key, change, { condition: FREE, values }) };
}

/** Returns true for an action that {@link uniqueActions} made. */
export function isUniqueAction(action: TransactAction): boolean {
  const { Key, ExpressionAttributeValues: values } = action.Update ?? {};
  const { PK, SK } = Key ?? {};
  const eventId = textOf(values?.[':eventId']);
  if (typeof PK !== 'string' || !PK.startsWith(UNIQUE_PREFIX) || eventId === undefined) return false;
  return isExactly(action, takingOf({ PK, SK: String(SK) }, eventId, Number(values?.[':nowS']) * 1_000));
}

/**
 * The error of a commit whose key is taken, by the reasons of the cancelled transaction.
 *
 * @param events - those of the commit, in order
 * @param actions - those of the transaction
 */
export function alreadyCommitted(
  error: unknown,
  events: readonly EventDraft[],
  actions: readonly TransactAction[],
): AlreadyCommitted | undefined {
  if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) return undefined;
  const unique = actions.flatMap((action, i) => (isUniqueAction(action) ? [error.reasons[i]] : []));
  const at = unique.findIndex((reason) => reason?.code === 'ConditionalCheckFailed');
  const index = events.flatMap(({ uniqueBy }, i) => (typeof uniqueBy === 'string' ? [i] : []))[at];
  const draft = events[index ?? -1];
  if (index === undefined || draft === undefined) return undefined;
  const firstEventId = textOf(unique[at]?.item?.eventId);
  return new AlreadyCommitted(draft.definition.type, index, firstEventId, { cause: error });
}
