import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { createMysqlRelay } from '../../lambdas/runtime/mysql/mysql-relay.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { mysqlTransitions } from '../../lambdas/runtime/store/mysql/relay-transitions.ts';
import type { ClaimMode } from '../../lambdas/runtime/store/mysql/server-check.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { eventually, PRODUCER, placed } from '../postgres/support/rig.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-race');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

const PRODUCERS = 4;
const TRANSACTIONS = 40;
const RELAYS = 8;

describe.each<ClaimMode>(['skip-locked', 'token'])(
  '%s: 8 relays, 4 producers, and one relay that sleeps beyond its lease',
  (claim) => {
    test('publish every committed event, and no other one', async () => {
      const { database } = rig;
      const outbox = createMysqlOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
      const bus = memoryBus();
      const committed = new Set<string>();
      const rolledBack = new Error('rolled back');
      const produce = async (producer: number) => {
        for (let n = 0; n < TRANSACTIONS; n += 1) {
          const events = [0, 1, 2, 3].map((each) => placed(producer * 10_000 + n * 10 + each));
          if (n % 5 === 4) {
            const failed = database.transaction(async (tx) => {
              await outbox.write(tx, events);
              throw rolledBack;
            });
            await failed.catch((error: unknown) => expect(error).toBe(rolledBack));
          } else for (const { eventId } of await outbox.commit(async () => events)) committed.add(eventId);
        }
      };
      const telemetry = memoryTelemetry();
      const parts = { config: { ...relayConfig({ maxAttempts: 10 }), claim }, database, telemetry };
      const relays = Array.from({ length: RELAYS - 1 }, () => createMysqlRelay({ ...parts, bus }));
      const running = relays.map((relay) => relay.run());
      const sleeper = async () => {
        const transitions = mysqlTransitions({
          ...parts,
          claim,
          config: relayConfig({ claimLeaseMs: 1_000 }),
          clock: systemClock,
          random: systemRandomBytes,
        });
        // It is first, because it claims until it has some, and what it has claimed is published by others before it wakes.
        const rows = await eventually(async () => {
          const claimed = await transitions.claim(5);
          return claimed.length > 0 ? claimed : undefined;
        });
        await eventually(async () => {
          const ids = new Set(bus.published().map(({ detail }) => JSON.parse(detail).eventId));
          return rows.every(({ eventId }) => ids.has(eventId)) || undefined;
        });
        await bus.put(
          rows.map(({ entry }) => entry),
          5_000,
        );
        expect(await transitions.markPublished(rows)).toEqual([]);
      };
      await Promise.all([
        sleeper(),
        ...Array.from({ length: PRODUCERS }, (_, producer) => produce(producer)),
      ]);
      await eventually(
        async () => (await rig.rows('SELECT 1 FROM mailroom.pending LIMIT 1')).length === 0 || undefined,
      );
      await Promise.all(relays.map((relay) => relay.stop()));
      await Promise.all(running);
      const published = bus.published().map(({ detail }) => String(JSON.parse(detail).eventId));
      expect([...new Set(published)].toSorted()).toEqual([...committed].toSorted());
      expect(await rig.rows('SELECT COUNT(*) AS n FROM mailroom.published')).toEqual([{ n: committed.size }]);
      expect(await rig.rows('SELECT 1 FROM mailroom.dead')).toEqual([]);
      // Only those of the relay that slept are published twice.
      expect(published.length - committed.size).toBeLessThanOrEqual(5);
    });
  },
);
