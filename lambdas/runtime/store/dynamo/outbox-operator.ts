import { systemClock } from '../../base/clock.ts';
import { isMailroomError, MailroomError } from '../../base/errors.ts';
import { discarded, madeDue, requeued } from '../../outbox/outbox-transitions.ts';
import { eventIdShard, eventIdTime, minuteOf, outboxKeyOf } from '../event-id.ts';
import { deadKey } from '../keys.ts';
import type { Note, OperationDeps } from '../operation-record.ts';
import type { OutboxRow } from '../outbox-row.ts';
import { happens } from '../retry.ts';
import { isKnownSchema } from '../row-schema.ts';
import { ofKnownSchema } from '../row-update.ts';
import { type Item, type TransactAction, updateAction } from '../table.ts';
import { leavingDead } from './outbox-writes.ts';
import { unsettledPointer } from './unsettled-minutes.ts';

/**
 * DEAD -> PENDING: the next sweep publishes the event, with its attempts counted from 0. In the same transaction, its DEAD
 * pointer is removed and its minute becomes unsettled, because the sweep's ages may have passed that minute long ago.
 *
 * @param note - stored in the row @default none
 * @returns `false` if the event is not DEAD, or no longer; nothing was changed
 * @throws `BAD_EVENT_ID` if the text is not an event id, `NO_SUCH_EVENT` if the event has no outbox row, and is not listed as DEAD
 *
 * @example
 * ```ts
 * await requeueDead({ table }, '01a1fba6-4458-7a41-9c37-3f5d2b8e1103', { by: 'ada', reason: 'the bus is back' });
 * ```
 */
export async function requeueDead(deps: OperationDeps, eventId: string, note?: Note): Promise<boolean> {
  const { clock = systemClock, random } = deps;
  const pointer = unsettledPointer(eventIdShard(eventId), minuteOf(eventIdTime(eventId)), random);
  return decide(deps, eventId, [
    ...leavingDead(eventId, requeued(eventId, clock.now(), note)),
    { Put: { Item: { ...pointer } } },
  ]);
}

/**
 * DEAD -> DISCARDED: an operator discards the event, and it is never published. Its DEAD pointer is removed in the same
 * transaction, and its row is kept for 35 days.
 *
 * @returns `false` if the event is not DEAD, or no longer; nothing was changed
 * @throws `BAD_EVENT_ID` if the text is not an event id, `NO_SUCH_EVENT` if the event has no outbox row, and is not listed as DEAD
 */
export async function discardDead(deps: OperationDeps, eventId: string, note: Note): Promise<boolean> {
  const { clock = systemClock } = deps;
  return decide(deps, eventId, leavingDead(eventId, discarded(clock.now(), note)));
}

/**
 * PENDING -> PENDING, due in a minute: repairs a row that no relay takes, because it is leased for years, or dated in the future. In the same
 * transaction, its minute becomes unsettled: the sweep reads it, whether its ages have passed or not begun.
 *
 * @param row - as it was read
 * @returns `false` if its status, its lease or its due time is another one by now; nothing was changed
 * @throws `BAD_EVENT_ID` if the text is not an event id
 */
export async function makeDue(
  deps: OperationDeps,
  eventId: string,
  row: Pick<OutboxRow, 'leaseUntil' | 'dueAt'>,
): Promise<boolean> {
  const { clock = systemClock, random } = deps;
  const { from, set } = madeDue(row, clock.now());
  const { leaseUntil, dueAt } = row;
  const when = { status: from[0], leaseUntil, ...(dueAt !== undefined && { dueAt }) };
  const { Update } = updateAction({ key: outboxKeyOf(eventId), set, when });
  const pointer = unsettledPointer(eventIdShard(eventId), minuteOf(eventIdTime(eventId)), random);
  return happens(deps, [{ Update: ofKnownSchema(Update) }, { Put: { Item: { ...pointer } } }]);
}

async function decide(
  deps: OperationDeps,
  eventId: string,
  actions: readonly TransactAction[],
): Promise<boolean> {
  if (await happens(deps, actions)) return true;
  const { row, wasListed } = await dropStaleDead(deps, eventId);
  if (row !== undefined || wasListed) return false;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `Event ${eventId} has no outbox row: it was never committed here, or it was published and has expired. ` +
      `Check the id and the table (${deps.table.name}).`,
  );
}

/**
 * Removes the pointer of an event that is not DEAD: someone has changed or deleted its row by hand, and no transition would remove the
 * pointer. The order of the steps matters: an event that becomes DEAD after its row was read has a pointer with a later `deadAt`.
 *
 * @returns the event's row, and whether the event was listed as DEAD
 */
export async function dropStaleDead(
  { table }: Pick<OperationDeps, 'table'>,
  eventId: string,
): Promise<{ readonly row: Item | undefined; readonly wasListed: boolean }> {
  const key = { ...deadKey(eventIdShard(eventId), eventId) };
  const pointer = await table.get(key, { consistent: true });
  const row = await table.get(outboxKeyOf(eventId), { consistent: true });
  const isStale = row === undefined || (isKnownSchema(row.schema) && row.status !== 'DEAD');
  if (pointer === undefined || !isStale) return { row, wasListed: pointer !== undefined };
  const isSame = {
    ConditionExpression: 'deadAt = :seen',
    ExpressionAttributeValues: { ':seen': pointer.deadAt },
  };
  try {
    await table.write({ Delete: { Key: key, ...isSame } });
  } catch (error) {
    if (!isMailroomError(error, 'CONDITION_FAILED')) throw error;
  }
  return { row, wasListed: true };
}

/**
 * Records in an event's outbox row that the event is about to be sent again to one of its consumers, so that the audit allows
 * for its delivery time.
 *
 * @returns the row; `undefined` if it does not exist, or no longer, or its schema is newer
 */
export async function markResent(deps: OperationDeps, eventId: string): Promise<Item | undefined> {
  const { table, clock = systemClock } = deps;
  const { Update } = updateAction({ key: outboxKeyOf(eventId), set: { resentAt: clock.now() }, when: {} });
  try {
    return await table.write({ Update: ofKnownSchema(Update) });
  } catch (error) {
    if (isMailroomError(error, 'CONDITION_FAILED')) return undefined;
    throw error;
  }
}
