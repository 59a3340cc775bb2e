import { PoisonMessage } from '../base/errors.ts';
import type { Expression, Item, Put, Update, Write } from '../store/table.ts';

/** Options of {@link ignoreOlder}. */
export interface IgnoreOlderOptions {
  /** The row as the handler read it; `undefined` if there is none. */
  readonly row: Item | undefined;
  /** The version that the event carries, such as its `sequence`. A greater number is newer. */
  readonly version: number | undefined;
  /** The attribute of the row that stores the version of the last applied event. @default 'version' */
  readonly attribute?: string | undefined;
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
 * transactional(AddressChanged, async ({ data, sequence }) => {
 *   const Key = { PK: `CUSTOMER#${data.customerId}`, SK: 'ADDRESS' };
 *   const row = await table.get(Key);
 *   return { writes: ignoreOlder({ Put: { Item: { ...Key, ...data } } }, { row, version: sequence }) };
 * });
 * ```
 */
export function ignoreOlder(
  write:
    | { readonly Put: Put; readonly Update?: undefined }
    | { readonly Update: Update; readonly Put?: undefined },
  { row, version, attribute = 'version' }: IgnoreOlderOptions,
): Write[] {
  const wanted = checked(
    version,
    'The event',
    `Give the event a sequence when it is created, or pass another number as version`,
  );
  const applied = row?.[attribute];
  if (applied !== undefined) {
    const last = checked(
      applied,
      `The row's attribute "${attribute}"`,
      'Store only versions in it, or name another attribute',
    );
    if (last >= wanted) return [];
  }
  const { Put, Update } = write;
  if (Put) {
    const Item = Put.Item && { ...Put.Item, [attribute]: wanted };
    return [{ Put: { ...Put, Item, ...newerThan(Put, attribute, wanted) } }];
  }
  const UpdateExpression = Update?.UpdateExpression && withVersion(Update.UpdateExpression);
  return [
    {
      Update: {
        ...Update,
        Key: Update?.Key,
        UpdateExpression,
        ...newerThan(Update ?? {}, attribute, wanted),
      },
    },
  ];
}

/** The row has no version, or a lower one; its own condition stays. */
function newerThan(
  {
    ConditionExpression,
    ExpressionAttributeNames,
    ExpressionAttributeValues,
  }: Expression & { readonly ConditionExpression?: string | undefined },
  attribute: string,
  version: number,
) {
  const newer = '(attribute_not_exists(#ignoreOlder) OR #ignoreOlder < :ignoreOlder)';
  return {
    ConditionExpression: ConditionExpression === undefined ? newer : `(${ConditionExpression}) AND ${newer}`,
    ExpressionAttributeNames: { ...ExpressionAttributeNames, '#ignoreOlder': attribute },
    ExpressionAttributeValues: { ...ExpressionAttributeValues, ':ignoreOlder': version },
  };
}

/** `SET` is a reserved word of DynamoDB, so as a word of its own it is the clause. A clause may occur once. */
function withVersion(expression: string): string {
  const stored = '#ignoreOlder = :ignoreOlder';
  const clause = /(?<![#:.\w])SET\s+/i;
  return clause.test(expression)
    ? expression.replace(clause, `SET ${stored}, `)
    : `${expression} SET ${stored}`;
}

function checked(version: unknown, what: string, remedy: string): number {
  if (typeof version === 'number' && Number.isFinite(version)) return version;
  throw new PoisonMessage(
    `${what} has the version ${JSON.stringify(version) ?? 'undefined'}, which is not a number. ${remedy}.`,
    {
      code: 'BAD_VERSION',
    },
  );
}
