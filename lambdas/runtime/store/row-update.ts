import { isMailroomError } from '../errors.ts';
import type { Item, Key, Table, Update } from './table.ts';

/** The changes that a transition makes to a row. */
export interface RowChange {
  /** Attributes with their new values; a value of `undefined` leaves the attribute unchanged. */
  readonly set: Item;
  /** Attributes whose new value DynamoDB computes, with the expression: `{ attempts: 'attempts - :one' }`. */
  readonly computed?: Readonly<Record<string, string>> | undefined;
  /** The values used in `computed`. */
  readonly values?: Item | undefined;
  /** Sets, with the elements to add. */
  readonly add?: Item | undefined;
  /** Attributes to remove. */
  readonly remove?: readonly string[] | undefined;
}

/** A condition on a row, with its values. Names that DynamoDB reserves are written as `#status`. */
export interface RowCondition {
  readonly condition: string;
  readonly values: Item;
}

/** The attributes whose names DynamoDB reserves. */
const RESERVED = /^(status|schema|type|result|run)$/;

/**
 * Makes one conditional update of a row that returns the existing row if it is refused. A status is set as `#status = :FAILED`, so
 * that the transition is visible in the request.
 *
 * @example
 * ```ts
 * conditionalUpdate(inboxKey(consumer, eventId), { set: { leaseUntil }, remove: ['retryAt'] }, mine(claim));
 * ```
 */
export function conditionalUpdate(key: Key, change: RowChange, { condition, values }: RowCondition): Update {
  const set = Object.entries(change.set).filter(([, value]) => value !== undefined);
  const added = Object.entries(change.add ?? {});
  const clauses = [
    ...clause('SET', [
      ...set.map(([name, value]) => `${written(name)} = ${placeholder(name, value)}`),
      ...Object.entries(change.computed ?? {}).map(([name, how]) => `${name} = ${how}`),
    ]),
    ...clause(
      'ADD',
      added.map(([name]) => `${name} :${name}`),
    ),
    ...clause('REMOVE', change.remove ?? []),
  ];
  const UpdateExpression = clauses.join(' ');
  const names = `${UpdateExpression} ${condition}`.match(/#\w+/g) ?? [];
  return {
    Key: { ...key },
    UpdateExpression,
    ConditionExpression: condition,
    ...(names.length > 0 && {
      ExpressionAttributeNames: Object.fromEntries(names.map((name) => [name, name.slice(1)])),
    }),
    ExpressionAttributeValues: {
      ...Object.fromEntries(set.map(([name, value]) => [placeholder(name, value), value])),
      ...Object.fromEntries(added.map(([name, value]) => [`:${name}`, value])),
      ...change.values,
      ...values,
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

/** The result of a conditional write of a row. */
export interface Written {
  readonly ok: boolean;
  /** The row after the write, or the row that refused it. Absent if the row does not exist, and after a successful transaction. */
  readonly item?: Item | undefined;
}

/** Writes only one row, with {@link conditionalUpdate}. */
export async function conditionalWrite(
  table: Table,
  key: Key,
  change: RowChange,
  condition: RowCondition,
): Promise<Written> {
  try {
    return { ok: true, item: await table.write({ Update: conditionalUpdate(key, change, condition) }) };
  } catch (error) {
    if (isMailroomError(error, 'CONDITION_FAILED')) return { ok: false, item: error.item };
    throw error;
  }
}

function clause(verb: string, parts: readonly string[]): string[] {
  return parts.length === 0 ? [] : [`${verb} ${parts.join(', ')}`];
}

function written(name: string): string {
  return RESERVED.test(name) ? `#${name}` : name;
}

function placeholder(name: string, value: unknown): string {
  return `:${name === 'status' ? value : name}`;
}
