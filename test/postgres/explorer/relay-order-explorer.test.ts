import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { nodePostgres } from '../../../lambdas/runtime/postgres/databases.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../../lambdas/runtime/store/postgres/relay-transitions.ts';
import type { Sql } from '../../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { relayConfig } from '../support/relay-config.ts';
import { Placed, type Rig, startRig } from '../support/rig.ts';
import { explore, type World } from './schedules.ts';
import { steppedWorker, waitingIn } from './stepped-pool.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('relay-order', { fsync: 'off', synchronous_commit: 'off' });
});
afterAll(() => rig.close());

/** Faster than a TRUNCATE of almost empty tables. */
const CLEARED = `WITH e AS (DELETE FROM mailroom.event), q AS (DELETE FROM mailroom.pending) DELETE FROM mailroom.published`;

/** Two events of an aggregate, and two relays: one has two turns, the other one. A relay can pause or crash between its claim and its publication. */
async function twoRelays(rewrite?: (text: string) => string): Promise<World> {
  await rig.pool.query(CLEARED);
  await rig.outbox.commit(async () => [1, 2].map((n) => Placed.create({ aggregateId: 'a', data: { n } })));
  const published: number[] = [];
  let wake: () => void = () => {};
  const relay = async (database: Sql, turns: number) => {
    const config = { ...relayConfig(), orderBy: 'aggregate' as const };
    const telemetry = memoryTelemetry();
    const transitions = postgresTransitions({
      config,
      database,
      clock: systemClock,
      random: systemRandomBytes,
      telemetry,
    });
    for (let turn = 0; turn < turns; turn += 1) {
      const rows = await transitions.claim(10, true);
      await database.query("SELECT 'publish'");
      for (const { entry } of rows) published.push(JSON.parse(entry.detail).data.n);
      await transitions.markPublished(rows);
    }
  };
  const workers = [2, 1].map((turns) => {
    const worker = steppedWorker(rig.pool, () => wake(), rewrite);
    worker.run(() => relay(nodePostgres(worker.pool), turns));
    return worker;
  });
  return {
    workers,
    waiting: () => waitingIn(rig.pool),
    changed: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
    pass: async () => {
      await rig.pool.query('UPDATE mailroom.pending SET due_at = statement_timestamp()');
    },
    verdict: async (crashed) => {
      const failed = workers.map((worker) => worker.failure()).find((error) => error !== undefined);
      if (failed !== undefined) return `a relay failed with ${String(failed)}`;
      const parked = `SELECT 1 FROM mailroom.pending p WHERE p.waits_for IS NOT NULL AND p.due_at > clock_timestamp()
        AND NOT EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = p.waits_for)`;
      if (crashed === undefined && (await rig.rows(parked)).length > 0) return 'an event was not woken';
      const due = 'UPDATE mailroom.pending SET due_at = statement_timestamp() RETURNING 1';
      while ((await rig.rows(due)).length > 0) await relay(rig.database, 1);
      const first = [...new Set(published)].join();
      return first === '1,2' ? undefined : `published in the order ${first}`;
    },
  };
}

const BOUNDS = { switches: 2, crashes: 1, passes: 1 };

/** Enough to find each hole. */
const FEW = { switches: 2, crashes: 0, passes: 0 };

test('two relays and one crash: the first publication of each event follows that of the one before it, which wakes it', async () => {
  const { schedules, violation } = await explore(() => twoRelays(), BOUNDS);
  expect(violation).toBeUndefined();
  expect(schedules).toBeGreaterThan(50);
});

test('finds a claim that does not skip an event behind one that another relay holds', async () => {
  const clause = 'EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = b.event_id)';
  const rewrite = (text: string) => text.replace(clause, 'false');
  const { violation } = await explore(
    () => twoRelays((text) => rewrite(text).replace('LIMIT $1::int', 'LIMIT least($1::int, 1)')),
    FEW,
  );
  expect(violation).toMatch(/^published in the order 2,1/);
});

test('finds a mark that wakes no event', async () => {
  const rewrite = (text: string) =>
    text.replace(
      'SET due_at = clock_timestamp(), waits_for = NULL FROM following',
      'SET waits_for = p.waits_for FROM following',
    );
  const { violation } = await explore(() => twoRelays(rewrite), FEW);
  expect(violation).toMatch(/^an event was not woken/);
});
