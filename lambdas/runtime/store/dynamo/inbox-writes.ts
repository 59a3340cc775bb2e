import { isMailroomError } from '../../base/errors.ts';
import type { Claim, InboxRefusal } from '../../inbox/inbox.ts';
import { refusalOf, rowOf } from '../../inbox/inbox-admission.ts';
import { ours } from '../../inbox/inbox-conditions.ts';
import { hasHappened, type RowsBefore, type RowTransition } from '../../inbox/row-transition.ts';
import { inboxKey } from '../keys.ts';
import { transactWithRetry, writeWithRetry } from '../retry.ts';
import { expiresAt } from '../row-expiry.ts';
import { SCHEMA } from '../row-schema.ts';
import { conditionalUpdate, type RowChange, type RowCondition } from '../row-update.ts';
import type { Item, TransactAction } from '../table.ts';
import type { InboxAccess, InboxContext } from './inbox-context.ts';

/** The result of a conditional write of an inbox row. */
export interface Written {
  readonly ok: boolean;
  /** The row after the write, or the row that refused it. Absent if the row does not exist, and after a successful transaction. */
  readonly item?: Item | undefined;
}

/** Writes only an inbox row. */
export async function writeRow(
  inbox: InboxAccess,
  eventId: string,
  change: RowChange,
  condition: RowCondition,
): Promise<Written> {
  const write = { Update: conditionalUpdate(inboxKey(inbox.consumer, eventId), change, condition) };
  try {
    return { ok: true, item: await writeWithRetry(inbox, write) };
  } catch (error) {
    if (isMailroomError(error, 'CONDITION_FAILED')) return { ok: false, item: error.item };
    throw error;
  }
}

/**
 * Writes an inbox row together with other items. The inbox row is judged first: its refusal is returned; the refusal of another
 * action is thrown.
 *
 * @throws `TRANSACTION_CANCELLED`, with the reasons of all actions
 */
export async function transactRow(
  inbox: InboxAccess,
  eventId: string,
  change: RowChange,
  condition: RowCondition,
  others: readonly TransactAction[],
): Promise<Written> {
  const own = conditionalUpdate(inboxKey(inbox.consumer, eventId), change, condition);
  try {
    await transactWithRetry(inbox, [{ Update: own }, ...others]);
    return { ok: true };
  } catch (error) {
    if (
      isMailroomError(error, 'TRANSACTION_CANCELLED') &&
      error.reasons[0]?.code === 'ConditionalCheckFailed'
    )
      return { ok: false, item: error.reasons[0].item };
    throw error;
  }
}

/**
 * Makes one transition of a row.
 *
 * @param others - written in the same transaction, which has a token: a repeat of it is not refused by its own row @default no transaction
 * @throws `TRANSACTION_CANCELLED` if one of `others` was refused
 */
export function writeTransition(
  inbox: InboxAccess,
  eventId: string,
  from: RowsBefore,
  transition: RowTransition,
  others?: readonly TransactAction[],
): Promise<Written> {
  const change = changeBy(inbox, from, transition);
  const condition = conditionOf(inbox, from);
  return others === undefined
    ? writeRow(inbox, eventId, change, condition)
    : transactRow(inbox, eventId, change, condition, others);
}

/**
 * As {@link writeTransition}, under the claim's fence.
 *
 * @returns `undefined` if it happened, now or by an earlier try whose response was lost; otherwise the refusal
 */
export async function writeUnderFence(
  inbox: InboxContext,
  claim: Claim,
  transition: RowTransition,
  others: readonly TransactAction[] = [],
): Promise<InboxRefusal | undefined> {
  const { eventId } = claim.message;
  const together = others.length === 0 ? undefined : others;
  const { ok, item } = await writeTransition(inbox, eventId, ours(claim), transition, together);
  if (ok || hasHappened(rowOf(item), claim, transition)) return undefined;
  return refusalOf(inbox, claim.message, item);
}

/** The change of the row that a transition makes. */
export function changeBy(
  { clock }: Pick<InboxAccess, 'clock'>,
  { fence }: RowsBefore,
  { set, clear, count, rejectedAs, keepDays }: RowTransition,
): RowChange {
  const { status } = set;
  const end = keepDays === undefined ? undefined : expiresAt(clock.now(), keepDays);
  // Who holds a row has written its schema, and its map of effects, with the claim.
  const schema = status === undefined || fence !== undefined ? undefined : SCHEMA;
  const counted = count && COUNTED[count];
  const isClaim = status === 'PROCESSING';
  return {
    set: { status, schema, ...set, expiresAt: end },
    computed: { ...counted?.computed, ...(isClaim && { effects: 'if_not_exists(effects, :noEffects)' }) },
    values: { ...counted?.values, ...(isClaim && { ':noEffects': {} }) },
    ...(rejectedAs !== undefined && { add: { rejectedIds: new Set([rejectedAs]) } }),
    remove: clear,
  };
}

const COUNTED: Readonly<Record<NonNullable<RowTransition['count']>, Pick<RowChange, 'computed' | 'values'>>> =
  {
    next: {
      computed: { attempts: 'if_not_exists(attempts, :zero) + :one' },
      values: { ':zero': 0, ':one': 1 },
    },
    'taken-back': { computed: { attempts: 'attempts - :one' }, values: { ':one': 1 } },
    kept: { computed: { attempts: 'if_not_exists(attempts, :zero)' }, values: { ':zero': 0 } },
  };

/** The condition for the rows that a transition may change. */
export function conditionOf({ clock }: Pick<InboxAccess, 'clock'>, from: RowsBefore): RowCondition {
  const { absent, status = [], notStatus = [], fence, asRead = {}, notRejectedAs } = from;
  const values: Item = {};
  const given = (name: string, value: unknown) => {
    values[name] = value;
    return name;
  };
  const inStatus = status.map((one) => {
    const is = `#status = ${given(`:${one}`, one)}`;
    if (one === 'PROCESSING' && from.leasePassed)
      return `(${is} AND NOT leaseUntil >= ${given(':now', clock.now())})`;
    if (one === 'FAILED' && from.unfinishedBelow !== undefined)
      return `(${is} AND NOT unfinished >= ${given(':aloneFrom', from.unfinishedBelow)})`;
    return is;
  });
  const others = notStatus.map((one) => given(`:${one}`, one)).join(', ');
  const rows = [
    ...(absent ? ['attribute_not_exists(PK)'] : []),
    ...inStatus,
    ...(others === '' ? [] : [`NOT (#status IN (${others}))`]),
  ];
  const more = [
    ...(fence === undefined ? [] : [`fence = ${given(':heldFence', fence)}`]),
    ...Object.entries(asRead).map(([name, value]) =>
      value === undefined
        ? `attribute_not_exists(${name})`
        : `${name} = ${given(`:seen${name.charAt(0).toUpperCase()}${name.slice(1)}`, value)}`,
    ),
    ...(notRejectedAs === undefined
      ? []
      : [`NOT contains(rejectedIds, ${given(':messageId', notRejectedAs)})`]),
  ];
  const one = rows.length > 1 && more.length > 0 ? `(${rows.join(' OR ')})` : rows.join(' OR ');
  return { condition: [one, ...more].join(' AND '), values };
}

/** The condition of every transition under a claim: this worker still holds the message. */
export function mine(inbox: InboxAccess, claim: Claim): RowCondition {
  return conditionOf(inbox, ours(claim));
}
