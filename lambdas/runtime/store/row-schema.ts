import type { Item, Key } from './table.ts';

/**
 * The stored shape: every kind of item in the Mailroom table, with its key and attributes. All times are epoch milliseconds,
 * except `expiresAt`, which is in seconds because DynamoDB's TTL requires it.
 */

/** The version of the stored shape, in every item. Increase it when a shape changes, and document how old rows are read. */
export const SCHEMA = 1;

/**
 * Returns true if this version supports a row's schema. Every version writes its schema, so a row without one was not written by a
 * newer version.
 *
 * @param schema - the row's attribute, as it was read
 */
export function isKnownSchema(schema: unknown): boolean {
  if (schema === undefined) return true;
  return typeof schema === 'number' && Number.isSafeInteger(schema) && schema >= 1 && schema <= SCHEMA;
}

/** Views an item that Mailroom wrote as its row type. */
export function asRow<R extends Key>(item: Item): R {
  return item as unknown as R;
}
