import { expect, test } from 'vitest';
import { transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { uniqueActions } from '../../../../lambdas/runtime/store/dynamo/unique-event.ts';
import { uniqueKey } from '../../../../lambdas/runtime/store/keys.ts';
import { memoryBus, memoryRelay } from '../../../../testing/index.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, inboxRow, send } from '../consume/consumer-rig.ts';

const draft = (uniqueBy: unknown) =>
  ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 }, uniqueBy: uniqueBy as string });

function producer() {
  const parts = rig();
  return { ...parts, outbox: createOutbox({ ...parts, config: consumerConfig }) };
}

test.each([
  ['', '"'],
  ['x'.repeat(1_025), '1025 bytes'],
  ['é'.repeat(513), '1026 bytes'],
  ['\ud800', '"'],
  [7, '7'],
])('a uniqueBy that is not usable is refused by its name: %j', async (uniqueBy, shown) => {
  const { outbox, memory } = producer();
  const message = expect.stringMatching(new RegExp(`uniqueBy must be .*${shown}`));
  await expect(outbox.commit({ events: [draft(uniqueBy)] })).rejects.toMatchObject({
    code: 'INVALID_EVENT',
    message,
  });
  expect(memory.items()).toEqual([]);
});

test('a uniqueBy that leaves no room in the key beside long names is refused', async () => {
  const { outbox, memory } = producer();
  const emojis = '💥'.repeat(64);
  const Long = defineEvent({ ...ThingHappened, source: emojis, type: emojis });
  const event = (bytes: number) =>
    Long.create({ aggregateId: 'thing-1', data: { n: 1 }, uniqueBy: 'x'.repeat(bytes) });
  const roomBytes = 2_048 - Buffer.byteLength(uniqueKey(Long, '').PK);
  expect(roomBytes).toBeLessThan(1_024);
  await expect(outbox.commit({ events: [event(roomBytes + 7)] })).rejects.toMatchObject({
    code: 'INVALID_EVENT',
    message: expect.stringContaining('shorter by 7 bytes'),
  });
  expect(memory.items()).toEqual([]);
  await outbox.commit({ events: [event(roomBytes)] });
});

test('a key is taken also in a later second than that of the id of its event', async () => {
  const parts = rig();
  let now = parts.clock.now();
  const clock = { ...parts.clock, now: () => (now += 301) };
  const outbox = createOutbox({ ...parts, clock, config: consumerConfig });
  for (let n = 1; n <= 20; n += 1) await outbox.commit({ events: [draft(`fact-${n}`)] });
  const keys = parts.memory.items().filter(({ SK }) => SK === 'UNIQUE');
  expect(keys).toHaveLength(20);
});

test('a uniqueBy that untyped code sets to null is absent', async () => {
  const { outbox, memory } = producer();
  await outbox.commit({ events: [draft(null)] });
  expect(memory.items()).toHaveLength(1);
});

test('keys that contain the separator are those of different events', () => {
  const [one, other] = [
    uniqueKey({ source: 'a', type: 'b#c' }, 'd'),
    uniqueKey({ source: 'a', type: 'b' }, 'c#d'),
  ];
  expect(one).not.toEqual(other);
});

test('entries, and the commit of a handler, refuse an event with uniqueBy', async () => {
  const parts = producer();
  const { outbox } = parts;
  await expect(outbox.entries([draft('fact')])).rejects.toMatchObject({
    code: 'INVALID_EVENT',
    message: expect.stringContaining('has uniqueBy'),
  });
  const { deliver } = consumer(parts, [
    transactional(ThingHappened, async () => ({ events: [draft('fact')] })),
  ]);
  const event = send(parts);
  await deliver();
  expect(inboxRow(parts, event)?.status).not.toBe('PROCESSED');
  expect(parts.memory.items().filter(({ PK }) => String(PK).startsWith('OUTBOX#'))).toEqual([]);
});

test('two events of one commit with one key are refused', async () => {
  const { outbox } = producer();
  await expect(outbox.commit({ events: [draft('fact'), draft('fact')] })).rejects.toMatchObject({
    code: 'BAD_WRITE',
    message: expect.stringContaining('OUTBOX#UNIQUE#things#ThingHappened#fact'),
  });
});

test('a write to the row of a key that Mailroom did not make is refused', async () => {
  const { outbox, clock } = producer();
  const Key = uniqueKey(ThingHappened, 'fact');
  const [made] = uniqueActions([draft('fact')], ['019b76da-a800-7772-bd88-939ea9b4bf00'], clock.now());
  const changed = { Update: { ...made?.Update, ConditionExpression: 'attribute_exists(PK)' } };
  for (const write of [{ Put: { Item: { ...Key } } }, changed])
    await expect(outbox.commit({ writes: [write as never] })).rejects.toMatchObject({ code: 'BAD_WRITE' });
});

test('the relay leaves the row of a key alone, and publishes its event', async () => {
  const { outbox, memory, clock, telemetry } = producer();
  const bus = memoryBus({ clock });
  await outbox.commit({ events: [draft('fact')] });
  await memoryRelay({ table: memory, bus, clock, telemetry })();
  expect(bus.published()).toHaveLength(1);
  expect(telemetry.lines().filter(({ level }) => level !== 'info')).toEqual([]);
});
