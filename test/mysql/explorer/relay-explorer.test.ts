import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMysqlOutbox } from '../../../lambdas/runtime/mysql/mysql-outbox.ts';
import type { ClaimMode } from '../../../lambdas/runtime/store/mysql/server-check.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { explore, type World } from '../../postgres/explorer/schedules.ts';
import { PRODUCER, placed } from '../../postgres/support/rig.ts';
import { type Rig, startRig } from '../support/rig.ts';
import { leasesPass, relayOnce } from './explored-relay.ts';
import { FAST } from './mysql-store.ts';
import { steppedWorker, waitingIn } from './stepped-pool.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-relay-explorer', FAST);
});
afterAll(() => rig.close());

/** Two events, and two relays that claim, publish and mark. A relay can pause or crash between its statements. */
async function twoRelays(claim: ClaimMode, rewrite?: (text: string) => string): Promise<World> {
  for (const table of ['event', 'pending', 'published', 'commit'])
    await rig.pool.query(`DELETE FROM mailroom.${table}`);
  const { database } = rig;
  const outbox = createMysqlOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
  const committed = (await outbox.commit(async () => [placed(1), placed(2)])).map(({ eventId }) => eventId);
  const published: string[] = [];
  let hasPassed = false;
  let wake: () => void = () => {};
  const workers = [0, 1].map(() => {
    const worker = steppedWorker(rig.pool, () => wake(), rewrite);
    worker.run(() => relayOnce(worker.database, published, claim));
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
      hasPassed = true;
      await leasesPass(database);
    },
    verdict: async (crashed) => {
      const failed = workers.map((worker) => worker.failure()).find((error) => error !== undefined);
      if (failed !== undefined) return `a relay failed with ${String(failed)}`;
      const count = async (table: string) => (await rig.rows(`SELECT 1 FROM mailroom.${table}`)).length;
      if (crashed === undefined && !hasPassed && (await count('pending')) > 0) return 'an event is left';
      await leasesPass(database);
      await relayOnce(database, published, claim);
      const times = committed.map((id) => published.filter((one) => one === id).length);
      if (times.includes(0)) return `published ${times.join(' and ')} times`;
      if (crashed === undefined && !hasPassed && times.some((n) => n > 1))
        return `published ${times.join(' and ')} times`;
      const rows = [await count('pending'), await count('published'), await count('event')].join();
      return rows === '0,2,2' ? undefined : `${rows} rows are left`;
    },
  };
}

test.each<ClaimMode>(['skip-locked', 'token'])(
  '%s: two relays and one crash: each event is published, and once unless a lease has passed, in every schedule',
  async (claim) => {
    const { schedules, violation } = await explore(() => twoRelays(claim), {
      switches: 1,
      crashes: 1,
      passes: 1,
    });
    expect(violation).toBeUndefined();
    expect(schedules).toBeGreaterThan(10);
  },
);

test('finds a claim that leases what another relay has leased meanwhile', async () => {
  const clause = 'fence = UNHEX(?) WHERE due_at <= UTC_TIMESTAMP(6)';
  let found = 0;
  const rewrite = (text: string) => {
    if (text.includes(clause)) found += 1;
    return text.replace(clause, 'fence = UNHEX(?) WHERE TRUE');
  };
  const { violation } = await explore(() => twoRelays('token', rewrite), {
    switches: 1,
    crashes: 0,
    passes: 0,
  });
  expect(found).toBeGreaterThan(0);
  expect(violation).toMatch(/^published 2 and 2 times/);
});
