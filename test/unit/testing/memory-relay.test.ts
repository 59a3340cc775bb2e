import { expect, it } from 'vitest';
import { createOutbox } from '../../../lambdas/runtime/index.ts';
import {
  manualClock,
  memoryBus,
  memoryRelay,
  memoryTable,
  memoryTelemetry,
  producerConfig,
} from '../../../testing/index.ts';
import { runThrough, ThingHappened } from '../../support/runtime-rig.ts';

function setup(options: Parameters<typeof memoryBus>[0] = {}) {
  const clock = manualClock();
  const table = memoryTable({ clock });
  const bus = memoryBus({ clock, ...options });
  const telemetry = memoryTelemetry();
  const outbox = createOutbox({ config: producerConfig(), table, clock });
  const relay = memoryRelay({ table, bus, clock, telemetry });
  const commit = (n: number) =>
    outbox.commit({ events: [ThingHappened.create({ aggregateId: 'a', data: { n } })] });
  const published = () => bus.published().map(({ detail }) => JSON.parse(detail).data.n);
  return { clock, table, telemetry, relay, commit, published };
}

it('publishes each event once, and marks it', async () => {
  const { table, telemetry, relay, commit, published } = setup();
  await commit(1);
  await relay();
  await commit(2);
  await relay();
  await relay();
  expect(published()).toEqual([1, 2]);
  expect(table.items().map(({ status }) => status)).toEqual(['PUBLISHED', 'PUBLISHED']);
  expect(telemetry.lines()).toEqual([]);
});

it('publishes an event that the bus did not accept in the next call', async () => {
  let up = false;
  const { clock, relay, commit, published } = setup({
    failCall: () => (up ? undefined : { error: new Error('the bus is down') }),
  });
  await commit(1);
  await runThrough(clock, relay());
  expect(published()).toEqual([]);
  up = true;
  await runThrough(clock, relay());
  expect(published()).toEqual([1]);
});
