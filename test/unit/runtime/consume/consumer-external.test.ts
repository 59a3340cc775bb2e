import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/mini';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { externalEvent } from '../../../../lambdas/runtime/events/external-event.ts';
import { unreadableId } from '../../../../lambdas/runtime/store/event-id.ts';
import { externalEventId } from '../../../../lambdas/runtime/store/external-id.ts';
import { inboxKey, rejectedKey } from '../../../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, domainRow, envelope, type Parts, send } from './consumer-rig.ts';

const Charged = externalEvent({
  source: 'stripe',
  type: 'charge.succeeded',
  id: 'id',
  schema: z.object({ id: z.string(), amount: z.int() }),
});

const bridged = (detail: unknown, id: string) => ({
  id,
  source: Charged.source,
  'detail-type': Charged.type,
  time: '2026-01-01T00:00:00Z',
  detail,
});
const rowOf = (parts: Parts, id: string) =>
  parts.memory.item(inboxKey(CONSUMER, externalEventId(Charged, [id])));
const envelopesOf = (parts: Parts) =>
  parts.rows().map((row) => JSON.parse(row.envelope) as Record<string, unknown>);

describe.each([
  ['leased', leased],
  ['transactional', transactional],
] as const)('a %s handler of an external event', (_, kind) => {
  test('takes effect once, although the publisher published the event twice', async () => {
    const parts = rig();
    const handle = vi.fn(async (_event: unknown) => ({ writes: [domainRow] }));
    const { drain } = consumer(parts, [kind(Charged, handle)]);
    parts.queue.send(bridged({ id: 'evt_1', amount: 5 }, 'bridge-1'));
    await drain();
    parts.queue.send(bridged({ id: 'evt_1', amount: 5 }, 'bridge-2'));
    // A transactional handler runs before it learns that the message was processed; its writes would be refused here.
    await drain();
    expect(handle).toHaveBeenCalledTimes(kind === leased ? 1 : 2);
    expect(parts.queue.messages()).toEqual([]);
    expect(handle.mock.calls[0]?.[0]).toEqual({
      eventId: externalEventId(Charged, ['evt_1']),
      externalId: 'evt_1',
      source: 'stripe',
      type: 'charge.succeeded',
      occurredAt: Date.UTC(2026, 0, 1),
      correlationId: externalEventId(Charged, ['evt_1']),
      data: { id: 'evt_1', amount: 5 },
    });
    expect(rowOf(parts, 'evt_1')).toMatchObject({ status: 'PROCESSED' });
    expect(parts.telemetry.counted('MessagesDuplicate')).toBe(1);
  });

  test('an external event whose handler throws PoisonMessage is rejected, and processed once fixed and redriven', async () => {
    const parts = rig();
    let fixed = false;
    const handle = vi.fn(async () => {
      if (!fixed) throw new PoisonMessage('currency is not supported');
      return {};
    });
    parts.queue.send({ id: 'evt_1', amount: 5 });
    const { drain } = consumer(parts, [kind(Charged, handle)]);
    await drain();
    expect(rowOf(parts, 'evt_1')).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
    fixed = true;
    parts.queue.redrive();
    await drain();
    expect(rowOf(parts, 'evt_1')).toMatchObject({ status: 'PROCESSED' });
  });

  test('does not run for data that fails its schema, and the error quotes no value', async () => {
    const parts = rig();
    const handle = vi.fn(async () => ({}));
    parts.queue.send({ id: 'evt_1', amount: 'secret' });
    await consumer(parts, [kind(Charged, handle)]).drain();
    expect(handle).not.toHaveBeenCalled();
    expect(rowOf(parts, 'evt_1')).toMatchObject({ status: 'REJECTED', reason: 'INVALID_PAYLOAD' });
    expect(JSON.stringify(rowOf(parts, 'evt_1'))).not.toContain('secret');
  });
});

test('events that the handler of an external event commits continue its chain', async () => {
  const parts = rig();
  parts.queue.send({ id: 'evt_1', amount: 5 });
  const handler = leased(Charged, (_event, ctx) => ctx.commit({ events: [parts.happened(1)] }));
  await consumer(parts, [handler]).drain();
  const causationId = externalEventId(Charged, ['evt_1']);
  expect(envelopesOf(parts)).toMatchObject([{ causationId, correlationId: causationId, hops: 1 }]);
});

test('the effects of an external event have idempotency keys with its event id', async () => {
  const parts = rig();
  const keys: string[] = [];
  parts.queue.send({ id: 'evt_1', amount: 5 });
  const handler = leased(Charged, async (_event, ctx) => {
    await ctx.once('refund', async (key) => keys.push(key));
  });
  await consumer(parts, [handler]).drain();
  expect(keys).toEqual([`${CONSUMER}:${externalEventId(Charged, ['evt_1'])}:refund`]);
});

test('the latency of an external event counts from its arrival in the queue', async () => {
  const parts = rig();
  parts.queue.send(bridged({ id: 'evt_1', amount: 5 }, 'b'));
  await parts.clock.advance(5_000);
  await consumer(parts, [leased(Charged, async () => {})]).drain();
  const durations = parts.telemetry.durations('ProcessLatency');
  expect(durations).toEqual([expect.closeTo(5_000, -3)]);
});

