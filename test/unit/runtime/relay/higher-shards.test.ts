import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, rig } from '../../../support/runtime-rig.ts';
import { stream } from './relay-stream-rig.ts';
import { breaking, isPointer, pointers, state, sweeper } from './relay-sweep-rig.ts';

/** A rig whose relay has 2 shards, and its producer that commits one event into a shard of its own choice. */
function outranged() {
  const parts = rig();
  const commitIn = (shard: number, how: { readonly deliverAt?: number } = {}) => {
    const random = (length: number) => new Uint8Array(length).fill(shard);
    const config = { ...consumerConfig, shards: 256 };
    const outbox = createOutbox({ config, table: parts.memory, clock: parts.clock, random });
    return outbox.commit({ events: [{ ...parts.happened(shard), ...how }] });
  };
  return { ...parts, commitIn };
}

const isState = (write: { Update?: { Key?: Item | undefined } | undefined }) =>
  write.Update?.Key?.PK === SWEEP_STATE_KEY.PK;

test('an event in a higher shard that the stream relay cannot publish is published by the sweep', async () => {
  const parts = outranged();
  await parts.commitIn(63);
  const away = { ...parts.bus, put: async () => Promise.reject(new Error('socket hang up')) };
  await stream({ ...parts, bus: away })();
  expect(state(parts)).toMatchObject({ shards: 64 });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 0, complete: true });
  expect(parts.telemetry.lines()).toContainEqual(
    expect.objectContaining({ extra: { shard: 63, shards: 2, swept: 64 } }),
  );
});

test('a scheduled event in a higher shard is published when it is due', async () => {
  const parts = outranged();
  await parts.commitIn(255, { deliverAt: parts.clock.now() + 10 * MINUTE_MS });
  await stream(parts)();
  expect(state(parts)).toMatchObject({ shards: 256 });
  await parts.clock.advance(12 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1 });
});

test('a batch of several higher shards raises the number once, and a later batch below it not at all', async () => {
  const parts = outranged();
  for (const shard of [3, 9, 1, 7]) await parts.commitIn(shard);
  const written: number[] = [];
  const table = {
    ...parts.memory,
    write: async (write: Parameters<typeof parts.memory.write>[0]) => {
      if (isState(write)) written.push(Number(write.Update?.ExpressionAttributeValues?.[':shards']));
      return parts.memory.write(write);
    },
  };
  const relay = stream({ ...parts, table });
  await relay();
  expect(written).toEqual([10]);
  await parts.commitIn(8);
  await relay();
  expect(written).toEqual([10]);
  await parts.commitIn(10);
  await relay();
  expect(written).toEqual([10, 11]);
});

test('a lower number never replaces a higher one, and a value above 256 is replaced', async () => {
  const parts = outranged();
  await parts.memory.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 64 } } });
  await parts.commitIn(9);
  await stream(parts)();
  expect(state(parts)).toMatchObject({ shards: 64 });
  await parts.memory.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 257 } } });
  await stream(parts)();
  expect(state(parts)).toMatchObject({ shards: 10 });
});

test('a record is returned, even after its stream lease, until the sweep reads its shard', async () => {
  const parts = outranged();
  await parts.commitIn(0);
  await parts.commitIn(5);
  const { broken, table } = breaking(parts, { write: isState });
  const relay = stream({ ...parts, table });
  await parts.clock.advance(MINUTE_MS);
  const [, higher] = parts.streamEvent().Records;
  const returned = { batchItemFailures: [{ itemIdentifier: higher?.dynamodb?.SequenceNumber }] };
  await expect(relay()).resolves.toEqual(returned);
  expect(parts.rows().map(({ status }) => status)).toEqual(['PUBLISHED', 'PUBLISHED']);
  await expect(relay()).resolves.toEqual(returned);
  broken.is = false;
  await expect(relay()).resolves.toEqual({ batchItemFailures: [] });
  expect(state(parts)).toMatchObject({ shards: 6 });
});

test('a minute whose ages have passed gets a pointer, and a younger one none', async () => {
  const parts = outranged();
  await parts.commitIn(5);
  await parts.clock.advance(65 * MINUTE_MS);
  await parts.commitIn(6);
  const { broken, table } = breaking(parts, { write: isPointer });
  const relay = stream({ ...parts, table });
  await expect(relay()).resolves.toMatchObject({ batchItemFailures: [{}] });
  broken.is = false;
  await expect(relay()).resolves.toEqual({ batchItemFailures: [] });
  expect(pointers(parts).map(({ PK }) => PK)).toEqual(['SWEEP#05']);
  await sweeper(parts).pass();
  expect(pointers(parts)).toEqual([]);
});

test('a record of a configured shard writes nothing, nor does one of another kind of row', async () => {
  const parts = outranged();
  await parts.commitIn(1);
  await parts.memory.write({
    Put: { Item: { PK: 'OUTBOX#2026-01-15T12:00#999', SK: 'EVENT#stray', status: 'PENDING' } },
  });
  await stream(parts)();
  expect(state(parts)).toBeUndefined();
});
