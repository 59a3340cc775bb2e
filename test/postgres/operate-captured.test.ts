import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import { type OpenPostgres, openPostgres } from '../../cli/deployment/postgres-database.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { describeCaptured } from '../support/captured-contract.ts';
import { type CaptureRig, startCapture } from './support/capture-rig.ts';
import { PRODUCER, placed } from './support/rig.ts';

let capture: CaptureRig;
let open: OpenPostgres;

beforeAll(async () => {
  capture = await startCapture('operate-captured');
  const { pool, database, server } = capture.rig;
  await pool.query('CREATE ROLE ada LOGIN');
  await grantPostgresRole(database, { login: 'ada', role: 'mailroom_operator' });
  open = await openPostgres(`postgresql://ada@127.0.0.1:${server.port}/postgres`);
});
beforeEach(() => capture.clear());
afterAll(async () => {
  await open.end();
  await capture.close();
});

describe('captured events in PostgreSQL', () => {
  describeCaptured({
    open: () => open,
    commit: (at) => capture.commit(4711, at),
    publish: async (at) => {
      const { rig } = capture;
      const clock = { now: () => at, sleep: async () => {} };
      const parts = { config: PRODUCER, database: rig.database, telemetry: memoryTelemetry(), clock };
      const [event] = await createPostgresOutbox(parts).commit(async () => [placed(4711)]);
      await rig.pool.query('DELETE FROM mailroom.pending');
      await rig.pool.query('INSERT INTO mailroom.published VALUES ($1, $2)', [event?.eventId, new Date(at)]);
      return event?.eventId ?? '';
    },
    read: async () => {
      await capture.createSlot().catch(() => {});
      await capture.retain('2 days');
      await capture.confirm();
      await capture.retain('2 days');
    },
    stop: (forMs) =>
      capture.rig.pool.query(
        "UPDATE mailroom.capture SET captured_until = captured_until - $1::float8 * interval '1 ms'",
        [forMs],
      ),
  });
});
