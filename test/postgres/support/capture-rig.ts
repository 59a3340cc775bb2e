import { Pool } from 'pg';
import { postgresSlotProblems } from '../../../cli/reports/checks/postgres-slot-checks.ts';
import { nodePostgres, type PgClient } from '../../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../../lambdas/runtime/postgres/postgres-outbox.ts';
import { grantPostgresRole } from '../../../lambdas/runtime/store/postgres/migrate.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { PRODUCER, placed, type Rig, startRig } from './rig.ts';

const SLOT = 'mailroom';

/** A database whose events change data capture publishes, and the login of its connector. */
export interface CaptureRig {
  readonly rig: Rig;
  readonly connector: Pool;
  /** Commits an event of `relay: 'cdc'`. @param now - the time of its id @returns its id */
  readonly commit: (n: number, now?: number) => Promise<string>;
  readonly createSlot: (slot?: string) => Promise<unknown>;
  readonly dropSlot: (slot?: string) => Promise<unknown>;
  /** Confirms what is in the log, as a connector does that has sent it. */
  readonly confirm: (slot?: string) => Promise<unknown>;
  /** Writes more log than a slot may hold back. */
  readonly loseSlot: () => Promise<void>;
  /** Runs the retention as a connector's heartbeat does. @returns the number of deleted events */
  readonly retain: (retention?: string, slot?: string) => Promise<number>;
  /** Lets a slot be 30 days old and have confirmed the log of until 11 hours ago. */
  readonly age: (slot?: string) => Promise<unknown>;
  /** The findings of `doctor` about slots. */
  readonly problems: () => Promise<{ readonly problem: string; readonly text: string }[]>;
  /** Removes events, slots and readings. */
  readonly clear: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Starts a server with a connector, whose login is `debezium`. */
export async function startCapture(name: string): Promise<CaptureRig> {
  const rig = await startRig(name, { wal_level: 'logical', max_slot_wal_keep_size: '16MB' });
  const { pool } = rig;
  await pool.query('CREATE ROLE debezium LOGIN REPLICATION');
  await grantPostgresRole(rig.database, { login: 'debezium', role: 'mailroom_connector' });
  const connector = new Pool({ connectionString: rig.server.url.replace('postgres@', 'debezium@') });
  return {
    rig,
    connector,
    commit: async (n, now) => {
      const outbox = createPostgresOutbox<PgClient>({
        config: PRODUCER,
        database: nodePostgres(pool),
        relay: 'cdc',
        telemetry: memoryTelemetry(),
        ...(now !== undefined && { clock: { now: () => now, sleep: async () => {} } }),
      });
      const [event] = await outbox.commit(async () => [placed(n)]);
      return event?.eventId ?? '';
    },
    createSlot: (slot = SLOT) =>
      pool.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", [slot]),
    dropSlot: (slot = SLOT) => pool.query('SELECT pg_drop_replication_slot($1)', [slot]),
    confirm: (slot = SLOT) =>
      pool.query('SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())', [slot]),
    loseSlot: async () => {
      for (let round = 0; round < 4; round += 1)
        await pool.query('SELECT pg_switch_wal(), pg_logical_emit_message(false, $1, repeat($2, 1000000))', [
          'fill',
          'x',
        ]);
      await pool.query('CHECKPOINT');
    },
    retain: async (retention = '1 day', slot = SLOT) => {
      const call = 'SELECT mailroom.delete_captured($1, $2::interval)::int AS deleted';
      return (await connector.query(call, [slot, retention])).rows[0]?.deleted;
    },
    age: (slot = SLOT) =>
      pool.query(
        "UPDATE mailroom.capture SET since = since - interval '30 days', captured_until = captured_until - interval '11 hours' WHERE slot = $1",
        [slot],
      ),
    problems: async () => {
      const read = async (text: string) => (await pool.query(text)).rows;
      const found: { problem: string; text: string }[] = [];
      for (const find of postgresSlotProblems({ read } as never, Date.now))
        for await (const one of find()) found.push(one);
      return found;
    },
    clear: async () => {
      await rig.clear();
      await pool.query('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
      await pool.query('TRUNCATE mailroom.capture');
    },
    close: async () => {
      await connector.end();
      await rig.close();
    },
  };
}
