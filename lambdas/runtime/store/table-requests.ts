import type { EachUpdate, Item, Page, Query, Table, Update } from './table.ts';

/**
 * Reads a partition page by page.
 *
 * @param from - the cursor at which to start @default the beginning
 *
 * @example
 * ```ts
 * for await (const { items } of pagesOf(table, { pk: 'ORDER#7' })) print(items);
 * ```
 */
export async function* pagesOf(
  table: Pick<Table, 'query'>,
  query: Omit<Query, 'cursor'>,
  from?: Item,
): AsyncGenerator<Page> {
  let cursor = from;
  do {
    const page = await table.query({ ...query, cursor });
    yield page;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/**
 * Converts an {@link EachUpdate} to an action of a transaction or a single write: the same update under the same condition.
 *
 * @example
 * ```ts
 * updateAction({ key, set: { status: 'PENDING' }, remove: ['deadAt'], when: { status: 'DEAD' } });
 * // { Update: { UpdateExpression: 'SET #status = :status REMOVE #deadAt', ConditionExpression: '#status = :was_status', … } }
 * ```
 */
export function updateAction({ key, set, remove = [], when }: EachUpdate): { readonly Update: Update } {
  const names = [...Object.keys(set), ...remove, ...Object.keys(when)];
  const sets = Object.keys(set).map((name) => `#${name} = :${name}`);
  const removes = remove.map((name) => `#${name}`);
  const conditions = Object.keys(when).map((name) => `#${name} = :was_${name}`);
  return {
    Update: {
      Key: { ...key },
      UpdateExpression: [
        `SET ${sets.join(', ')}`,
        ...(removes.length === 0 ? [] : [`REMOVE ${removes.join(', ')}`]),
      ].join(' '),
      ConditionExpression: conditions.join(' AND ') || 'attribute_exists(PK)',
      ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
      ExpressionAttributeValues: {
        ...Object.fromEntries(Object.entries(set).map(([name, value]) => [`:${name}`, value])),
        ...Object.fromEntries(Object.entries(when).map(([name, value]) => [`:was_${name}`, value])),
      },
    },
  };
}
