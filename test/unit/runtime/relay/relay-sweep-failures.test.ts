import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { sweeper } from './relay-sweep-rig.ts';

test('while the bus is down nothing is counted, few calls are made, and rows are let go of with the reason', async () => {
  let down = true;
  const parts = rig({
    bus: { failCall: () => (down ? { error: new Error('connect ETIMEDOUT') } : undefined) },
  });
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: Array.from({ length: 90 }, (_, n) => parts.happened(n)) });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 0, pending: 90 });
  expect(parts.bus.calls().length).toBeLessThan(40); // 9 calls are enough for all, 3 tries each, but shards go side by side
  expect(parts.rows().every((row) => row.status === 'PENDING' && row.attempts === 0)).toBe(true);
  expect(parts.rows().some((row) => row.fingerprint?.startsWith('relay '))).toBe(true);
  expect(parts.telemetry.counted('BusFailures')).toBeGreaterThan(0);
  down = false;
  for (let minute = 0; minute < 5; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(90);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test('a call that the bus fails once is repeated in the same pass, and counts as a retry and not as a failure of the bus', async () => {
  let calls = 0;
  const parts = rig({ bus: { failCall: () => (calls++ === 0 ? { error: new Error('reset') } : undefined) } });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 0 });
  expect(parts.telemetry.counted('PublishRetries')).toBe(1);
  expect(parts.telemetry.counted('BusFailures')).toBe(0);
});

test('the sweep counts the waiting events, and those of sources that no deployment has declared', async () => {
  const parts = rig();
  await parts.outbox.commit({
    events: [parts.happenedOf('undeclared', 1), parts.happenedOf('undeclared', 2)],
  });
  await parts.outbox.commit({ events: [parts.happenedOf('declared', 1)] });
  await parts.clock.advance(2 * MINUTE_MS);
  const sources = ['declared'];
  await expect(sweeper(parts, { sources }).pass()).resolves.toMatchObject({ published: 1, undeclared: 2 });
  expect(parts.telemetry.counted('UndeclaredEvents')).toBe(2);
  expect(parts.telemetry.counted('PendingEvents')).toBe(2);
});

test('a call that is denied because of one source publishes the others in the same pass', async () => {
  const denied = Object.assign(new Error('no'), { name: 'AccessDeniedException' });
  const parts = rig({
    bus: {
      failCall: ({ entries }) =>
        entries.some(({ source }) => source === 'banned') ? { error: denied } : undefined,
    },
  });
  for (let n = 0; n < 40; n += 1) {
    const events = n % 8 === 0 ? [parts.happenedOf('banned', n), parts.happened(n)] : [parts.happened(n)];
    await parts.outbox.commit({ events });
  }
  await parts.clock.advance(2 * MINUTE_MS);
  expect(await sweeper(parts).pass()).toMatchObject({ published: 40, pending: 5 });
  expect(parts.rows().filter(({ status }) => status === 'PENDING')).toMatchObject(
    Array.from({ length: 5 }, () => ({ source: 'banned', attempts: 0 })),
  );
});

test('a service that may no longer publish does not delay the others', async () => {
  const parts = rig({
    bus: {
      failEntry: (entry) =>
        entry.source === 'banned' ? { code: 'NotAuthorizedForSourceException', message: 'no' } : undefined,
    },
  });
  const sweep = sweeper(parts);
  for (let n = 0; n < 10; n += 1) {
    await parts.outbox.commit({
      events: Array.from({ length: 50 }, (_, i) => parts.happenedOf('banned', i)),
    });
  }
  await parts.outbox.commit({ events: [1, 2, 3, 4, 5].map(parts.happened) });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 5, pending: 500, complete: true });
  expect(parts.rows().filter((row) => row.source === 'banned' && row.status !== 'PENDING')).toEqual([]);
});

test.each([1, 10])(
  'the sweep delays no neighbor on a slow bus, with %i times as much in front',
  async (times) => {
    const parts = rig({
      bus: {
        failEntry: (entry) =>
          entry.source === 'banned' ? { code: 'NotAuthorizedForSourceException', message: 'no' } : undefined,
      },
    });
    const bus = {
      ...parts.bus,
      put: async (...args: Parameters<typeof parts.bus.put>) => {
        await parts.clock.sleep(50);
        return parts.bus.put(...args);
      },
    };
    for (let n = 0; n < 4 * times; n += 1) {
      await parts.outbox.commit({
        events: Array.from({ length: 50 }, (_, i) => parts.happenedOf('banned', i)),
      });
    }
    await parts.clock.advance(MINUTE_MS);
    await parts.outbox.commit({ events: [1, 2, 3, 4, 5].map(parts.happened) });
    await parts.clock.advance(2 * MINUTE_MS);
    await expect(sweeper({ ...parts, bus }).pass()).resolves.toMatchObject({ published: 5, complete: true });
  },
);

test('one event with which every call fails does not block its neighbors permanently', async () => {
  const parts = rig({
    bus: {
      failCall: ({ entries }) =>
        entries.some((entry) => entry.detail.includes('"n":0}')) ? { error: new Error('500') } : undefined,
    },
  });
  await parts.outbox.commit({ events: [0, 1, 2, 3, 4].map(parts.happened) });
  const sweep = sweeper(parts);
  for (let minute = 0; minute < 60; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(4);
});

test('one event that the bus always fails does not hold up those behind it', async () => {
  const parts = rig({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":0}') ? { code: 'InternalFailure', message: 'oops' } : undefined,
    },
  });
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: [parts.happened(0)] });
  await parts.clock.advance(MINUTE_MS);
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  for (let minute = 0; minute < 4; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(3);
  expect(parts.rows().filter((row) => row.status === 'PENDING')).toMatchObject([
    { attempts: 0, lastError: 'oops' },
  ]);
});

test('many events that the bus always fails do not hold up those behind them', async () => {
  const parts = rig({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":0}') ? { code: 'InternalFailure', message: 'oops' } : undefined,
    },
  });
  const sweep = sweeper(parts);
  for (let n = 0; n < 10; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 40 }, () => parts.happened(0)) });
  }
  await parts.clock.advance(1_000);
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  for (let minute = 0; minute < 8; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(3);
  expect(parts.rows().filter((row) => row.status === 'PENDING')).toHaveLength(400);
});

test('an event whose attempts are exhausted is DEAD, is counted, and blocks no other event', async () => {
  const parts = rig({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":1,') || entry.detail.includes('"n":1}')
          ? { code: 'Odd', message: 'odd' }
          : undefined,
    },
  });
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
  for (let minute = 0; minute < 8; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(
    parts
      .rows()
      .map((row) => row.status)
      .sort(),
  ).toEqual(['DEAD', 'PUBLISHED']);
  expect(parts.rows().find((row) => row.status === 'DEAD')).toMatchObject({ attempts: 3 });
  await expect(sweep.pass()).resolves.toMatchObject({ dead: 1, pending: 0 });
});
