import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { minuteOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import type { Item, Query } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';

const UNREADABLE = { SK: 'EVENT#00000000-0000-7000-8000-000000000000', schema: 99, status: 'PENDING' };

test('an event in a minute that has a pointer does not wait for the turn of its pointer', async () => {
  const parts = rig();
  const { memory, clock, telemetry } = parts;
  const put = (item: Item) => memory.write({ Put: { Item: item as never } });
  await clock.advance(5_000 * MINUTE_MS);
  const startedAt = clock.now();
  // More minutes of shard 0 than a pass can read never become clean: their rows are of a newer version.
  const slow = new Set<string>();
  for (let n = 0; n < 60; n += 1) {
    const minute = minuteOf(startedAt - (4_000 - n) * MINUTE_MS);
    slow.add(`OUTBOX#${minute}#00`);
    await put({ PK: 'SWEEP#00', SK: minute, schema: 1, token: `${n}` });
    await put({ PK: `OUTBOX#${minute}#00`, ...UNREADABLE });
  }
  await put({ ...SWEEP_STATE_KEY, schema: 1, shards: 2, sweptTo: startedAt });
  const config = { ...consumerConfig, shards: 2 };
  const outbox = createOutbox({
    config,
    table: memory,
    clock,
    random: (bytes) => new Uint8Array(bytes).fill(1),
  });
  await outbox.commit({ events: [parts.happened(1)] });
  const minute = minuteOf(startedAt);
  expect(memory.items().filter(({ PK }) => PK === `OUTBOX#${minute}#01`)).toHaveLength(1);
  await put({ PK: `SWEEP#01`, SK: minute, schema: 1, token: 'short' });
  const query = async (wanted: Query) => {
    if (slow.has(wanted.pk)) await clock.sleep(5_000);
    return memory.query(wanted);
  };
  const relay = { ...relayConfig, shards: 2 };
  const pass = createSweepPass({
    config: relay,
    table: { ...memory, query },
    bus: parts.bus,
    clock,
    telemetry,
    concurrency: 1,
  });
  for (let passes = 0; passes < 5; passes += 1) {
    const at = clock.now();
    await runThrough(clock, pass(at + 50_000));
    await clock.advance(Math.max(0, at + MINUTE_MS - clock.now()));
  }
  expect(parts.publishedIds()).toHaveLength(1);
});
