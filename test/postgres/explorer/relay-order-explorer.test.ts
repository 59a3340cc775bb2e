import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { nodePostgres } from '../../../lambdas/runtime/postgres/databases.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../../lambdas/runtime/store/postgres/relay-transitions.ts';
import type { Sql } from '../../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { relayConfig } from '../support/relay-config.ts';
import { type Rig, startRig } from '../support/rig.ts';
import { type ExploredQueue, type RelaySide, twoOrderedRelays } from './relay-order-world.ts';
import { explore } from './schedules.ts';
import { steppedWorker, waitingIn } from './stepped-pool.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('relay-order', { fsync: 'off', synchronous_commit: 'off' });
});
afterAll(() => rig.close());

/** Faster than a TRUNCATE of almost empty tables. */
const CLEARED = `WITH e AS (DELETE FROM mailroom.event), q AS (DELETE FROM mailroom.pending) DELETE FROM mailroom.published`;

const sideOf = (database: Sql): RelaySide => ({
  sql: database,
  transitions: postgresTransitions({
    config: relayConfig({ orderBy: 'aggregate' }),
    database,
    clock: systemClock,
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
  }),
});

const queueOf = ({ pool, database, outbox, rows }: Rig): ExploredQueue => ({
  fill: async (events) => {
    await pool.query(CLEARED);
    await outbox.commit(async () => events);
  },
  waiting: () => waitingIn(pool),
  makeDue: async () =>
    (await rows('UPDATE mailroom.pending SET due_at = statement_timestamp() RETURNING 1')).length > 0,
  isAsleep: async () =>
    (
      await rows(`SELECT 1 FROM mailroom.pending p WHERE p.waits_for IS NOT NULL AND p.due_at > clock_timestamp()
        AND NOT EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = p.waits_for)`)
    ).length > 0,
  sleepsAfterCrash: true,
  plain: sideOf(database),
  worker: (changed, rewrite) => {
    const worker = steppedWorker(pool, changed, rewrite);
    return { ...worker, side: sideOf(nodePostgres(worker.pool)) };
  },
});

const twoRelays = (rewrite?: (text: string) => string) => twoOrderedRelays(queueOf(rig), rewrite);

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
  expect(violation).toMatch(/^published in the order a2,a1/);
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
