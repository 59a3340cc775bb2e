import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { ID, idParameter, TIME } from '../../lambdas/runtime/store/mysql/expressions.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { PRODUCER, placed } from '../postgres/support/rig.ts';
import { describeCaptured } from '../support/captured-contract.ts';
import { type Operated, startOperated } from './support/operated.ts';

let operated: Operated;

beforeAll(async () => {
  const binlog = { 'log-bin': 'binlog', 'binlog-format': 'ROW', 'server-id': '1' };
  operated = await startOperated('mysql-operate-captured', binlog);
});
beforeEach(() => operated.clear());
afterAll(() => operated.close());

async function commit(at: number, relay?: 'cdc'): Promise<string> {
  const outbox = createMysqlOutbox<PoolConnection>({
    config: PRODUCER,
    database: operated.database,
    relay,
    telemetry: memoryTelemetry(),
    clock: { now: () => at, sleep: async () => {} },
  });
  const [event] = await outbox.commit(async () => [placed(4711)]);
  return event?.eventId ?? '';
}

describe('captured events in MySQL', () => {
  describeCaptured({
    open: () => operated.open,
    commit: (at) => commit(at, 'cdc'),
    publish: async (at) => {
      const id = await commit(at);
      await operated.rows('DELETE FROM mailroom.pending');
      await operated.rows(
        `INSERT INTO mailroom.published (event_id, published_at) VALUES (${ID}, ${TIME})`,
        idParameter(id),
        at,
      );
      return id;
    },
    read: () => operated.rows("CALL mailroom.delete_captured('mailroom', 2)"),
    stop: (forMs) =>
      operated.rows('UPDATE mailroom.capture SET beat_at = beat_at - INTERVAL ? SECOND', forMs / 1_000),
  });
});
