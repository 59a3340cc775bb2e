import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { deadKey } from '../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { memoryTable, memoryTelemetry } from '../../testing/index.ts';
import { relayConfig } from '../support/runtime-rig.ts';
import { type Moods, moods, moodyBus } from './support/bus-moods.ts';
import { eagerClock, settled } from './support/eager-clock.ts';
import { runs, seededBytes } from './support/runs.ts';
import {
  anyContent,
  type Content,
  contentsOf,
  goodContent,
  RUNNING_MINUTES,
} from './support/table-contents.ts';

it('every good row that is due is published once, and the pass is complete, whatever else the table holds', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyContent, { maxLength: 25, size: 'max' }),
      fc.nat(),
      async (contents, seed) => {
        const { pass, good, bus, stored } = await rig(contents, seed);
        await expect(pass()).resolves.toMatchObject({ complete: true });
        for (const { row, due } of good) {
          expect(stored(row)?.status).toBe(due ? 'PUBLISHED' : 'PENDING');
          expect(bus.publishedIds().filter((id) => id === idOf(row))).toHaveLength(due ? 1 : 0);
        }
      },
    ),
    runs(20),
  );
});

it('whatever a bus does before it is well, each row ends PUBLISHED, as the bus said, or DEAD with its pointer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(goodContent, { maxLength: 30, size: 'max' }),
      moods,
      fc.nat(),
      async (contents, mood, seed) => {
        const { pass, good, bus, stored, table, clock } = await rig(contents, seed, mood);
        // Longer than the longest backoff after the last attempt.
        for (let minute = 0; minute < 60; minute += 5) {
          await pass();
          clock.moveTo(clock.now() + 5 * MINUTE_MS);
        }
        for (const { row } of good) {
          const { status } = stored(row) ?? {};
          expect(status).toBe(bus.confirmedIds().includes(idOf(row)) ? 'PUBLISHED' : 'DEAD');
          const pointer = table.item(deadKey(Number(row.PK.slice(-2)), idOf(row)));
          expect(pointer !== undefined).toBe(status === 'DEAD');
        }
        await expect(pass()).resolves.toMatchObject({ published: 0, pending: 0, complete: true });
      },
    ),
    runs(20),
  );
});

function idOf(row: OutboxRow): string {
  return row.SK.slice('EVENT#'.length);
}

/** The sweep, a table with these contents, and what becomes of the good rows. */
async function rig(contents: readonly Content[], seed: number, mood: Moods = { entries: [], calls: [] }) {
  const clock = eagerClock();
  const memory = memoryTable({ clock });
  clock.moveTo(clock.now() + RUNNING_MINUTES * MINUTE_MS);
  const bus = moodyBus(mood, { clock });
  const { items, good } = contentsOf(contents, clock.now());
  for (const item of items) await memory.write({ Put: { Item: item } });
  const table: Table = {
    ...memory,
    query: async (query) => {
      await clock.sleep(1); // so that a pass that finds no end runs out of time
      return memory.query(query);
    },
  };
  const telemetry = memoryTelemetry();
  const random = seededBytes(seed);
  const sweep = createSweepPass({ config: relayConfig, table, bus, clock, random, telemetry });
  return {
    clock,
    bus,
    good,
    table: memory,
    pass: () => settled(sweep(clock.now() + 60_000)),
    stored: ({ PK, SK }: OutboxRow) => memory.item({ PK, SK }) as OutboxRow | undefined,
  };
}
