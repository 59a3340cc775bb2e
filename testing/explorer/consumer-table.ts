import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { inboxHistoryKey } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Key, Table, TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { Actor } from './actor.ts';
import { named } from './call-outcomes.ts';
import { type ConsumerParts, violate } from './consumer-parts.ts';
import { inboxViolation, lastViolation } from './inbox-rules.ts';
import type { Change } from './past-items.ts';
import { isHint, keysOf, scheduledTable } from './ports.ts';
import { schemaViolation, tableOfSchema } from './row-versions.ts';

/** The table from an actor's point of view: its calls are steps of the schedule, and every change is checked. */
export function tableOf(parts: ConsumerParts, actor: Actor): Table {
  const { scheduler, options, config, memory, past, log } = parts;
  const schema = options.schemaOf?.(actor) ?? SCHEMA;
  const watched = watchedTable(memory, (change) => {
    parts.now = undefined;
    if (!isHint(change.key)) past.changed(change);
    for (const id of (change.after as Partial<InboxRow> | undefined)?.rejectedIds ?? [])
      log.rejectedIds.add(id);
    const broken = inboxViolation(change, actor.index, scheduler.now(), options.mayForce ?? false);
    if (broken !== undefined) violate(parts, broken);
    const lowered = lastViolation(change);
    if (lowered !== undefined) violate(parts, lowered);
    const newer = schemaViolation(change, schema);
    if (newer !== undefined) violate(parts, newer);
    if (isUnsettledEffect(memory, change))
      violate(parts, 'TTL may delete an effect before its message is PROCESSED');
  });
  const historyPk = inboxHistoryKey(config.consumer).PK;
  // The inbox history is never written by the actors, so the time of a read makes no difference.
  const table = scheduledTable(
    actor,
    throttled(parts, watched),
    past,
    (pk) => pk !== historyPk,
    options.otherTables,
  );
  const versioned = tableOfSchema(table, schema);
  return options.tamperTable?.(versioned, actor) ?? versioned;
}

/** The table with its outages, which do not count as faults and do not end early: of transactions, and of all calls. */
function throttled(parts: ConsumerParts, table: MemoryTable): MemoryTable {
  const available = (until: number) => {
    if (parts.scheduler.now() < until) throw named('ThrottlingException', 'Rate exceeded');
  };
  const reachable = () => available(parts.tableBackAt);
  return {
    ...table,
    get: async (key, options) => {
      reachable();
      return table.get(key, options);
    },
    query: async (query) => {
      reachable();
      return table.query(query);
    },
    write: async (write) => {
      reachable();
      return table.write(write);
    },
    updateEach: async (updates) => {
      reachable();
      return table.updateEach(updates);
    },
    transact: async (actions, token) => {
      available(Math.max(parts.outageEnds, parts.tableBackAt));
      await table.transact(actions, token);
    },
  };
}

function isUnsettledEffect(memory: MemoryTable, { key, after }: Change): boolean {
  return (
    key.SK !== 'MESSAGE' &&
    after?.status === 'COMPLETED' &&
    'expiresAt' in after &&
    memory.item({ PK: key.PK, SK: 'MESSAGE' })?.status !== 'PROCESSED'
  );
}

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
