import { describe, expect, test } from 'vitest';
import { TransactionCancelled } from '../../../lambdas/runtime/base/errors.ts';
import {
  createConsumer,
  createOutbox,
  type Handler,
  type Outbox,
  type Table,
} from '../../../lambdas/runtime/index.ts';
import { createSweepPass } from '../../../lambdas/runtime/relay/relay-sweep.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { relayConfig } from '../../../testing/default-config.ts';
import {
  consumerConfig,
  type ManualClock,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryRelay,
  memoryTable,
  memoryTelemetry,
  producerConfig,
} from '../../../testing/index.ts';
import { runThrough } from '../../support/runtime-rig.ts';
import { codeOf } from '../page-module.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type Next = (dueAt: number, now: number) => number;
const hourly = await codeOf<{
  start(outbox: Outbox, now: number): Promise<void>;
  tick(table: Table, next: Next | undefined, clock: () => number): Handler;
  catchUp: Next;
  skip: Next;
}>('docs/recipes/recurring.md', 'src/hourly.ts');
const documents = await codeOf<{
  save(id: string, text: string, before: string | undefined, outbox: Outbox, now: number): Promise<string>;
  announce(table: Table): Handler;
}>('docs/recipes/debounce.md', 'src/document.ts');

/** A service and its consumer, whose timers are published as time passes. */
function system(service: string, handlerOf: (table: Table, clock: ManualClock) => Handler) {
  const clock = manualClock(Date.UTC(2026, 0, 1, 0, 30));
  const table = memoryTable({ clock });
  const handler = handlerOf(table, clock);
  const bus = memoryBus({ clock });
  const queue = memoryQueue({ clock });
  bus.routeTo(queue, { detailType: [handler.definition.type] });
  const telemetry = memoryTelemetry();
  const config = consumerConfig({ service, consumer: 'timer', shards: 1 });
  const consume = createConsumer({ config, table, queue, clock, telemetry, handlers: [handler] });
  const relay = memoryRelay({ table, bus, clock, telemetry });
  const sweep = createSweepPass({
    config: relayConfig({ shards: 1 }),
    table,
    bus,
    clock,
    telemetry,
    random: systemRandomBytes,
  });
  const outbox = createOutbox({ config: producerConfig({ service, shards: 1 }), table, clock });
  const published = (type: string) =>
    bus
      .published()
      .flatMap(({ detailType, detail }) =>
        detailType === type ? [(JSON.parse(detail) as { data: Record<string, unknown> }).data] : [],
      );
  /** Publishes and handles all that is due. */
  async function work(): Promise<void> {
    await runThrough(clock, relay());
    await runThrough(clock, sweep(clock.now() + 50_000));
    await runThrough(clock, queue.deliver(consume));
  }
  return {
    clock,
    table,
    queue,
    outbox,
    work,
    published,
    async pass(times: number, stepMs = MINUTE_MS): Promise<void> {
      for (let time = 0; time < times; time += 1) {
        await clock.advance(stepMs);
        await work();
      }
    },
  };
}

describe('recurring.md', () => {
  const timers = (next?: Next) =>
    system('reports', (table, clock) => hourly.tick(table, next, () => clock.now()));
  const hours = (count: number, from = 1) =>
    Array.from({ length: count }, (_, i) => ({ dueAt: Date.UTC(2026, 0, 1, from + i) }));

  test('runs every hour once, for more runs than a chain may have, and however often it is started', async () => {
    const { clock, outbox, pass, published, queue } = timers();
    for (let hour = 0; hour < 40; hour += 1) {
      await hourly.start(outbox, clock.now());
      await pass(3, HOUR_MS / 3);
    }
    expect(queue.deadLetters()).toEqual([]);
    expect(published('ReportDue')).toEqual(hours(40));
  });

  test.each([
    ['catches up with every missed hour', undefined, hours(6)],
    ['skips the missed hours', hourly.skip, [...hours(1), ...hours(2, 5)]],
  ])('%s after a stop of four hours', async (_what, next, expected) => {
    const { clock, outbox, pass, published } = timers(next);
    await hourly.start(outbox, clock.now());
    await clock.advance(4 * HOUR_MS);
    await pass(20, 5 * MINUTE_MS);
    expect(published('ReportDue')).toEqual(expected);
  });

  test('is not taken for started because its table throttles', async () => {
    const throttled = new TransactionCancelled([{ code: 'ThrottlingError' }, { code: 'None' }]);
    const outbox = { commit: () => Promise.reject(throttled) } as Partial<Outbox> as Outbox;
    await expect(hourly.start(outbox, 0)).rejects.toBe(throttled);
  });

  test('stops with its row, and a second start does not double it', async () => {
    const { clock, table, outbox, pass, published } = timers();
    await hourly.start(outbox, clock.now());
    await pass(5);
    await table.write({ Delete: { Key: { PK: 'SCHEDULE#hourly-report', SK: 'SCHEDULE' } } });
    await hourly.start(outbox, clock.now() + HOUR_MS); // beside the timer that is still ahead
    await pass(40, 5 * MINUTE_MS);
    expect(published('ReportDue')).toEqual(hours(2, 2));
  });
});

describe('debounce.md', () => {
  test('a document is announced once, with its last text, five minutes after the last change', async () => {
    const { clock, outbox, pass, published, work } = system('documents', documents.announce);
    let before: string | undefined;
    for (const text of ['a', 'ab', 'abc']) {
      before = await documents.save('7', text, before, outbox, clock.now());
      await pass(3);
    }
    expect(published('DocumentChanged')).toEqual([]);
    await pass(6);
    expect(published('DocumentChanged')).toEqual([{ text: 'abc' }]);
    expect(published('ChangesPaused')).toHaveLength(1);
    await documents.save('7', 'abcd', before, outbox, clock.now());
    await work();
    await pass(8);
    expect(published('DocumentChanged')).toEqual([{ text: 'abc' }, { text: 'abcd' }]);
  });

  test('an event that was not cancelled in time does nothing', async () => {
    const { clock, outbox, pass, published } = system('documents', documents.announce);
    await documents.save('7', 'a', undefined, outbox, clock.now());
    await pass(1);
    await documents.save('7', 'ab', undefined, outbox, clock.now());
    await pass(10);
    expect(published('ChangesPaused')).toHaveLength(2);
    expect(published('DocumentChanged')).toEqual([{ text: 'ab' }]);
  });
});
