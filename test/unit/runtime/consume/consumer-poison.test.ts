import type { SQSEvent } from 'aws-lambda';
import { describe, expect, test, vi } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent, type Envelope } from '../../../../lambdas/runtime/events/event.ts';
import { HEARTBEAT } from '../../../../lambdas/runtime/events/heartbeat-event.ts';
import type { CheckReport } from '../../../../lambdas/runtime/sources/sqs/check-messages.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { rig, startedLongAgo, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, consumer, envelope, inboxRow, oneMessage, type Parts, send } from './consumer-rig.ts';

const KINDS = [leased, transactional];
const tooOld = (shard = 2) => mintEventId(Date.UTC(2025, 0, 1), shard);
const handled = () => vi.fn(async () => ({}));

describe('a message is rejected, dead-lettered, and affects no other message if it has', () => {
  const changed = (change: object) => (parts: Parts) => body({ ...envelope(parts), ...change });

  test.each<[string, (parts: Parts) => unknown, string]>([
    ['a body that is not JSON', () => 'not json', 'UNREADABLE_MESSAGE'],
    ['a body without detail', () => ({ hello: 1 }), 'UNREADABLE_MESSAGE'],
    ['a detail that is null', () => ({ detail: null }), 'UNREADABLE_MESSAGE'],
    ['an envelope without an id', changed({ eventId: undefined }), 'UNREADABLE_MESSAGE'],
    ['an id that is not a UUID', changed({ eventId: '7' }), 'UNREADABLE_MESSAGE'],
    ['an unknown type', changed({ type: 'Unheard' }), 'UNKNOWN_EVENT_TYPE'],
    ['a newer version', changed({ version: 3 }), 'UNKNOWN_EVENT_VERSION'],
    ['a payload that fails its schema', changed({ data: { n: 'x' } }), 'INVALID_PAYLOAD'],
    ['a payload that the upcast cannot read', changed({ version: 1, data: null }), 'INVALID_PAYLOAD'],
    ['an event older than the inbox retention', changed({ eventId: tooOld() }), 'EVENT_TOO_OLD'],
  ])('%s', async (_what, bodyOf, reason) => {
    for (const kind of KINDS) {
      const parts = rig();
      await startedLongAgo(parts.memory);
      const handle = handled();
      parts.queue.send(bodyOf(parts));
      const good = send(parts);
      await consumer(parts, [kind(ThingHappened, handle)]).drain();
      expect(handle).toHaveBeenCalledTimes(1);
      expect(inboxRow(parts, good)).toMatchObject({ status: 'PROCESSED' });
      const items = parts.memory.items();
      expect(items.filter((item) => item.status === 'REJECTED')).toMatchObject([
        { reason, schema: 1, fingerprint: expect.stringContaining(`worker ${reason}`) },
      ]);
      expect(items.filter((item) => String(item.PK).startsWith('REJECTED#'))).toHaveLength(1);
      expect(parts.queue.deadLetters()).toHaveLength(1);
    }
  });
});

describe('the source and the type of a message', () => {
  test.each([
    ['comes from another service', { source: 'strangers' }, 'WRONG_SOURCE', '"strangers"'],
    ['names no source', { source: undefined }, 'WRONG_SOURCE', '""'],
    [
      'claims another type than EventBridge delivered',
      { 'detail-type': 'ThingLost' },
      'WRONG_TYPE',
      '"ThingLost"',
    ],
  ])('reject it if it %s', async (_what, change, reason, named) => {
    for (const kind of KINDS) {
      const parts = rig();
      const handle = handled();
      const forged = envelope(parts);
      parts.queue.send({ ...body(forged), ...change });
      await consumer(parts, [kind(ThingHappened, handle)]).drain();
      expect(handle).not.toHaveBeenCalled();
      expect(inboxRow(parts, forged)).toMatchObject({
        status: 'REJECTED',
        reason,
        lastError: expect.stringContaining(named),
      });
    }
  });

  test('choose the handler among those of two services, and the handler receives the source', async () => {
    const parts = rig();
    const [ours, theirs] = [vi.fn(), vi.fn()];
    const OfStrangers = defineEvent({ ...ThingHappened, source: 'strangers' });
    parts.queue.send({ ...body(envelope(parts)), source: 'strangers' });
    await consumer(parts, [leased(ThingHappened, ours), leased(OfStrangers, theirs)]).drain();
    expect(ours).not.toHaveBeenCalled();
    expect(theirs.mock.calls).toMatchObject([[{ source: 'strangers', type: 'ThingHappened' }, {}]]);
  });
});

test('an event of an old version is upcast', async () => {
  const handle = vi.fn();
  await oneMessage({ version: 1, data: { text: '42' } }).deliver(leased(ThingHappened, handle));
  const event = expect.objectContaining({ version: 2, data: { n: 42 } });
  expect(handle).toHaveBeenCalledWith(event, expect.anything());
});

