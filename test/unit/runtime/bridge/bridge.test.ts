import { describe, expect, test, vi } from 'vitest';
import { receiptText } from '../../../../lambdas/runtime/base/bridge-receipt.ts';
import { nextTurn } from '../../../../lambdas/runtime/base/clock.ts';
import { strict } from '../../../../lambdas/runtime/base/order.ts';
import { bridgedId } from '../../../../lambdas/runtime/bridge/bridge-target.ts';
import {
  type BridgedEvent,
  type BridgeOptions,
  type BridgeResult,
  type BridgeTarget,
  bridge,
  kinesisTarget,
} from '../../../../lambdas/runtime/bridge.ts';
import { defineEvent, type Envelope } from '../../../../lambdas/runtime/events/event.ts';
import { broker, kinesisDouble } from '../../../contract/bridge-doubles.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, consumer, envelope, inboxRow, type Parts, send } from '../consume/consumer-rig.ts';

const stored = (sequence: number): BridgeResult => ({
  ok: true,
  place: { partition: 3, offset: String(sequence) },
});
const refusal = (reason: 'missing' | 'invalid'): BridgeResult => ({
  ok: false,
  refusal: reason,
  code: 'SOME_CODE',
  message: 'the broker says why.',
});

/** A target whose calls are recorded. */
function targetOf(
  answer: (entry: BridgedEvent, calls: number) => BridgeResult | Promise<BridgeResult> = (_, n) => stored(n),
) {
  const calls: (readonly BridgedEvent[])[] = [];
  const target: BridgeTarget = {
    name: () => 'topic orders',
    limits: { entries: 10, bytes: 10_000 },
    cloudEventsPrefix: 'ce_',
    send: async (entries) => {
      calls.push(entries);
      return Promise.all(entries.map((entry) => answer(entry, calls.length)));
    },
    reset: vi.fn(),
  };
  return { target, calls, bodies: () => calls.flat().map((entry) => entry.body) };
}

function bridgeConsumer(
  parts: Parts,
  to: BridgeTarget,
  options: Partial<BridgeOptions> = {},
  change: object = {},
) {
  return consumer(parts, bridge({ to, events: [ThingHappened], ...options }), parts.table, change);
}

/** The handler of a bridge without its consumer: its target has 100 ms of real time. */
function handling(to: BridgeTarget) {
  const [handler] = bridge({ to, events: [ThingHappened], timeoutMs: 100 });
  const handle = handler?.handle as (event: unknown, ctx: unknown) => Promise<unknown>;
  return (detail: Envelope, signal = new AbortController().signal) =>
    handle({ source: 'things' }, { body: JSON.stringify(body(detail)), signal, logFields: {} });
}

