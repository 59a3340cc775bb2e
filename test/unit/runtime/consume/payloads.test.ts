import { describe, expect, test } from 'vitest';
import { HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { ReceivedEvent } from '../../../../lambdas/runtime/events/event.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { awsError } from './consumer-rig.ts';
import { LARGE, ReportMade, reports } from './payload-rig.ts';

/** A handler of each kind, and the events that it has received. */
function kinds() {
  const seen: ReceivedEvent<string, { text: string }>[] = [];
  return {
    seen,
    handlers: [
      ['leased', leased(ReportMade, async (event) => void seen.push(event))],
      [
        'transactional',
        transactional(ReportMade, async (event) => {
          seen.push(event);
          return {};
        }),
      ],
      [
        'batch',
        transactionalBatch(ReportMade, async (events) => {
          seen.push(...events);
          return {};
        }),
      ],
    ] as const,
  };
}

describe('a payload above the threshold', () => {
  test('is an object under the id of its event, which has its size and SHA-256 in place of data', async () => {
    const { commit, payloads, bus } = reports();
    const [event] = await commit(LARGE);
    const key = `events/${event?.eventId}`;
    const json = JSON.stringify({ text: LARGE });
    expect(Buffer.from(payloads.objects.get(key) ?? '').toString()).toBe(json);
    const published = JSON.parse(bus.published()[0]?.detail ?? '{}');
    expect(published).not.toHaveProperty('data');
    expect(published.payload).toEqual({
      bucket: 'payloads',
      key,
      bytes: Buffer.byteLength(json),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(event).toMatchObject({ data: { text: LARGE }, payload: published.payload });
  });

  test.each(kinds().handlers.map(([kind], index) => [kind, index] as const))(
    'reaches a %s handler as data, in one batch with one that is in its event',
    async (_kind, index) => {
      const { seen, handlers } = kinds();
      const { commit, consumerOf, queue } = reports();
      const committed = await commit(LARGE, 'small');
      const handler = handlers[index]?.[1] as Handler;
      await consumerOf(handler).deliver();
      expect(queue.messages()).toEqual([]);
      const texts = Object.fromEntries(seen.map(({ eventId, data }) => [eventId, data.text]));
      expect(texts).toEqual({
        [String(committed[0]?.eventId)]: LARGE,
        [String(committed[1]?.eventId)]: 'small',
      });
    },
  );

  test('is not stored at the threshold, and is one byte above it', async () => {
    const { commit, payloads } = reports();
    const empty = JSON.stringify({ text: '' }).length;
    await commit('x'.repeat(1024 - empty));
    expect(payloads.objects.size).toBe(0);
    await commit('x'.repeat(1025 - empty));
    expect(payloads.objects.size).toBe(1);
  });

  test('takes a payload that no event could carry', async () => {
    const { commit, consumerOf, queue } = reports();
    await commit('x'.repeat(3_000_000));
    await consumerOf(leased(ReportMade, async () => {})).deliver();
    expect(queue.messages()).toEqual([]);
  });

  test('is refused above 32 MiB, before anything is written', async () => {
    const { commit, payloads, rows } = reports();
    await expect(commit('x'.repeat(32 * 1024 * 1024))).rejects.toMatchObject({ code: 'EVENT_TOO_LARGE' });
    expect([payloads.objects.size, rows()]).toEqual([0, []]);
  });

  test('is refused without payloads as before, with what to do', async () => {
    const { outbox } = rig();
    const event = ReportMade.create({ aggregateId: 'r', data: { text: 'x'.repeat(2_000_000) } });
    await expect(outbox.commit({ events: [event] })).rejects.toMatchObject({
      code: 'EVENT_TOO_LARGE',
      message: expect.stringContaining('docs/payloads.md'),
    });
  });

  test('stays in an event of a type that is inline', async () => {
    const { commit, payloads, bus } = reports({ inline: ['ReportMade'] });
    await commit(LARGE);
    expect(payloads.objects.size).toBe(0);
    expect(bus.published()[0]?.detail).toContain(LARGE);
  });

  test('is refused before it is written if its schema refuses it', async () => {
    const { outbox, payloads } = reports();
    const bad = ReportMade.create({ aggregateId: 'r', data: { text: LARGE, n: 1, text2: 1 } as never });
    const worse = { ...bad, data: { text: [LARGE] } } as never;
    await expect(outbox.commit({ events: [worse] })).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' });
    expect(payloads.objects.size).toBe(0);
  });

  test('can be scheduled as far ahead as its object outlasts', async () => {
    const { outbox, clock, payloads } = reports({ aheadDays: 2 });
    const at = (deliverAt: number) =>
      outbox.commit({ events: [ReportMade.create({ aggregateId: 'r', data: { text: LARGE }, deliverAt })] });
    await at(clock.now() + 48 * HOUR_MS);
    expect(payloads.objects.size).toBe(1);
    await expect(at(clock.now() + 48 * HOUR_MS + 1)).rejects.toMatchObject({
      code: 'INVALID_EVENT',
      message: expect.stringContaining('2 days ahead'),
    });
  });
});

describe('the object of a payload', () => {
  test('is written before the transaction: none is sent without it', async () => {
    const { commit, rows } = reports({
      failCall: (call) => (call === 'put' ? awsError('AccessDenied') : undefined),
    });
    await expect(commit(LARGE)).rejects.toMatchObject({ code: 'PAYLOADS_UNAVAILABLE' });
    expect(rows()).toEqual([]);
  });

  test('is left behind by a transaction that is refused', async () => {
    const { outbox, payloads, rows } = reports();
    const events = [ReportMade.create({ aggregateId: 'r', data: { text: LARGE } })];
    const writes = [
      { ConditionCheck: { Key: { PK: 'no', SK: 'no' }, ConditionExpression: 'attribute_exists(PK)' } },
    ];
    await expect(outbox.commit({ writes, events })).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
    expect([payloads.objects.size, rows().length]).toEqual([1, 0]);
  });

  const changes: readonly [string, string, (objects: Map<string, Uint8Array>, key: string) => void][] = [
    ['deleted', 'PAYLOAD_MISSING', (objects, key) => objects.delete(key)],
    ['truncated', 'PAYLOAD_CHANGED', (objects, key) => objects.set(key, objects.get(key)?.slice(1) as never)],
    [
      'altered in one byte',
      'PAYLOAD_CHANGED',
      (objects, key) => {
        const altered = Uint8Array.from(objects.get(key) ?? []);
        altered[12] = 66;
        objects.set(key, altered);
      },
    ],
    [
      'swapped with another',
      'PAYLOAD_CHANGED',
      (objects, key) => objects.set(key, Buffer.from(JSON.stringify({ text: 'ö'.repeat(1_000) }))),
    ],
  ];

  test.each(
    changes.flatMap(([what, code, change]) =>
      kinds().handlers.map(([kind], index) => [what, kind, index, code, change] as const),
    ),
  )('that was %s rejects the message of a %s handler, and a redrive repairs it', async (...given) => {
    const [, , index, code, change] = given;
    const { seen, handlers } = kinds();
    const { commit, payloads, consumerOf, queue, row } = reports({}, 2);
    const [event] = await commit(LARGE);
    const { eventId = '' } = event ?? {};
    const before = payloads.objects.get(`events/${eventId}`);
    const [body] = queue.messages().map((message) => message.body);
    change(payloads.objects, `events/${eventId}`);
    const { drain } = consumerOf(handlers[index]?.[1] as Handler);
    await drain();
    expect(row(eventId)).toMatchObject({ status: 'REJECTED', attempts: 0 });
    expect(queue.deadLetters()).toHaveLength(1);
    expect(JSON.stringify(row(eventId))).toContain(code);
    expect(JSON.stringify(row(eventId))).not.toContain('ä');
    expect(seen).toEqual([]);
    payloads.objects.set(`events/${eventId}`, before as Uint8Array);
    queue.send(JSON.parse(body ?? ''));
    await drain();
    expect(row(eventId)).toMatchObject({ status: 'PROCESSED' });
    expect(seen.every(({ data }) => data.text === LARGE) && seen.length > 0).toBe(true);
  });

  test('that was deleted after its message was processed changes nothing: a repeat is a duplicate', async () => {
    const { commit, payloads, consumerOf, queue, row } = reports();
    const [event] = await commit(LARGE);
    const [body] = queue.messages().map((message) => message.body);
    const { drain } = consumerOf(leased(ReportMade, async () => {}));
    await drain();
    payloads.objects.clear();
    queue.send(JSON.parse(body ?? ''));
    await drain();
    expect(row(event?.eventId ?? '')).toMatchObject({ status: 'PROCESSED' });
    expect(queue.deadLetters()).toEqual([]);
  });

  test.each(['AccessDenied', 'KMS.DisabledException', 'SlowDown', 'NoSuchBucket', 'TimeoutError'])(
    'that cannot be read because of %s counts no attempt, and is processed afterwards',
    async (name) => {
      let away = true;
      const failCall = (call: string) => (away && call === 'get' ? awsError(name) : undefined);
      const { clock, commit, consumerOf, queue, row, telemetry } = reports({ failCall });
      const [event] = await commit(LARGE);
      const { deliver, drain } = consumerOf(leased(ReportMade, async () => {}));
      await deliver();
      expect(row(event?.eventId ?? '')).toBeUndefined();
      expect(telemetry.lines().map(({ message }) => message)).toContain(
        'Mailroom could not reach the payload of a message in S3; no attempt is counted',
      );
      await clock.advance(HOUR_MS);
      await deliver();
      expect(row(event?.eventId ?? '')).toMatchObject({ status: 'FAILED', attempts: 0 });
      away = false;
      await drain();
      expect(row(event?.eventId ?? '')).toMatchObject({ status: 'PROCESSED', attempts: 1 });
      expect(queue.deadLetters()).toEqual([]);
    },
  );

  test.each(kinds().handlers.map(([kind]) => kind))(
    'that a %s handler cannot write for its own event counts no attempt',
    async (kind) => {
      let away = true;
      const failCall = (call: string) => (away && call === 'put' ? awsError('SlowDown') : undefined);
      const parts = reports({ failCall });
      const events = [ReportMade.create({ aggregateId: 'next', data: { text: LARGE } })];
      const handlers: Readonly<Record<string, Handler>> = {
        leased: leased(ReportMade, async (_, ctx) => ctx.commit({ events })),
        transactional: transactional(ReportMade, async () => ({ events })),
        batch: transactionalBatch(ReportMade, async ([cause]) => ({
          events: events.map((draft) => ({ draft, cause: cause as never })),
        })),
      };
      const committed = await parts.commit('small', 'also small');
      const { deliver, drain } = parts.consumerOf(handlers[kind] as Handler);
      await deliver();
      const rows = () => committed.map(({ eventId }) => parts.row(eventId));
      for (const row of rows()) expect(row?.attempts ?? 0).toBe(0);
      expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
      away = false;
      await drain();
      for (const row of rows()) expect(row).toMatchObject({ status: 'PROCESSED' });
    },
  );
});