test('a consumer handles Mailroom events and external events side by side', async () => {
  const parts = rig();
  const seen: string[] = [];
  const remember = async ({ type }: { readonly type: string }) => void seen.push(type);
  const event = send(parts);
  parts.queue.send(bridged({ id: 'evt_1', amount: 5 }, 'b'));
  await consumer(parts, [leased(Charged, remember), leased(ThingHappened, remember)]).drain();
  expect(seen.sort()).toEqual(['ThingHappened', 'charge.succeeded']);
  expect(parts.memory.item(inboxKey(CONSUMER, event.eventId))).toMatchObject({ status: 'PROCESSED' });
});

describe('a consumer of external events', () => {
  test('reads a Mailroom envelope inside an external event as data, and does not use its event id', async () => {
    const parts = rig();
    const Any = externalEvent({ ...Charged, schema: z.unknown(), id: 'id' });
    const inside = { ...envelope(parts), id: 'evt_1' };
    parts.queue.send({ ...bridged(inside, 'b') });
    await consumer(parts, [leased(Any, async () => {})]).drain();
    expect(rowOf(parts, 'evt_1')).toMatchObject({ status: 'PROCESSED' });
    expect(parts.memory.item(inboxKey(CONSUMER, inside.eventId))).toBeUndefined();
  });

  test('rejects a Mailroom event that it has no handler for', async () => {
    const parts = rig();
    const handle = vi.fn(async () => {});
    send(parts);
    await consumer(parts, [leased(Charged, handle)]).drain();
    expect(handle).not.toHaveBeenCalled();
    const rejected = parts.memory.items().filter((item) => item.status === 'REJECTED');
    expect(rejected).toMatchObject([{ reason: 'UNKNOWN_EVENT_TYPE' }]);
  });

  test('reads a body that looks like a Mailroom envelope as data of the external event', async () => {
    const parts = rig();
    const inside = { ...envelope(parts), id: 'evt_1', amount: 5 };
    parts.queue.send(inside);
    await consumer(parts, [leased(Charged, async () => {})]).drain();
    expect(rowOf(parts, 'evt_1')).toMatchObject({ status: 'PROCESSED' });
    expect(parts.memory.item(inboxKey(CONSUMER, inside.eventId))).toBeUndefined();
  });
});

test('a check of dead letters reads external messages as the consumer does', async () => {
  const parts = rig();
  const { handle } = consumer(parts, [leased(Charged, async () => {})]);
  const bodies = [{ id: 'evt_1', amount: 5 }, { id: 'evt_1' }, { amount: 5 }].map((one) =>
    JSON.stringify(one),
  );
  const report: unknown = await handle({ mailroomCheck: { bodies } } as never, lambdaContext(parts));
  expect(report).toMatchObject({
    checks: [
      { ok: true, eventId: externalEventId(Charged, ['evt_1']), type: 'charge.succeeded' },
      { ok: false, code: 'INVALID_PAYLOAD' },
      { ok: false, code: 'BAD_EXTERNAL_ID' },
    ],
  });
});

test('the row and the pointer of a message without a readable id expire after a corrected definition has handled it', async () => {
  const parts = rig({ maxReceiveCount: 1 });
  parts.queue.send(bridged({ key: 'evt_1', amount: 5 }, 'bridge-1'));
  await consumer(parts, [leased(Charged, async () => {})]).drain();
  const [{ body } = { body: '' }, ...others] = parts.queue.deadLetters();
  expect(others).toEqual([]);
  const unreadable = () => [
    parts.memory.item(inboxKey(CONSUMER, unreadableId(body))),
    parts.memory.item(rejectedKey(CONSUMER, unreadableId(body))),
  ];
  const lastError = expect.stringContaining('The id field "id" of charge.succeeded');
  expect(unreadable()).toMatchObject([{ status: 'REJECTED', lastError }, { reason: 'BAD_EXTERNAL_ID' }]);

  const corrected = externalEvent({ ...Charged, id: 'key', schema: z.unknown() });
  const handle = vi.fn(async () => {});
  parts.queue.redrive();
  await consumer(parts, [leased(corrected, handle)]).drain();
  await parts.clock.advance((consumerConfig.inboxRetentionDays + 1) * 86_400_000 + 1_000);
  parts.memory.expire();

  expect(handle).toHaveBeenCalledTimes(1);
  expect(unreadable()).toEqual([undefined, undefined]);
});

test('a test of S3 is acknowledged without a row, and counted', async () => {
  const parts = rig();
  const handle = vi.fn(async () => {});
  const { drain } = consumer(parts, [leased(Charged, handle)]);
  parts.queue.send({ Service: 'Amazon S3', Event: 's3:TestEvent', Bucket: 'uploads' });
  await drain();
  expect(handle).not.toHaveBeenCalled();
  expect(parts.queue.messages()).toEqual([]);
  expect(parts.memory.items()).toEqual([]);
  expect(parts.telemetry.counted('MessagesSkipped')).toBe(1);
  expect(parts.telemetry.counted('MessagesRejected')).toBe(0);
});
