import { outboxChangesOf } from '../../cli/changes/outbox-changes.ts';
import { inboxChangesOf } from '../../cli/deployment/combined-inbox-changes.ts';
import { combinedRows } from '../../cli/deployment/combined-rows.ts';
import { dynamoRows } from '../../cli/deployment/dynamo-rows.ts';
import { guardedTable } from '../../cli/deployment/guarded-table.ts';
import { type OpenDatabase, rowsIn } from '../../cli/deployment/open-database.ts';
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { mailroomInMemory } from '../unit/cli/support/mailroom-in-memory.ts';
import { runInMemory } from '../unit/cli/support/run-in-memory.ts';

/**
 * The rig's Mailroom with rows in a database, too. Its clock agrees with the database's, and its sweep has just run.
 *
 * @param sleep - what happens while the command waits
 * @param inbox - the database that has the consumer's inbox, by the directory @default none
 */
export async function operatedMailroom<Open extends OpenDatabase>(
  database: Open,
  items: readonly Item[] = [],
  sleep: () => Promise<void> = async () => {},
  inbox?: DatabaseEngine,
) {
  const made = mailroomInMemory([]);
  const consumers = made.directory.consumers.map((entry) => ({ ...entry, inbox }));
  const directory = { ...made.directory, consumers };
  const clock = { ...made.clock, now: () => Date.now(), sleep };
  const swept = { ...SWEEP_STATE_KEY, schema: SCHEMA, shards: 1, sweptTo: Date.now() };
  for (const Item of [swept, ...items]) await made.table.write({ Put: { Item } });
  const inDatabase = rowsIn(database);
  const inTable = dynamoRows(made.table);
  const table = guardedTable(made.table, inDatabase);
  return {
    ...made,
    directory,
    clock,
    table,
    stored: combinedRows(inDatabase, inTable, directory),
    outboxChanges: outboxChangesOf({ table, clock, database }),
    inboxChanges: inboxChangesOf({ database, inDatabase, table: made.table, inTable, clock, directory }),
    dynamo: made.memory,
    database,
  };
}

/** The document of a command. */
export async function jsonOf(made: Awaited<ReturnType<typeof operatedMailroom>>, ...argv: string[]) {
  const { out, err, code } = await runInMemory(made, [...argv, '--json']);
  if (out === '') throw new Error(err);
  return { ...JSON.parse(out), exitCode: code };
}
