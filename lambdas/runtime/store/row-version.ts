import { MailroomError, PoisonMessage } from '../base/errors.ts';
import type { Expression, Item, Put, StorableItem, Update, Write } from './table.ts';

/** A write that {@link ignoreOlder} and {@link nextVersion} extend: a `Put` or an `Update` of one row. */
export type VersionedWrite =
  | { readonly Put: Put; readonly Update?: undefined }
  | { readonly Update: Update; readonly Put?: undefined };

/** Options of {@link nextVersion}. */
export interface RowVersionOptions {
  /** The row as it was read; `undefined` if there is none. */
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
 * because events can arrive in any order. It needs no ordered delivery, and costs nothing beyond the write.
 *
 * The write also stores the version, on the condition that the row has no version or a lower one. If another event is applied between the
 * handler's read and its commit, the transaction is refused, and the handler runs again on a fresh read.
 *
 * Use it only for events that carry the whole state: an ignored event is never applied. One row takes the events of one aggregate.
 *
 * @param write - the change of one row. Its own condition is kept: both must be true
 * @returns the write, or an empty list if the row has this version or a later one
 * @throws `BAD_VERSION` if the event or the row has no usable version: the message is rejected
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
    throw new PoisonMessage(
      `The event has the version ${shown(version)}; it must be a number. Give the event a sequence when it is created, or pass another number as version.`,
      { code: 'BAD_VERSION' },
    );
  }
  const applied = row?.[attribute];
  if (applied !== undefined) {
    if (!isVersion(applied)) throw new PoisonMessage(badRow(attribute, applied), { code: 'BAD_VERSION' });
    if (applied >= version) return [];
  }
  return [versioned(write, attribute, version, NEWER)];
}

/**
 * Numbers the events of an aggregate: the write raises the row's version by one, on the condition that the row still has the version that
 * was read, and the event takes it as its `sequence`. Both commit in one transaction, so no number is missing or used twice. A row without
 * a version gets 1.
 *
 * @param write - the change of the aggregate's row. Its own condition is kept: both must be true
 * @returns the write, and the version that it stores
 * @throws `BAD_VERSION` if the row's version is not a whole number
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
  if (read === undefined) return { write: versioned(write, attribute, 1, NEWER), version: 1 };
  if (!Number.isSafeInteger(read)) throw new MailroomError('BAD_VERSION', badRow(attribute, read));
  const version = read + 1;
  return { write: versioned(write, attribute, version, UNCHANGED, { ':readVersion': read }), version };
}

/** The row has no version, or a lower one. */
const NEWER = '(attribute_not_exists(#rowVersion) OR #rowVersion < :rowVersion)';

/** The row has the version that was read. The second clause is always true then: DynamoDB refuses a value that no expression uses. */
const UNCHANGED = '(#rowVersion = :readVersion AND #rowVersion < :rowVersion)';

/** The write, which also stores the version on a condition; its own condition stays. */
function versioned(
  { Put, Update }: VersionedWrite,
  attribute: string,
  version: number,
  condition: string,
  values: StorableItem = {},
): Write {
  const extended = ({
    ConditionExpression,
    ExpressionAttributeNames,
    ExpressionAttributeValues,
  }: Expression & { readonly ConditionExpression?: string | undefined }) => ({
    ConditionExpression:
      ConditionExpression === undefined ? condition : `(${ConditionExpression}) AND ${condition}`,
    ExpressionAttributeNames: { ...ExpressionAttributeNames, '#rowVersion': attribute },
    ExpressionAttributeValues: { ...ExpressionAttributeValues, ':rowVersion': version, ...values },
  });
  if (Put)
    return { Put: { ...Put, Item: Put.Item && { ...Put.Item, [attribute]: version }, ...extended(Put) } };
  const UpdateExpression = Update.UpdateExpression && withVersion(Update.UpdateExpression);
  return { Update: { ...Update, UpdateExpression, ...extended(Update) } };
}

/** `SET` is a reserved word of DynamoDB, so as a word of its own it is the clause. A clause may occur once. */
function withVersion(expression: string): string {
  const stored = '#rowVersion = :rowVersion';
  const clause = /(?<![#:.\w])SET\s+/i;
  return clause.test(expression)
    ? expression.replace(clause, `SET ${stored}, `)
    : `${expression} SET ${stored}`;
}

function isVersion(version: unknown): version is number {
  return typeof version === 'number' && Number.isFinite(version);
}

function shown(version: unknown): string {
  return JSON.stringify(version) ?? 'undefined';
}

function badRow(attribute: string, version: unknown): string {
  return `The row's attribute "${attribute}" has the version ${shown(version)}; it must be a number. Store only versions in it, or name another attribute.`;
}
