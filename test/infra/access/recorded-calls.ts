import type { Item, Table, TransactAction } from '../../../lambdas/runtime/store/table.ts';

/** Every call that went through a table, as IAM sees it: the action, and the partition key of the row. */
export interface RecordedCalls {
  readonly table: Table;
  /** Without repeats, e.g. `dynamodb:PutItem OUTBOX#…`. */
  calls(): { readonly action: string; readonly key: string | undefined }[];
}

/** Puts a recorder before a table. */
export function recordCalls(table: Table): RecordedCalls {
  const recorded = new Map<string, { action: string; key: string | undefined }>();

  function record(name: string, key: unknown): void {
    const call = { action: `dynamodb:${name}`, key: key === undefined ? undefined : String(key) };
    recorded.set(`${call.action} ${call.key}`, call);
  }

  /** A transaction is allowed as its actions are (DynamoDB developer guide, "Using IAM with DynamoDB transactions"). */
  function recordAction({ Put, Update, Delete, ConditionCheck }: TransactAction): void {
    const keyed: readonly [string, Item | undefined][] = [
      ['PutItem', Put?.Item],
      ['UpdateItem', Update?.Key],
      ['DeleteItem', Delete?.Key],
      ['ConditionCheckItem', ConditionCheck?.Key],
    ];
    for (const [name, key] of keyed) if (key !== undefined) record(name, key.PK);
  }

  return {
    calls: () => [...recorded.values()],
    table: {
      name: table.name,
      get: (key, options) => {
        record('GetItem', key.PK);
        return table.get(key, options);
      },
      getEach: (keys, options) => {
        for (const { PK } of keys) record('BatchGetItem', PK);
        return table.getEach(keys, options);
      },
      query: (query) => {
        record('Query', query.pk);
        return table.query(query);
      },
      write: (write) => {
        recordAction(write);
        return table.write(write);
      },
      transact: (actions, token) => {
        for (const action of actions) recordAction(action);
        return table.transact(actions, token);
      },
      updateEach: (updates) => {
        for (const { key } of updates) record('PartiQLUpdate', key.PK);
        return table.updateEach(updates);
      },
      createdAt: () => {
        record('DescribeTable', undefined);
        return table.createdAt();
      },
    },
  };
}
