import { producerOf, steadily } from '../sql/events.ts';
import { percentiles, type Rate, until, type Wait } from '../sql/wait.ts';
import type { PostgresBenchDatabase } from './postgres-database.ts';

/** Reads the inserted events from a logical replication slot, as CDC does, every 100 ms. */
export async function readSlot(database: PostgresBenchDatabase, { perSecond, forMs }: Rate): Promise<Wait> {
  await database.pool.query("SELECT pg_create_logical_replication_slot('bench', 'test_decoding')");
  const ages: number[] = [];
  let isOpen = true;
  const reading = (async () => {
    while (isOpen) {
      const { rows } = await database.pool.query<{ data: string }>(
        "SELECT data FROM pg_logical_slot_get_changes('bench', NULL, NULL) WHERE data LIKE 'table mailroom.event: INSERT%'",
      );
      const now = Date.now();
      for (const { data } of rows) ages.push(now - Number(/"occurredAt":(\d+)/.exec(data)?.[1]));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  const written = await steadily(perSecond, forMs, producerOf(database));
  await until(() => ages.length >= written);
  isOpen = false;
  await reading;
  await database.pool.query("SELECT pg_drop_replication_slot('bench')");
  await database.close();
  return { system: 'a replication slot, read every 100 ms', perSecond, ...percentiles(ages) };
}