describe('a message that is older than the inbox retention', () => {
  test('does not run when it is redriven, until an operator allows it', async () => {
    const one = oneMessage({ eventId: tooOld() });
    await startedLongAgo(one.memory);
    const handle = handled();
    await one.drain(handle);
    one.queue.redrive();
    await one.drain(handle);
    expect(handle).not.toHaveBeenCalled();
    await one.overwrite({ runAnyway: true });
    one.queue.redrive();
    await one.drain(handle);
    expect(handle).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test.each([
    ['leased', leased],
    ['transactional', transactional],
  ])('does not run in a %s handler that was missing when it was rejected', async (_kind, kind) => {
    const one = oneMessage({ eventId: tooOld(), type: 'Unheard' });
    await startedLongAgo(one.memory);
    await consumer(one, []).drain(); // deployed without its handler
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
    one.queue.redrive();
    const handle = handled();
    await one.drain(kind({ ...ThingHappened, type: 'Unheard' }, handle));
    expect(handle).not.toHaveBeenCalled();
  });

  test('is rejected without delay when it is redelivered with others: that is not an outage', async () => {
    const parts = rig();
    await startedLongAgo(parts.memory);
    const handle = handled();
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)]);
    const sent = [2, 3].map((shard) => send(parts, { eventId: tooOld(shard) }));
    for (let receive = 1; receive <= 3; receive += 1) {
      await deliver();
      for (const event of sent) expect(inboxRow(parts, event)).toMatchObject({ reason: 'EVENT_TOO_OLD' });
      for (const { visibleAt } of parts.queue.messages())
        expect(visibleAt).toBeLessThanOrEqual(parts.clock.now());
    }
    expect(parts.telemetry.counted('TableFailures')).toBe(0);
    expect(handle).not.toHaveBeenCalled();
  });
});

test.each([[undefined], [{}], [{ Records: 'x' }], [{ Records: [null, {}, { messageId: 7 }] }]])(
  'an invocation with %j fails no message',
  async (event) => {
    const parts = rig();
    const { handle } = consumer(parts, [leased(ThingHappened, vi.fn())]);
    await expect(handle(event as unknown as SQSEvent, lambdaContext(parts))).resolves.toEqual({
      batchItemFailures: [],
    });
  },
);

describe('a check of dead letters', () => {
  test('reports which messages the consumer can read, runs no handler and changes no row', async () => {
    const parts = rig();
    await parts.outbox.commit({ events: [parts.happened(1)] });
    const before = parts.memory.items();
    const run = vi.fn();
    const { handle } = consumer(parts, [leased(ThingHappened, run)]);
    const event = JSON.parse(parts.rows()[0]?.envelope ?? '') as Envelope;
    const { eventId } = event;
    const delivered = (change: object = {}, bus: object = {}) =>
      JSON.stringify({ ...body({ ...event, ...change }), ...bus });
    const heartbeat = { source: HEARTBEAT.source, 'detail-type': HEARTBEAT.type };
    const rejected = (code: string, text = '') => ({
      ok: false,
      code,
      message: expect.stringContaining(text),
    });
    const cases: readonly (readonly [body: string, check: object])[] = [
      [delivered(), { ok: true, eventId, type: 'ThingHappened' }],
      [delivered({ version: 1, data: { text: '7' } }), { ok: true, eventId, type: 'ThingHappened' }], // upcast
      [
        delivered({ type: HEARTBEAT.type, version: 1, data: {} }, heartbeat),
        { ok: true, type: HEARTBEAT.type },
      ],
      [delivered({ data: { n: 'seven' } }), rejected('INVALID_PAYLOAD', 'data.n')],
      [delivered({ version: 3 }), rejected('UNKNOWN_EVENT_VERSION')],
      [delivered({ type: 'ThingLost' }), rejected('UNKNOWN_EVENT_TYPE')],
      [delivered({}, { source: 'strangers' }), rejected('WRONG_SOURCE', '"strangers"')],
      [delivered({}, { 'detail-type': 'ThingLost' }), rejected('WRONG_TYPE')],
      ['not json', rejected('UNREADABLE_MESSAGE')],
    ];
    const request = { mailroomCheck: { bodies: cases.map(([text]) => text) } } as never;
    const report = (await handle(request, lambdaContext(parts))) as CheckReport;
    expect(report).toMatchObject({ batchItemFailures: [], checks: cases.map(([, check]) => check) });
    expect(run).not.toHaveBeenCalled();
    expect(parts.memory.items()).toEqual(before);
  });

  test('is never read from the messages of an SQS batch', async () => {
    const parts = rig();
    parts.queue.send({ mailroomCheck: { bodies: [] } });
    const { failed } = await consumer(parts, []).deliver();
    expect(failed).toHaveLength(1);
  });
});
