import type { DynamoDBStreamEvent } from 'aws-lambda';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { HAND_BACK_MS } from '../../lambdas/runtime/relay/stream-settings.ts';
import { deadKey } from '../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import { memoryTable, memoryTelemetry } from '../../testing/index.ts';
import { relayConfig } from '../support/runtime-rig.ts';
import { anyJson } from './support/arbitraries.ts';
import { type Moods, moods, moodyBus } from './support/bus-moods.ts';
import { eagerClock, settled } from './support/eager-clock.ts';
import { runs, seededBytes } from './support/runs.ts';
import { anyRecord, batchOf, goodRecord, type Spec } from './support/stream-records.ts';

it('whatever an event holds, it is answered, with sequence numbers that it gave, each once', async () => {
  const events = fc.oneof(anyJson, fc.record({ Records: fc.oneof(anyJson, fc.array(anyJson)) }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyRecord, { maxLength: 30, size: 'max' }),
      fc.option(events),
      fc.nat(),
      async (specs, event, seed) => {
        const down = { thrown: new Error('connect ETIMEDOUT'), published: false };
        const { handle, batch } = await rig(specs, seed, { entries: [], calls: Array(100).fill(down) });
        const failed = await handle(event ?? undefined);
        const given = event === null ? batch.records.map(sequenceNumberOf) : [];
        expect(failed.filter((number) => !given.includes(number))).toEqual([]);
        expect(new Set(failed).size).toBe(failed.length);
      },
    ),
    runs(60),
  );
});

it('every good row is published once and marked, but no row claimed by another worker, whatever its neighbors', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyRecord, { maxLength: 40, size: 'max' }), fc.nat(), async (specs, seed) => {
      const { handle, batch, bus, stored } = await rig(specs, seed);
      expect(await handle()).toEqual([]);
      for (const { row, claimed } of batch.good) {
        expect(bus.publishedIds().filter((id) => id === idOf(row))).toHaveLength(claimed ? 0 : 1);
        expect(stored(row)?.status).toBe(claimed ? 'PENDING' : 'PUBLISHED');
      }
    }),
    runs(60),
  );
});

it('a row is PUBLISHED if and only if the bus accepted it; otherwise it stays due', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(goodRecord, { maxLength: 40, size: 'max' }),
      moods,
      fc.nat(),
      async (specs, mood, seed) => {
        const { handle, batch, clock, table, bus, stored } = await rig(specs, seed, mood);
        const startedAt = clock.now();
        const failed = await handle();
        if (failed.length > 0) expect(clock.now() - startedAt).toBeGreaterThanOrEqual(HAND_BACK_MS);
        for (const { row, sequenceNumber } of batch.good) {
          const { status, leaseUntil = 0, attempts } = stored(row) ?? {};
          if (bus.confirmedIds().includes(idOf(row))) expect(status).toBe('PUBLISHED');
          if (status === 'PUBLISHED') expect(bus.publishedIds()).toContain(idOf(row));
          const pointer = table.item(deadKey(Number(row.PK.slice(-2)), idOf(row)));
          expect(pointer !== undefined).toBe(status === 'DEAD');
          if (status !== 'PENDING') expect(failed).not.toContain(sequenceNumber);
          // The mapping brings it again, or its lease ends and the sweep has it.
          else expect(failed.includes(sequenceNumber) || leaseUntil <= clock.now() + 900_000).toBe(true);
          if (failed.includes(sequenceNumber)) expect(attempts).toBe(0);
        }
      },
    ),
    runs(60),
  );
});

function idOf(row: OutboxRow): string {
  return row.SK.slice('EVENT#'.length);
}

function sequenceNumberOf(record: unknown): unknown {
  const { dynamodb } = (record ?? {}) as { dynamodb?: { SequenceNumber?: unknown } | null };
  return dynamodb?.SequenceNumber;
}

/** The stream's function, a batch for it with its rows in the table, and what became of both. */
async function rig(specs: readonly Spec[], seed: number, mood: Moods = { entries: [], calls: [] }) {
  const clock = eagerClock();
  const table = memoryTable({ clock });
  const bus = moodyBus(mood, { clock });
  const batch = batchOf(specs, clock.now());
  for (const item of batch.stored) await table.write({ Put: { Item: item } });
  const telemetry = memoryTelemetry();
  const relay = createRelayStream({
    config: relayConfig,
    table,
    bus,
    clock,
    random: seededBytes(seed),
    telemetry,
  });
  return {
    clock,
    table,
    batch,
    bus,
    stored: ({ PK, SK }: OutboxRow) => table.item({ PK, SK }) as OutboxRow | undefined,
    /** @param event - @default the batch */
    handle: async (event: unknown = { Records: batch.records }): Promise<string[]> => {
      const given = JSON.parse(JSON.stringify(event)) as DynamoDBStreamEvent; // as a function is handed it
      const { batchItemFailures } = await settled(relay(given));
      return batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
    },
  };
}
