import type { FigureTable, PartSettings } from '../part.ts';
import { type BenchDatabase, megabytes } from './database.ts';
import { relayOf, slowBus } from './mailroom.ts';

/** Published events that were deleted. */
export interface DeletedEvents {
  readonly published: number;
  readonly deletedPerSecond: number;
  readonly rounds: number;
  readonly mbBefore: number;
}

/** Deletes published events by the relay's own rounds. */
export async function retain(
  database: BenchDatabase,
  published: number,
  { say }: PartSettings,
): Promise<DeletedEvents> {
  const { pool } = database;
  await pool.query(
    `WITH ids AS MATERIALIZED (SELECT overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid AS id FROM generate_series(1, $1::int)), events AS (
      INSERT INTO mailroom.event (event_id, source, type, envelope) SELECT id, 'orders', 'Placed', '{"x":"' || repeat('x', 992) || '"}' FROM ids)
    INSERT INTO mailroom.published (event_id, published_at) SELECT id, now() - interval '30 days' FROM ids`,
    [published],
  );
  await pool.query('ANALYZE');
  const { rows } = await pool.query(
    "SELECT pg_total_relation_size('mailroom.event') + pg_total_relation_size('mailroom.published') AS bytes",
  );
  const beganAt = performance.now();
  let rounds = 0;
  for (let left = published; left > 0; rounds += 1) {
    const relay = relayOf(database, slowBus(0));
    // A round of care, and no pass.
    await relay.run(Date.now() + 1);
    const answer = await pool.query('SELECT count(*)::int AS left FROM mailroom.published');
    left = answer.rows[0]?.left;
    say(`${left} of ${published} published events are left`);
  }
  const seconds = (performance.now() - beganAt) / 1_000;
  await database.close();
  return {
    published,
    deletedPerSecond: Math.round(published / seconds),
    rounds,
    mbBefore: megabytes(rows[0]?.bytes),
  };
}

export function retentionTable({
  published,
  deletedPerSecond,
  rounds,
  mbBefore,
}: DeletedEvents): FigureTable {
  return {
    name: 'postgres-retention',
    title: 'Deleting published events of 1 KB in batches of 1,000',
    head: ['published events', 'MB before', 'rounds of at most 5 s', 'deleted per second'],
    rows: [[published, mbBefore, rounds, deletedPerSecond]],
  };
}
