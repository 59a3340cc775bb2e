import { MailroomError } from '../base/errors.ts';
import { poison } from '../base/poison.ts';
import type { Expression, Item, Put, StorableItem, TransactAction, Update, Write } from './table.ts';

/** A write that {@link ignoreOlder} and {@link nextVersion} extend: a `Put` or an `Update` of one row. */
export type VersionedWrite =
  | { readonly Put: Put; readonly Update?: undefined }
  | { readonly Update: Update; readonly Put?: undefined };

/** Options of {@link nextVersion}. */
export interface RowVersionOptions {
  /** The row as read; `undefined` if it does not exist. */
  readonly row: Item | undefined;
  /** The attribute of the row that stores its version. @default 'version' */
  readonly attribute?: string | undefined;
}

/** Options of {@link ignoreOlder}. */
export interface IgnoreOlderOptions extends RowVersionOptions {
  /** The version that the event carries, such as its `sequence`. A greater number is newer. */
  readonly version: number | undefined;
}

/**
 * Applies a write only if its event is newer than the last one applied to the row: for handlers that keep an aggregate's latest state,
 * because events can arrive in any order. It needs no ordered delivery, and costs nothing beyond the read and the write.
 *
 * The write also stores the version, on the condition that the row has no version or a lower one. If another event is applied between the
 * handler's read and its commit, the transaction is refused, and the handler runs again on a fresh read.
 *
 * Use it only for events that carry the whole state: an ignored event is never applied. One row takes the events of one aggregate. Do not
 * delete the row: an older event that arrives later would bring it back. Store that the aggregate is gone in the row instead.
 *
 * @param write - the change of one row. Its own condition is kept: both must be true
 * @returns the write, or an empty list if the row has this version or a later one
 * @throws `BAD_VERSION` if the event or the row has no usable version: the message is rejected
 * @throws `BAD_WRITE` if the item has a value of its own in the attribute, or the write uses `#rowVersion`, `:rowVersion` or `:readVersion`
 *
 * @example
 * ```ts
 * transactional(AddressChanged, async ({ aggregateId, data, sequence }) => {
 *   const Key = { PK: `ADDRESS#${aggregateId}`, SK: 'ADDRESS' };
 *   const row = await table.get(Key);
 *   return { writes: ignoreOlder({ Put: { Item: { ...Key, ...data } } }, { row, version: sequence }) };
 * });
 * ```
 */
export function ignoreOlder(
  write: VersionedWrite,
  { row, version, attribute = 'version' }: IgnoreOlderOptions,
): Write[] {
  if (!isVersion(version)) {
    throw poison(
      'BAD_VERSION',
      `The event has the version ${shown(version)}; it must be a number of at most ±${Number.MAX_SAFE_INTEGER}. Give the event a sequence when it is created, or pass another number as version.`,
    );
  }
  const applied = row?.[attribute];
  if (applied !== undefined) {
    if (!isVersion(applied)) throw poison('BAD_VERSION', badRow(attribute, applied, false));
    if (applied >= version) return [];
  }
  return [versioned(write, { row, attribute }, version, NEWER)];
}

/**
 * Numbers the events of an aggregate: the write raises the row's version by one, on the condition that the row still has the version that
 * was read, and the event takes it as its `sequence`. Both commit in one transaction, so no number is missing or used twice. A row without
 * a version gets 1, so let no other write replace or delete the row: the numbers would start again.
 *
 * @param write - the change of the aggregate's row. Its own condition is kept: both must be true
 * @returns the write, and the version that it stores
 * @throws `BAD_VERSION` if the row's version is not a whole number
 * @throws `BAD_WRITE` as {@link ignoreOlder}
 *
 * @example
 * ```ts
 * const row = await table.get(Key, { consistent: true });
 * const { write, version } = nextVersion({ Put: { Item: { ...Key, ...address } } }, { row });
 * await outbox.commit({ writes: [write], events: [AddressChanged.create({ aggregateId, data: address, sequence: version })] });
 * ```
 */
export function nextVersion(
  write: VersionedWrite,
  { row, attribute = 'version' }: RowVersionOptions,
): { readonly write: Write; readonly version: number } {
  const read = row?.[attribute];
  if (read === undefined) return { write: versioned(write, { row, attribute }, 1, ABSENT), version: 1 };
  if (!Number.isSafeInteger(read)) throw new MailroomError('BAD_VERSION', badRow(attribute, read, true));
  const version = read + 1;
  const values = { ':readVersion': read };
  return { write: versioned(write, { row, attribute }, version, UNCHANGED, values), version };
}