describe('a bridge', () => {
  test('sends the messages of an invocation together, and stores what the target answered', async () => {
    const parts = rig();
    const { target, calls } = targetOf();
    const events = [1, 2, 3].map((n) => send(parts, { aggregateId: `thing-${n}` }));
    await bridgeConsumer(parts, target).deliver();
    expect(calls.map(({ length }) => length)).toEqual([3]);
    for (const event of events) {
      const row = inboxRow(parts, event);
      expect(row).toMatchObject({ status: 'PROCESSED', attempts: 1 });
      expect(receiptText(row?.result as string)).toBe('delivered to topic orders, partition 3, offset 1');
    }
    expect(parts.queue.messages()).toEqual([]);
  });

  test('sends the envelope as it was published: any version, every digit, whatever the schema accepts', async () => {
    const parts = rig();
    const { target, calls, bodies } = targetOf();
    const detail = (version: number) =>
      `{ "eventId":"${envelope(parts).eventId}","type":"ThingHappened","version":${version},"aggregateType":"Thing","aggregateId":"7",` +
      '"occurredAt":1767225600000,"correlationId":"c","data":{"10":1,"9":12345678901234567890,"n":1.0,"detail":{"detail":"}"}} }';
    const details = [detail(1), detail(2), detail(99)];
    for (const text of details)
      parts.queue.send(
        `{"detail-type":"ThingHappened","detail":0,"source":"things","detail":${text},"resources":["detail"]}`,
      );
    await bridgeConsumer(parts, target).deliver();
    expect(bodies().sort()).toEqual(details.map((text) => text.trim()).sort());
    expect(
      calls
        .flat()
        .map(({ event }) => event.version)
        .sort(),
    ).toEqual([1, 2, 99]);
  });

  test('retries what the target may take later, and `why` names the target and its reason', async () => {
    const parts = rig();
    const { target } = targetOf((_, n) => (n === 1 ? refusal('missing') : stored(n)));
    const event = send(parts);
    const { deliver, drain } = bridgeConsumer(parts, target);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      lastError: expect.stringMatching(
        /^topic orders did not take the event \(SOME_CODE\): the broker says why\. Create it/,
      ),
    });
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  });

  test('rejects what the target never takes', async () => {
    const parts = rig({ maxReceiveCount: 2 });
    const { target, calls } = targetOf(() => refusal('invalid'));
    const event = send(parts);
    await bridgeConsumer(parts, target).drain();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'REJECTED',
      reason: 'BRIDGE_REJECTED',
      attempts: 1,
    });
    expect(calls).toHaveLength(1);
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('rejects an event above the limit without a call, and splits a batch at the limits', async () => {
    const parts = rig({ maxReceiveCount: 2 });
    const { target, calls } = targetOf();
    const large = (length: number) => send(parts, { data: { n: 1, text: 'x'.repeat(length) } });
    const tooLarge = large(10_000);
    const events = [large(4_000), large(4_000), large(4_000)];
    await bridgeConsumer(parts, target).drain();
    expect(inboxRow(parts, tooLarge)).toMatchObject({
      reason: 'BRIDGE_REJECTED',
      lastError: expect.stringMatching(/it has 1\d{4} bytes with its headers; 10000 are allowed/),
    });
    for (const event of events) expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(calls.map(({ length }) => length)).toEqual([2, 1]);
  });

  test('splits a batch at the number of entries that the target takes', async () => {
    const parts = rig();
    const { target, calls } = targetOf();
    const events = [send(parts), send(parts), send(parts)];
    await bridgeConsumer(parts, { ...target, limits: { entries: 2, bytes: 10_000 } }).drain();
    for (const event of events) expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(calls.map(({ length }) => length)).toEqual([2, 1]);
  });

  test('counts the headers of an entry in its size', async () => {
    const parts = rig({ maxReceiveCount: 2 });
    const { target, calls, bodies } = targetOf();
    const sent = send(parts);
    await bridgeConsumer(parts, target).drain();
    const bytes = Buffer.byteLength(bodies()[0] ?? '');
    const same = send(parts); // its body has the same size
    await bridgeConsumer(parts, { ...target, limits: { entries: 10, bytes } }).drain();
    expect(inboxRow(parts, sent)).toMatchObject({ status: 'PROCESSED' });
    expect(inboxRow(parts, same)).toMatchObject({ status: 'REJECTED', reason: 'BRIDGE_REJECTED' });
    expect(calls).toHaveLength(1);
  });

  test('a batch that is refused as a whole fails only the message that is refused alone', async () => {
    const parts = rig({ maxReceiveCount: 2 });
    const { target, calls } = targetOf(({ event }, n) =>
      n === 1 || event.aggregateId === 'bad' ? refusal('invalid') : stored(n),
    );
    const [good, bad] = [send(parts), send(parts, { aggregateId: 'bad' })];
    await bridgeConsumer(parts, target).drain();
    expect(inboxRow(parts, good as never)).toMatchObject({ status: 'PROCESSED' });
    expect(inboxRow(parts, bad as never)).toMatchObject({ status: 'REJECTED' });
    expect(calls.map(({ length }) => length)).toEqual([2, 1, 1]);
  });

  test('a batch of which the target refuses all after the bad message fails only that one', async () => {
    const parts = rig({ maxReceiveCount: 2 });
    let isClosed = false;
    const { target } = targetOf(({ event }, n) => {
      isClosed = event.aggregateId === 'bad' || (isClosed && n === 1);
      return isClosed ? refusal('invalid') : stored(n);
    });
    const events = ['before', 'bad', 'after'].map((aggregateId) => send(parts, { aggregateId }));
    await bridgeConsumer(parts, target).drain();
    const states = events.map((event) => inboxRow(parts, event as never)?.status);
    expect(states).toEqual(['PROCESSED', 'REJECTED', 'PROCESSED']);
  });

  test('a target that throws or answers for too few is retried', async () => {
    const lost = Object.assign(new Error('lost'), { code: 'ECONNRESET' });
    for (const [answer, code] of [
      [() => Promise.reject(lost), 'ECONNRESET'],
      [async () => [], 'NO_ANSWER'],
    ] as const) {
      const parts = rig();
      const event = send(parts);
      await bridgeConsumer(parts, { ...targetOf().target, send: answer }).deliver();
      expect(inboxRow(parts, event)).toMatchObject({
        status: 'FAILED',
        lastError: expect.stringContaining(code),
      });
    }
  });

  test('a target that does not answer in time is reset, and the next batch is sent', async () => {
    let silent = true;
    const { target, calls } = targetOf(() => (silent ? new Promise<never>(() => {}) : stored(1)));
    const handle = handling(target);
    const parts = rig();
    await expect(handle(envelope(parts))).rejects.toMatchObject({
      code: 'BRIDGE_FAILED',
      message: expect.stringContaining('(TIMEOUT): it did not answer within 100 ms'),
    });
    expect(target.reset).toHaveBeenCalledTimes(1);
    silent = false;
    expect(await handle(envelope(parts))).toMatchObject({ forwardedTo: 'topic orders' });
    expect(calls).toHaveLength(2);
  });

  test.each([
    ['does not end in time', () => new Promise<never>(() => {})],
    ['fails', () => Promise.reject(new Error('gone'))],
  ])('a result that is known holds when its call %s', async (_how, end) => {
    const { target } = targetOf();
    const send: BridgeTarget['send'] = (_, known) => {
      known?.(1, stored(7));
      return end();
    };
    const handle = handling({ ...target, send });
    const parts = rig();
    const [first, second] = await Promise.allSettled([handle(envelope(parts)), handle(envelope(parts))]);
    expect(first).toMatchObject({ status: 'rejected', reason: { code: 'BRIDGE_FAILED' } });
    expect(second).toMatchObject({ value: { place: { offset: '7' } } });
  });

  test('a worker that has lost its message does not send it', async () => {
    const { target, calls } = targetOf();
    await expect(handling(target)(envelope(rig()), AbortSignal.abort(new Error('lost')))).rejects.toThrow(
      'lost',
    );
    expect(calls).toEqual([]);
  });

  test('a worker that loses its message while others are sent alone does not send it', async () => {
    const parts = rig();
    const lost = new AbortController();
    const { target, calls } = targetOf((_, n) => {
      if (n === 2) lost.abort(new Error('lost'));
      return refusal('invalid');
    });
    const handle = handling(target);
    const first = envelope(parts);
    const [, second] = await Promise.allSettled([handle(first), handle(envelope(parts), lost.signal)]);
    expect(second).toMatchObject({ status: 'rejected', reason: { message: 'lost' } });
    expect(calls.map((entries) => entries.length)).toEqual([2, 1]);
    expect(calls[1]?.[0]?.event.eventId).toBe(first.eventId);
  });

  test('what was stored is answered before others are sent alone', async () => {
    const parts = rig();
    const answered: string[] = [];
    const { target } = targetOf(async ({ event }, n) => {
      if (n > 1) {
        await nextTurn();
        answered.push('alone');
      }
      return event.aggregateId === 'bad' ? refusal('invalid') : stored(n);
    });
    const handle = handling(target);
    const bad = handle(envelope(parts, { aggregateId: 'bad' })).catch(() => {});
    const good = handle(envelope(parts)).then(() => answered.push('good'));
    await Promise.all([bad, good]);
    expect(answered).toEqual(['good', 'alone']);
  });

  test('names itself in the id under which its target drops duplicates', async () => {
    const parts = rig();
    const { target, calls } = targetOf();
    const event = send(parts);
    await bridgeConsumer(parts, target).deliver();
    const [entry] = calls.flat();
    expect(entry && bridgedId(entry)).toBe(`${consumerConfig.consumer}/${event.eventId}`);
  });

  test('reports an event that the target already had on the first attempt', async () => {
    const parts = rig();
    const { target } = targetOf((_, n) => ({ ...stored(n), duplicate: true }));
    const event = send(parts);
    await bridgeConsumer(parts, target).deliver();
    expect(receiptText(inboxRow(parts, event)?.result as string)).toBe(
      'delivered to topic orders, partition 3, offset 1, which already had it, although this was the first attempt',
    );
    expect(parts.telemetry.lines().filter(({ level }) => level === 'warn')).toMatchObject([
      {
        message: expect.stringMatching(/^topic orders already had the event/),
        extra: { eventId: event.eventId },
      },
    ]);
  });

  test('does not report a duplicate of an event that it may have sent before', async () => {
    const parts = rig();
    const { target } = targetOf((_, n) => (n === 1 ? refusal('missing') : { ...stored(n), duplicate: true }));
    const event = send(parts);
    await bridgeConsumer(parts, target).drain();
    expect(receiptText(inboxRow(parts, event)?.result as string)).toMatch(/which already had it$/);
    expect(parts.telemetry.lines().map(({ message }) => message)).not.toContainEqual(
      expect.stringContaining('already had the event'),
    );
  });

  test('with a strict order, the target receives the events of an aggregate in their order', async () => {
    const parts = rig({ maxReceiveCount: 50 });
    const Numbered = defineEvent({ ...ThingHappened, sequence: true });
    const failed = new Set<number>();
    const { target, calls } = targetOf(({ event: { sequence = 0 } }, n) => {
      const isFirst = !failed.has(sequence);
      failed.add(sequence);
      return isFirst ? refusal('missing') : stored(n);
    });
    for (const sequence of [3, 1, 4, 2]) send(parts, { sequence });
    const order = { order: strict(), maxReceives: 50 };
    await bridgeConsumer(parts, target, { events: [Numbered] }, order).drain(100);
    const tries = calls.flat().map(({ event }) => event.sequence);
    expect(tries).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
  });

  test('a heartbeat is not forwarded', async () => {
    const parts = rig();
    const { target, calls } = targetOf();
    parts.queue.send({ ...body({ ...envelope(parts), type: 'Heartbeat' }), source: 'mailroom' });
    await bridgeConsumer(parts, target).drain();
    expect(calls).toEqual([]);
  });
});

