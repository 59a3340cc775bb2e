import { ConditionFailed, isMailroomError, TransactionCancelled } from '../../lambdas/runtime/base/errors.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item, StorableItem, Table, TransactAction, Write } from '../../lambdas/runtime/store/table.ts';
import type { Change } from './past-items.ts';
import { equalItems } from './world-digest.ts';

/** Returns a sentence if a version changed a row whose schema is newer than its own. @param schema - that of the caller */
export function schemaViolation({ before, after }: Change, schema: number): string | undefined {
  const stored = before?.schema;
  return typeof stored === 'number' && stored > schema && !equalItems(before, after)
    ? `A version of schema ${schema} changed a row of schema ${stored}`
    : undefined;
}

/**
 * The table as code of another version of the stored shape sees it: this version's code, whose rows carry the other number. It reads
 * rows of that number as its own.
 */
export function tableOfSchema(table: Table, schema: number): Table {
  if (schema === SCHEMA) return table;
  const own = (item: Item | undefined) => (item?.schema === schema ? { ...item, schema: SCHEMA } : item);
  const other = (item: StorableItem | undefined) => (item?.schema === SCHEMA ? { ...item, schema } : item);
  const written = <A extends Write>({ Put, Update, ...rest }: A) => {
    const values = Update?.ExpressionAttributeValues;
    return {
      ...rest,
      ...(Put && { Put: { ...Put, Item: other(Put.Item) } }),
      ...(Update && {
        Update: {
          ...Update,
          ...(values && {
            ExpressionAttributeValues:
              values[':schema'] === SCHEMA ? { ...values, ':schema': schema } : values,
          }),
        },
      }),
    };
  };
  const refused = (error: unknown): never => {
    if (isMailroomError(error, 'CONDITION_FAILED')) throw new ConditionFailed(own(error.item));
    if (isMailroomError(error, 'TRANSACTION_CANCELLED'))
      throw new TransactionCancelled(error.reasons.map((reason) => ({ ...reason, item: own(reason.item) })));
    throw error;
  };
  return {
    ...table,
    get: async (key, options) => own(await table.get(key, options)),
    getEach: async (keys, options) => (await table.getEach(keys, options)).map(own),
    query: async (query) => {
      const page = await table.query(query);
      return { ...page, items: page.items.flatMap((item) => own(item) ?? []) };
    },
    write: async (action) => own(await table.write(written(action)).catch(refused)),
    transact: (actions, token) =>
      table
        .transact(
          actions.map((action): TransactAction => written(action)),
          token,
        )
        .catch(refused),
  };
}