/** The row has no version, or a lower one. */
const NEWER = '(attribute_not_exists(#rowVersion) OR #rowVersion < :rowVersion)';

/** The row has no version. The second clause is always true then: DynamoDB refuses a value that no expression uses. */
const ABSENT = '(attribute_not_exists(#rowVersion) AND #rowVersion <> :rowVersion)';

/** The row has the version that was read. The second clause is always true then, and there as in {@link ABSENT}. */
const UNCHANGED = '(#rowVersion = :readVersion AND #rowVersion < :rowVersion)';

/** The names of the conditions above. */
const OURS = ['#rowVersion', ':rowVersion', ':readVersion'];

/** The members of a write, one of which is set. */
const ACTIONS = ['Put', 'Update', 'Delete', 'ConditionCheck'] as const;

/** The write, which also stores the version on a condition; its own condition stays. */
function versioned(
  write: VersionedWrite,
  { row, attribute }: { readonly row: Item | undefined; readonly attribute: string },
  version: number,
  condition: string,
  values: StorableItem = {},
): Write {
  const { Put, Update } = write;
  // Other members are ignored: dynamodb-toolbox adds one to its actions.
  const actions = ACTIONS.filter((action) => (write as TransactAction)[action] !== undefined);
  if (actions.length !== 1 || (Put ?? Update) === undefined)
    throw badWrite(`has ${actions.join(' and ') || 'no member'} set; pass one Put or one Update`);
  const extended = ({
    ConditionExpression,
    ExpressionAttributeNames,
    ExpressionAttributeValues,
  }: Expression & { readonly ConditionExpression?: string | undefined }) => {
    const taken = OURS.find((name) => name in { ...ExpressionAttributeNames, ...ExpressionAttributeValues });
    if (taken !== undefined) throw badWrite(`uses the placeholder ${taken} itself; rename it`);
    return {
      ConditionExpression:
        ConditionExpression === undefined ? condition : `${enclosed(ConditionExpression)} AND ${condition}`,
      ExpressionAttributeNames: { ...ExpressionAttributeNames, '#rowVersion': attribute },
      ExpressionAttributeValues: { ...ExpressionAttributeValues, ':rowVersion': version, ...values },
    };
  };
  if (Put) {
    const own = Put.Item?.[attribute];
    if (own !== undefined && own !== row?.[attribute])
      throw badWrite(`already sets its attribute "${attribute}"; name another attribute for the version`);
    return { Put: { ...Put, Item: Put.Item && { ...Put.Item, [attribute]: version }, ...extended(Put) } };
  }
  const UpdateExpression = Update.UpdateExpression && withVersion(Update.UpdateExpression);
  return { Update: { ...Update, UpdateExpression, ...extended(Update) } };
}

/** The condition in parentheses. If all of it is in parentheses already, DynamoDB refuses others around them. */
function enclosed(condition: string): string {
  const text = condition.trim();
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return at === text.length - 1 ? text : `(${text})`;
  }
  return text;
}

/** `SET` is a reserved word of DynamoDB, so as a separate word it is the clause. A clause may occur once. */
function withVersion(expression: string): string {
  const stored = '#rowVersion = :rowVersion';
  const clause = /(?<![#:.\w])SET\b\s*/i;
  return clause.test(expression)
    ? expression.replace(clause, `SET ${stored}, `)
    : `${expression} SET ${stored}`;
}

/** Beyond these limits, two versions may be read as one number, and the table refuses them. */
function isVersion(version: unknown): version is number {
  return typeof version === 'number' && Math.abs(version) <= Number.MAX_SAFE_INTEGER;
}

/** A version as an error may show it: other values may be data, and errors are logged. */
function shown(version: unknown): string {
  const isShown = version === null || ['number', 'bigint', 'undefined'].includes(typeof version);
  return isShown ? String(version) : `<a value of type ${typeof version}>`;
}

function badRow(attribute: string, version: unknown, isWhole: boolean): string {
  const allowed = isWhole ? 'a whole number' : 'a number';
  return `The row's attribute "${attribute}" has the version ${shown(version)}; it must be ${allowed} of at most ±${Number.MAX_SAFE_INTEGER}. Store only versions in it, or name another attribute.`;
}

function badWrite(problem: string): MailroomError {
  return new MailroomError('BAD_WRITE', `The write of a version ${problem}.`);
}
