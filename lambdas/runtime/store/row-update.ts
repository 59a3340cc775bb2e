import { isDeepStrictEqual } from 'node:util';
import { SCHEMA } from './row-schema.ts';
import type { Item, Key, TransactAction, Update } from './table.ts';

/** The changes that a transition makes to a row. */
export interface RowChange {
  /** Attributes with their new values; a value of `undefined` leaves the attribute unchanged. */
  readonly set: Item;
  /** Attributes, or paths in them, whose new value is an expression: `{ attempts: 'attempts - :one' }`. */
  readonly computed?: Readonly<Record<string, string>> | undefined;
  /** The values used in `computed`. */
  readonly values?: Item | undefined;
  /** Sets, with the elements to add. */
  readonly add?: Item | undefined;
  /** Sets, with the elements to delete. */
  readonly subtract?: Item | undefined;
  /** Attributes to remove. */
  readonly remove?: readonly string[] | undefined;
}

/** A condition on a row, with its values. Names that DynamoDB reserves are written as `#status`. */
export interface RowCondition {
  readonly condition: string;
  readonly values: Item;
  /** Names that are data, such as an effect's: `{ '#effect': 'charge' }`. @default each `#name` is the attribute `name` */
  readonly names?: Readonly<Record<string, string>> | undefined;
}

/** The attributes whose names DynamoDB reserves. */
const RESERVED = /^(status|schema|type|result|run|order|last|at)$/;

/**
 * No version writes a row of a newer schema, whose attributes it may not understand: every conditional update of a stored row ends with
 * this clause. The first release must have it, because no later one can protect rows from a rollback to it.
 */
const KNOWN_SCHEMA = '(attribute_not_exists(#schema) OR #schema <= :schema)';

/** Limits a conditional update to rows that this version can read. */
export function ofKnownSchema(update: Update): Update {
  return {
    ...update,
    ConditionExpression: `(${update.ConditionExpression}) AND ${KNOWN_SCHEMA}`,
    ExpressionAttributeNames: { ...update.ExpressionAttributeNames, '#schema': 'schema' },
    ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ':schema': SCHEMA },
  };
}

/**
 * Makes one conditional update of a row that returns the existing row if it is refused. A row of a newer schema always refuses it. A
 * status is set as `#status = :FAILED`, so that the transition is visible in the request.
 *
 * @example
 * ```ts
 * conditionalUpdate(inboxKey(consumer, eventId), { set: { leaseUntil }, remove: ['retryAt'] }, mine(claim));
 * ```
 */
export function conditionalUpdate(
  key: Key,
  change: RowChange,
  { condition, values, names: given = {} }: RowCondition,
): Update {
  const set = Object.entries(change.set).filter(([, value]) => value !== undefined);
  const added = Object.entries(change.add ?? {});
  const subtracted = Object.entries(change.subtract ?? {});
  const clauses = [
    ...clause('SET', [
      ...set.map(([name, value]) => `${written(name)} = ${placeholder(name, value)}`),
      ...Object.entries(change.computed ?? {}).map(([name, how]) => `${name} = ${how}`),
    ]),
    ...clause(
      'ADD',
      added.map(([name]) => `${name} :${name}`),
    ),
    ...clause(
      'DELETE',
      subtracted.map(([name]) => `${name} :${name}`),
    ),
    ...clause('REMOVE', (change.remove ?? []).map(written)),
  ];
  const UpdateExpression = clauses.join(' ');
  const names = `${UpdateExpression} ${condition}`.match(/#\w+/g) ?? [];
  return ofKnownSchema({
    Key: { ...key },
    UpdateExpression,
    ConditionExpression: condition,
    ExpressionAttributeNames: Object.fromEntries(names.map((name) => [name, given[name] ?? name.slice(1)])),
    ExpressionAttributeValues: {
      ...Object.fromEntries(set.map(([name, value]) => [placeholder(name, value), value])),
      ...Object.fromEntries([...added, ...subtracted].map(([name, value]) => [`:${name}`, value])),
      ...change.values,
      ...values,
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
}

/** Returns true if an action is exactly one that Mailroom makes, whether or not it names its table. */
export function isExactly(action: TransactAction, made: TransactAction): boolean {
  const { TableName: _, ...Update } = { ...action.Update };
  return isDeepStrictEqual({ ...action, Update }, made);
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
