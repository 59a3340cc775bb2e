import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import { consumerConfig, relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { sweeper } from './relay-sweep-rig.ts';

type Parts = ReturnType<typeof rig>;

const DENIED = { code: 'NotAuthorizedForSourceException', message: 'no' };

/** A bus that refuses services whose names begin with `banned`. */
function rigWithBanned(banned: () => boolean = () => true) {
  return rig({
    bus: {
      failEntry: ({ source }) => (banned() && source.startsWith('banned') ? DENIED : undefined),
    },
  });
}

/** Commits events of a service to one shard. */
async function commitTo(parts: Parts, shard: number, service: string, count: number): Promise<void> {
  const random = (bytes: number) => {
    const made = randomBytes(bytes);
    made[bytes - 1] = shard;
    return made;
  };
  const outbox = createOutbox({ config: consumerConfig, table: parts.memory, clock: parts.clock, random });
  for (let n = 0; n < count; n += 50)
    await outbox.commit({
      events: Array.from({ length: Math.min(50, count - n) }, () => parts.happenedOf(service, n)),
    });
  await parts.clock.advance(1); // so that the next commit sorts after this one
}

/** Ten failing calls of four services: enough to stop trying the bus. */
async function commitBanned(parts: Parts): Promise<void> {
  for (const n of [1, 2, 3, 4]) await commitTo(parts, 1, `banned-${n}`, 30);
}

test('the sweep claims one group of a service without permission, and releases its unsent rows at once', async () => {
  const parts = rigWithBanned();
  await commitTo(parts, 0, 'banned', 250);
  await parts.clock.advance(2 * MINUTE_MS);
  const { clock, bus, telemetry, memory } = parts;
  let claims = 0;
  const updateEach: typeof memory.updateEach = async (updates) => {
    claims += updates.filter(({ set }) => set.leaseUntil === clock.now() + relayConfig.claimLeaseMs).length;
    return memory.updateEach(updates);
  };
  const table = { ...memory, updateEach };
  const sweep = createSweepPass({ config: relayConfig, table, bus, clock, telemetry, concurrency: 1 });
  await runThrough(clock, sweep(clock.now() + 60_000));
  expect(bus.calls()).toHaveLength(3);
  expect(claims).toBe(100); // one group
  const held = parts.rows().filter(({ leaseUntil }) => leaseUntil > clock.now());
  expect(held).toHaveLength(30); // the rows that were sent wait for their backoff
});

test('a pass that stopped publishing is not complete', async () => {
  const parts = rigWithBanned();
  await commitBanned(parts);
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ pending: 120, complete: false });
  expect(parts.bus.calls()).toHaveLength(10);
});

test('publishing to a bus that throttles everything stops after ten calls, each tried three times', async () => {
  const parts = rig({ bus: { failEntry: () => ({ code: 'ThrottlingException', message: 'slow down' }) } });
  await commitBanned(parts);
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ pending: 120, complete: false });
  expect(parts.bus.calls()).toHaveLength(30);
});

test('a minute skipped while publishing was stopped is read by the next pass, even if the bus recovered meanwhile', async () => {
  let banned = true;
  const parts = rigWithBanned(() => banned);
  const { clock, memory } = parts;
  await commitBanned(parts);
  await commitTo(parts, 0, 'slow', 1);
  await clock.advance(3 * MINUTE_MS);
  await commitTo(parts, 1, 'things', 1);
  await clock.advance(2 * MINUTE_MS);
  // Both minutes are due in the same step: the first at the age of 4 minutes, the second at 1.
  const sweptTo = clock.now() - MINUTE_MS;
  await memory.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 2, sweptTo } } });
  const bus: typeof parts.bus = {
    ...parts.bus,
    put: async (entries, timeoutMs) => {
      if (entries.some(({ source }) => source === 'slow')) await clock.sleep(4_000);
      return parts.bus.put(entries, timeoutMs);
    },
  };
  await expect(sweeper({ ...parts, bus }).pass()).resolves.toMatchObject({ published: 1, complete: false });

  banned = false;
  await clock.advance(MINUTE_MS);
  await sweeper(parts).pass();
  expect(parts.rows().filter(({ source, status }) => source === 'things' && status !== 'PUBLISHED')).toEqual(
    [],
  );
});
