import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createRelaySweep } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import type { SweepRangeReport } from '../../../../lambdas/runtime/relay/sweep-range.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { minuteOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { staleReads } from '../../../support/stale-reads.ts';
import { breaking, pointers } from './relay-sweep-rig.ts';

type Parts = ReturnType<typeof rig>;

function call(parts: Parts, event: unknown, timeoutMs = 60_000): Promise<SweepRangeReport> {
  const handler = createRelaySweep({ ...parts, config: relayConfig });
  return runThrough(parts.clock, handler(event, lambdaContext({ ...parts, timeoutMs }))) as Promise<never>;
}

/**
 * Events of two hours, 40 minutes apart, in shards 0, 1 and 0, none of them published; the ordinary passes are long over them.
 */
async function forgotten() {
  let drawn = 0;
  const random = (length: number) => new Uint8Array(length).fill(drawn++ / 2); // an id and a token for each commit
  const made = rig();
  const parts = {
    ...made,
    outbox: createOutbox({ config: consumerConfig, table: made.memory, clock: made.clock, random }),
  };
  const from = parts.clock.now();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(40 * MINUTE_MS);
  await parts.outbox.commit({ events: [parts.happened(2)] });
  await parts.clock.advance(40 * MINUTE_MS);
  await parts.outbox.commit({ events: [parts.happened(3)] });
  expect(new Set(parts.rows().map(({ SK }) => SK.at(-1)))).toEqual(new Set(['0', '1']));
  await parts.memory.write({
    Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, sweptTo: parts.clock.now() + 30 * HOUR_MS, shards: 2 } },
  });
  await parts.clock.advance(30 * HOUR_MS);
  return { ...parts, from };
}

