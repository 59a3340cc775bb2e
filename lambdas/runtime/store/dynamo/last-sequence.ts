import type { Clock } from '../../base/clock.ts';
import { isMailroomError, MailroomError } from '../../base/errors.ts';
import { textOf } from '../../base/json.ts';
import type { LastRow } from '../inbox-row.ts';
import { type LastRaise, type LastSequence, NOTHING_APPLIED } from '../last-sequence.ts';
import { asRow, isKnownSchema, SCHEMA } from '../row-schema.ts';
import { conditionalUpdate, isExactly } from '../row-update.ts';
import type { Table, TransactAction } from '../table.ts';

/** The index of the last sequence in a transaction, after the inbox row. */
const LAST_AT = 1;

/**
 * Reads the last applied sequence, strongly consistent.
 *
 * @param key - the row's partition key
 * @throws `UNREADABLE_ROW` if the row has a newer schema or no usable number
 */
export async function readLastSequence(
  { table }: { readonly table: Pick<Table, 'get'> },
  key: string,
): Promise<LastSequence> {
  const row = await table.get({ PK: key, SK: 'LAST' }, { consistent: true });
  if (row === undefined) return NOTHING_APPLIED;
  const { last, schema, eventId, at } = asRow<LastRow>(row);
  if (isKnownSchema(schema) && Number.isSafeInteger(last) && Number(last) >= 0)
    return { last: Number(last), exists: true, eventId: textOf(eventId), at: Number(at) || undefined };
  throw new MailroomError(
    'UNREADABLE_ROW',
    `The last applied sequence ${key} cannot be read: it needs a schema of at most ${SCHEMA} and a whole number \`last\` from 0. ` +
      'Deploy the version that wrote it, or correct the attribute if it was changed by hand.',
  );
}

/** Makes the action that raises the last applied sequence. */
export function raiseLast(
  { now }: Pick<Clock, 'now'>,
  { key, sequence, seen: { last, exists }, eventId }: LastRaise,
): TransactAction {
  return {
    Update: conditionalUpdate(
      { PK: key, SK: 'LAST' },
      {
        set: { last: sequence, at: now(), schema: SCHEMA, eventId },
        ...(eventId === undefined && { remove: ['eventId'] }),
      },
      exists
        ? { condition: '#last = :seenLast', values: { ':seenLast': last } }
        : { condition: 'attribute_not_exists(PK)', values: {} },
    ),
  };
}

/** The action that raises the last applied sequence, if it is raised. */
export function raising(clock: Pick<Clock, 'now'>, raise: LastRaise | undefined): TransactAction[] {
  return raise === undefined ? [] : [raiseLast(clock, raise)];
}

/** Returns true if an action is exactly one that begins a sequence: every other write of it is Mailroom's own. */
export function isSeed(action: TransactAction): boolean {
  const { Key, ExpressionAttributeValues: values } = action.Update ?? {};
  const [last, at] = [values?.[':last'], values?.[':at']];
  if (typeof Key?.PK !== 'string' || !Number.isSafeInteger(last) || Number(last) < 1) return false;
  const begun = { key: Key.PK, sequence: Number(last), seen: NOTHING_APPLIED };
  return isExactly(action, raiseLast({ now: () => Number(at) }, begun));
}

/** Returns true if the update of the last sequence refused a transaction: another one has changed it, or is about to. */
export function isLastRefused(error: unknown, at: number = LAST_AT): boolean {
  if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) return false;
  const code = error.reasons[at]?.code;
  return code === 'ConditionalCheckFailed' || code === 'TransactionConflict';
}
