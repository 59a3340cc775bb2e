import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { createMysqlOutbox } from '../../../lambdas/runtime/mysql/mysql-outbox.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { mysqlTransitions } from '../../../lambdas/runtime/store/mysql/relay-transitions.ts';
import type { ClaimMode } from '../../../lambdas/runtime/store/mysql/server-check.ts';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import {
  type ExploredQueue,
  type RelaySide,
  twoOrderedRelays,
} from '../../postgres/explorer/relay-order-world.ts';
import { explore } from '../../postgres/explorer/schedules.ts';
import { relayConfig } from '../../postgres/support/relay-config.ts';
import { PRODUCER } from '../../postgres/support/rig.ts';
import { type Rig, startRig } from '../support/rig.ts';
import { leasesPass } from './explored-relay.ts';
import { FAST } from './mysql-store.ts';
import { steppedWorker, waitingIn } from './stepped-pool.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-relay-order', FAST);
});
afterAll(() => rig.close());

const sideOf = (database: Database<PoolConnection>, claim: ClaimMode): RelaySide => ({
  sql: database,
  transitions: mysqlTransitions({
    config: relayConfig({ orderBy: 'aggregate' }),
    database,
    clock: systemClock,
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
    claim,
  }),
});

const queueOf = ({ pool, database, rows }: Rig, claim: ClaimMode): ExploredQueue => ({
  fill: async (events) => {
    for (const table of ['event', 'pending', 'published', 'commit'])
      await pool.query(`DELETE FROM mailroom.${table}`);
    const outbox = createMysqlOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
    await outbox.commit(async () => events);
  },
  waiting: () => waitingIn(pool),
  makeDue: async () => {
    await leasesPass(database);
    return (await rows('SELECT 1 FROM mailroom.pending LIMIT 1')).length > 0;
  },
  isAsleep: async () =>
    (
      await rows(`SELECT 1 FROM mailroom.pending p WHERE p.waits_for IS NOT NULL AND p.due_at > UTC_TIMESTAMP(6)
        AND NOT EXISTS (SELECT 1 FROM mailroom.pending q WHERE q.event_id = p.waits_for)`)
    ).length > 0,
  sleepsAfterCrash: false,
  plain: sideOf(database, claim),
  worker: (changed, rewrite) => {
    const worker = steppedWorker(pool, changed, rewrite);
    return { ...worker, side: sideOf(worker.database, claim) };
  },
});

/** @param changes - clauses, with what replaces them in a hole */
function exploring(claim: ClaimMode, changes: readonly (readonly [clause: string, replacement: string])[]) {
  const found = new Set<string>();
  const rewrite = (text: string) =>
    changes.reduce((changed, [clause, replacement]) => {
      if (changed.includes(clause)) found.add(clause);
      return changed.replaceAll(clause, replacement);
    }, text);
  return { found, open: () => twoOrderedRelays(queueOf(rig, claim), rewrite) };
}

describe.each<ClaimMode>(['skip-locked', 'token'])('%s', (claim) => {
  test('two relays and one crash: the first publication of each event follows that of the one before it, which wakes it', async () => {
    const { schedules, violation } = await explore(exploring(claim, []).open, {
      switches: 1,
      crashes: 1,
      passes: 0,
    });
    expect(violation).toBeUndefined();
    expect(schedules).toBeGreaterThan(50);
  });
});

/** Enough to find each hole. */
const FEW = { switches: 2, crashes: 0, passes: 0 };

test.each<
  [
    name: string,
    claim: ClaimMode,
    violation: RegExp,
    changes: readonly (readonly [clause: string, replacement: string])[],
  ]
>([
  [
    'a claim that does not skip an event behind one that another relay holds',
    'skip-locked',
    /^published in the order a2,a1/,
    [['AND b.ordinal < CAST', 'AND FALSE AND b.ordinal < CAST']],
  ],
  [
    'a mark that wakes no event',
    'skip-locked',
    /^an event was not woken/,
    [
      [
        'SET due_at = UTC_TIMESTAMP(6), waits_for = NULL WHERE waits_for IS NOT NULL',
        'SET waits_for = waits_for WHERE waits_for IS NOT NULL',
      ],
    ],
  ],
])('finds %s', async (_name, claim, expected, changes) => {
  const { open, found } = exploring(claim, changes);
  const { violation } = await explore(open, FEW);
  expect(violation).toMatch(expected);
  expect(found.size).toBe(changes.length);
});
