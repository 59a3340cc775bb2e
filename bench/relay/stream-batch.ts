import type { DynamoDBStreamEvent } from 'aws-lambda';
import { memoryTable } from '../../testing/index.ts';
import { orderPlaced, ordersOutbox, RELAY_CONFIG } from './events.ts';

/** The maximum number of events per commit here: a transaction takes 100 actions. */
const COMMIT_MAX = 100;

/** The batch that Lambda delivers to the stream relay after events were committed in groups. */
export async function streamBatch(records: number, committedAt: number): Promise<DynamoDBStreamEvent> {
  const clock = { now: () => committedAt, sleep: async () => {} };
  const table = memoryTable({ name: RELAY_CONFIG.tableName, clock });
  const outbox = ordersOutbox({ table, clock });
  for (let n = 0; n < records; n += COMMIT_MAX) {
    const count = Math.min(COMMIT_MAX, records - n);
    await outbox.commit({ events: Array.from({ length: count }, (_, i) => orderPlaced(n + i)) });
  }
  return JSON.parse(JSON.stringify({ Records: table.stream() })) as DynamoDBStreamEvent;
}