describe('the headers', () => {
  const headersOf = async (headers: BridgeOptions['headers'], change: object = {}) => {
    const parts = rig();
    const { target, calls } = targetOf();
    const event = send(parts, { aggregateId: 'thing-1', ...change });
    await bridgeConsumer(parts, target, { headers }).deliver();
    return { event, headers: calls[0]?.[0]?.headers };
  };

  test('name the event', async () => {
    const { event, headers } = await headersOf(undefined, { traceparent: '00-1-2-01' });
    expect(headers).toEqual({
      eventId: event.eventId,
      type: 'ThingHappened',
      source: 'things',
      traceparent: '00-1-2-01',
    });
  });

  test('are those of CloudEvents on request', async () => {
    const { event, headers } = await headersOf('cloudevents', {
      occurredAt: Date.UTC(2026, 0, 1),
      sequence: 4,
    });
    expect(headers).toEqual({
      'content-type': 'application/json',
      ce_specversion: '1.0',
      ce_id: event.eventId,
      ce_source: 'things',
      ce_type: 'ThingHappened',
      ce_subject: 'thing-1',
      ce_time: '2026-01-01T00:00:00.000Z',
      ce_sequence: '4',
    });
  });

  test('have no time that no date has', async () => {
    const { headers } = await headersOf('cloudevents', { occurredAt: Number.MAX_SAFE_INTEGER });
    expect(headers).not.toHaveProperty('ce_time');
    expect(headers).toHaveProperty('ce_subject', 'thing-1');
  });

  test('are refused where a message has none, and so is a timeout out of range', () => {
    const to = kinesisTarget({ client: kinesisDouble(broker()), streamName: 'orders' });
    expect(() => bridge({ to, events: [ThingHappened], headers: 'cloudevents' })).toThrow(
      'a message of stream orders has no headers',
    );
    expect(() => bridge({ to, events: [ThingHappened], timeoutMs: 5 })).toThrow('timeoutMs is 5');
  });
});