describe('the sweep of a range', () => {
  test('publishes due rows in exactly those minutes, and leaves the state of the ordinary passes alone', async () => {
    const parts = await forgotten();
    const { from, memory, rows } = parts;
    const state = memory.item(SWEEP_STATE_KEY);
    const range = { since: from, until: from + 50 * MINUTE_MS };
    expect(await call(parts, range)).toEqual({
      published: 2,
      pending: 0,
      sweptTo: range.until,
      complete: true,
    });
    expect(rows().map(({ status }) => status)).toEqual(['PUBLISHED', 'PUBLISHED', 'PENDING']);
    expect(memory.item(SWEEP_STATE_KEY)).toEqual(state);
    expect(await call(parts, range)).toMatchObject({ published: 0, complete: true });
  });

  test('includes the minute in which it starts', async () => {
    const parts = await forgotten();
    const range = { since: parts.from + 59_999, until: parts.from + 50 * MINUTE_MS };
    expect(await call(parts, range)).toMatchObject({ published: 2 });
  });

  test('reads strongly consistently, because it reads only once', async () => {
    const parts = await forgotten();
    const table = staleReads(parts.memory);
    const handler = createRelaySweep({ ...parts, table, config: { ...relayConfig, shards: 1 } });
    const event = { since: parts.from, until: parts.from + 2 * HOUR_MS };
    const report = await runThrough(parts.clock, handler(event, lambdaContext(parts)));
    expect(report).toMatchObject({ published: 3, pending: 0 });
    expect(parts.rows().map(({ status }) => status)).toEqual(['PUBLISHED', 'PUBLISHED', 'PUBLISHED']);
  });

  test('reads up to now without an end, and counts rows that are still leased', async () => {
    const parts = await forgotten();
    await parts.outbox.commit({ events: [parts.happened(4)] });
    await parts.clock.advance(1_000);
    const since = parts.from;
    const report = await call(parts, { since });
    expect(report).toMatchObject({ published: 3, pending: 1, complete: true });
    expect(parts.rows().at(-1)).toMatchObject({ status: 'PENDING' });
  });

  test('reads every shard that was ever used', async () => {
    const parts = await forgotten();
    const { from, memory } = parts;
    const handler = createRelaySweep({ ...parts, config: { ...relayConfig, shards: 1 } });
    const event = { since: from, until: from + 2 * HOUR_MS };
    const report = await runThrough(parts.clock, handler(event, lambdaContext(parts)));
    expect(report).toMatchObject({ published: 3 });
    expect(memory.item(SWEEP_STATE_KEY)).toMatchObject({ shards: 2 });
  });

  test('of a producer with more shards publishes its events, and later passes read the shards that have one', async () => {
    const parts = await forgotten();
    const { clock, memory, from } = parts;
    const random = (length: number) => new Uint8Array(length).fill(40);
    const config = { ...consumerConfig, shards: 64 };
    const outbox = createOutbox({ config, table: memory, clock, random });
    const at = clock.now();
    await outbox.commit({ events: [parts.happened(4)] });
    await clock.advance(HOUR_MS);
    const range = { since: at, until: at + MINUTE_MS };
    expect(await call(parts, range)).toMatchObject({ published: 0, complete: true });
    expect(await call(parts, { ...range, shards: 40 })).toMatchObject({ published: 0 });
    expect(memory.item(SWEEP_STATE_KEY)).toMatchObject({ shards: 2 });
    expect(await call(parts, { ...range, shards: 256 })).toMatchObject({ published: 1, complete: true });
    expect(memory.item(SWEEP_STATE_KEY)).toMatchObject({ shards: 41 });
    expect(await call(parts, { since: from, shards: 1 })).toMatchObject({ published: 3 });
    expect(memory.item(SWEEP_STATE_KEY)).toMatchObject({ shards: 41 });
  });

  test('probes higher shards strongly consistently, because it reads only once', async () => {
    const parts = rig();
    const random = (length: number) => new Uint8Array(length).fill(7);
    const config = { ...consumerConfig, shards: 8 };
    const outbox = createOutbox({ config, table: parts.memory, clock: parts.clock, random });
    const since = parts.clock.now();
    await outbox.commit({ events: [parts.happened(1)] });
    await parts.clock.advance(MINUTE_MS);
    const table = staleReads(parts.memory);
    const handler = createRelaySweep({ ...parts, table, config: relayConfig });
    const report = await runThrough(parts.clock, handler({ since, shards: 8 }, lambdaContext(parts)));
    expect(report).toMatchObject({ published: 1 });
  });

  test.each([0, 257, 1.5, '8', null])('refuses %j as a number of shards', async (shards) => {
    const parts = rig();
    await expect(call(parts, { since: parts.clock.now() - 1_000, shards })).rejects.toMatchObject({
      code: 'BAD_SWEEP_RANGE',
    });
  });

  test('reports how far it came at its deadline; called again from there, it reaches the end', async () => {
    const parts = await forgotten();
    const { clock, memory, from } = parts;
    const slow = {
      ...memory,
      query: async (query: Parameters<typeof memory.query>[0]) => {
        await clock.sleep(500);
        return memory.query(query);
      },
    };
    const range = { since: from, until: from + 2 * HOUR_MS };
    let published = 0;
    let calls = 0;
    for (let { since } = range; since < range.until; calls += 1) {
      const report = await call({ ...parts, table: slow }, { ...range, since }, 60_000);
      expect(report.sweptTo).toBeGreaterThan(since);
      expect(report.complete).toBe(report.sweptTo === range.until);
      published += report.published;
      since = report.sweptTo;
    }
    expect(calls).toBeGreaterThan(1);
    expect(published).toBe(3);
  });

  test('goes forward also where a call can read no more than a few minutes', async () => {
    const parts = await forgotten();
    const { clock, memory, from } = parts;
    const slow = {
      ...memory,
      query: async (query: Parameters<typeof memory.query>[0]) => {
        await clock.sleep(6_000);
        return memory.query(query);
      },
    };
    const range = { since: from, until: from + 10 * MINUTE_MS };
    let since = from;
    for (let calls = 0; since < range.until && calls < 10; calls += 1)
      since = (await call({ ...parts, table: slow }, { ...range, since })).sweptTo;
    expect(since).toBe(range.until);
  });

  test('leaves refused events, and makes their minute unsettled for the ordinary passes', async () => {
    const parts = rig({ bus: { failCall: () => ({ error: new Error('down') }) } });
    const since = parts.clock.now();
    await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
    await parts.clock.advance(HOUR_MS);
    expect(await call(parts, { since })).toMatchObject({ published: 0, pending: 3 });
    expect(parts.memory.items().some(({ PK }) => /^SWEEP#\d/.test(String(PK)))).toBe(true);
  });

  test('goes no further than a minute that fails, so that the next call reads it and counts what is left in it', async () => {
    const parts = await forgotten();
    const range = { since: parts.from, until: parts.from + 2 * HOUR_MS };
    const [, second] = parts.rows();
    const { broken, table } = breaking(parts, { query: ({ pk }) => pk === second?.PK });
    const stopped = await call({ ...parts, table }, range);
    expect(stopped).toMatchObject({ published: 1, complete: false });
    expect(minuteOf(stopped.sweptTo)).toBe(minuteOf(parts.from + 40 * MINUTE_MS));
    expect(pointers(parts)).toHaveLength(1);

    broken.is = false;
    const report = await call({ ...parts, table }, { ...range, since: stopped.sweptTo });
    expect(report).toMatchObject({ published: 2, complete: true });
  });

  test.each([
    { since: '6h' },
    { since: 0.5 },
    { since: -1 },
    { until: 5 },
    { since: 5, until: 5 },
    { since: Number.MAX_SAFE_INTEGER },
    { since: 1, until: null },
  ])('an invalid range is refused: %j', async (event) => {
    const parts = await forgotten();
    await expect(call(parts, event)).rejects.toMatchObject({ code: 'BAD_SWEEP_RANGE' });
    expect(parts.publishedIds()).toEqual([]);
  });
});

test('an invocation without a range is an ordinary pass', async () => {
  const parts = await forgotten();
  const handler = createRelaySweep({ ...parts, config: relayConfig });
  expect(await runThrough(parts.clock, handler({}, lambdaContext(parts)))).toHaveProperty('dead');
});
