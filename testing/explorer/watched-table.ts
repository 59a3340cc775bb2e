import type { Key, TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { Change } from './past-items.ts';
import { keysOf } from './ports.ts';

/** A table that reports each of its changes, with the item. */
export function watchedTable(memory: MemoryTable, onChange: (change: Change) => void): MemoryTable {
  async function watch<T>(keys: readonly Key[], make: () => Promise<T>): Promise<T> {
    const before = keys.map((key) => memory.item(key));
    const result = await make();
    keys.forEach((key, index) => {
      onChange({ key, before: before[index], after: memory.item(key) });
    });
    return result;
  }
  return {
    ...memory,
    write: (write) => watch(ownKeys(memory, [write]), () => memory.write(write)),
    transact: (actions, token) => watch(ownKeys(memory, actions), () => memory.transact(actions, token)),
    updateEach: (updates) =>
      watch(
        updates.map(({ key }) => key),
        () => memory.updateEach(updates),
      ),
  };
}

/** The keys of the Mailroom table's items that the actions may change. */
function ownKeys(memory: MemoryTable, actions: readonly TransactAction[]): Key[] {
  return actions
    .filter(({ ConditionCheck, Put, Update, Delete }) => {
      const tableName = (Put ?? Update ?? Delete)?.TableName ?? memory.name;
      return ConditionCheck === undefined && tableName === memory.name;
    })
    .flatMap((action) => keysOf([action]));
}
