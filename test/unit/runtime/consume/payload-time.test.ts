import { describe, expect, test, vi } from 'vitest';
import { MailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { EventDraft } from '../../../../lambdas/runtime/events/event.ts';
import type { Payloads } from '../../../../lambdas/runtime/events/payloads.ts';
import type { CheckReport } from '../../../../lambdas/runtime/sources/sqs/check-messages.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, runThrough } from '../../../support/runtime-rig.ts';
import { LARGE, ReportMade, reports } from './payload-rig.ts';

const KINDS = ['leased', 'transactional', 'batch'] as const;

/** A handler of a kind that publishes events. */
function handlerOf(kind: (typeof KINDS)[number], events: readonly EventDraft[] = []): Handler {
  if (kind === 'leased') return leased(ReportMade, (_, ctx) => ctx.commit({ events }));
  if (kind === 'transactional') return transactional(ReportMade, async () => ({ events }));
  return transactionalBatch(ReportMade, async ([cause]) => ({
    events: events.map((draft) => ({ draft, cause: cause as never })),
  }));
}

/** Payloads whose calls take this long. */
function slow(parts: ReturnType<typeof reports>, ms: number): Payloads {
  const { clock, payloads } = parts;
  const late = async <T>(call: () => Promise<T>) => {
    await clock.sleep(ms);
    return call();
  };
  return {
    read: (event) => late(() => payloads.read(event)),
    write: (event) => late(() => payloads.write(event)),
  };
}

const followUps = ['a', 'b', 'c', 'd'].map((aggregateId) =>
  ReportMade.create({ aggregateId, data: { text: LARGE } }),
);

describe('a slow S3', () => {
  test.each(KINDS)('does not use up the time of a function: %s, and the payload is read', async (kind) => {
    const parts = reports();
    const committed = await parts.commit('small', LARGE);
    const { deliver } = parts.consumerOf(handlerOf(kind), slow(parts, 10_000));
    const began = parts.clock.now();
    await deliver(6_000);
    expect(parts.clock.now() - began).toBeLessThan(5_000);
    const [small, large] = committed.map(({ eventId }) => parts.row(eventId));
    expect(small).toMatchObject({ status: 'PROCESSED' });
    expect(large).toBeUndefined();
    expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
    await parts.clock.advance(3_600_000);
    await deliver(15_000);
    expect(parts.row(committed[1]?.eventId ?? '')).toMatchObject({ status: 'PROCESSED' });
  });

  test.each(KINDS)('writes the objects of a commit at the same time: %s', async (kind) => {
    const parts = reports();
    const [event] = await parts.commit('small');
    const { deliver } = parts.consumerOf(handlerOf(kind, followUps), slow(parts, 4_000));
    const began = parts.clock.now();
    await deliver(15_000);
    expect(parts.clock.now() - began).toBeLessThan(8_000);
    expect(parts.row(event?.eventId ?? '')).toMatchObject({ status: 'PROCESSED' });
    expect(parts.payloads.objects.size).toBe(4);
  });

  test.each(KINDS)(
    'that writes the objects too late leaves no transaction behind, and counts no attempt: %s',
    async (kind) => {
      const parts = reports();
      const committed = await parts.commit('small', 'also small');
      const { deliver } = parts.consumerOf(handlerOf(kind, followUps), slow(parts, 9_000));
      const began = parts.clock.now();
      await deliver(6_000);
      expect(parts.clock.now() - began).toBeLessThanOrEqual(5_000);
      await parts.clock.advance(10_000); // the writes end, and nothing follows them
      for (const { eventId } of committed) expect(parts.row(eventId)?.attempts ?? 0).toBe(0);
      expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
      expect(parts.telemetry.counted('TableFailures')).toBe(2);
    },
  );

  test('is an outage for a leased commit, however often it is too slow', async () => {
    const parts = reports();
    const [event] = await parts.commit('small');
    const slowly = parts.consumerOf(handlerOf('leased', followUps), slow(parts, 9_000));
    for (let receive = 1; receive <= 6; receive += 1) {
      await slowly.deliver(6_000);
      expect(parts.row(event?.eventId ?? '')).toMatchObject({ status: 'FAILED', attempts: 0 });
      await parts.clock.advance(3_600_000);
    }
    await parts.consumerOf(handlerOf('leased', followUps)).deliver();
    expect(parts.row(event?.eventId ?? '')).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('is not waited for by a leased commit without objects, which is sent in the last moment of its handler', async () => {
    const parts = reports();
    const [event] = await parts.commit('small');
    const draft = ReportMade.create({ aggregateId: 'a', data: { text: 'small' } });
    const handler = leased(ReportMade, async (_, ctx) => {
      await parts.clock.sleep(4_900);
      await ctx.commit({ events: [draft] });
    });
    await parts.consumerOf(handler).deliver(6_000);
    expect(parts.row(event?.eventId ?? '')).toMatchObject({ status: 'PROCESSED' });
  });

  test('is asked for the payloads of an outbox at the same time, and they keep their order', async () => {
    const parts = reports();
    const began = parts.clock.now();
    const late: Payloads = {
      ...parts.payloads,
      write: async (event) => {
        await parts.clock.sleep(event.json.includes('last') ? 100 : 9_000);
        return parts.payloads.write(event);
      },
    };
    const texts = [`${LARGE}1`, `${LARGE}2`, `${LARGE}last`];
    const done = parts.outboxOf(late).commit({
      events: texts.map((text) => ReportMade.create({ aggregateId: 'r', data: { text } })),
    });
    await parts.clock.advance(9_000);
    expect((await done).map(({ data }) => (data as { text: string }).text)).toEqual(texts);
    expect(parts.clock.now() - began).toBe(9_000);
  });
});

test('a formal rejection is refused in time, if S3 does not answer', async () => {
  const parts = reports();
  await parts.commit(LARGE);
  const [message] = parts.queue.messages();
  const handler = leased(ReportMade, async () => {}, { rejected: async () => ({}) });
  const { handle } = parts.consumerOf(handler, slow(parts, 10_000));
  const request = { mailroomReject: { by: 'ada', reason: 'lost', body: message?.body } };
  const began = parts.clock.now();
  const context = lambdaContext({ clock: parts.clock, timeoutMs: 6_000 });
  const answer = await runThrough(parts.clock, handle(request as never, context));
  expect(answer).toMatchObject({ settled: { status: 'refused', code: 'PAYLOADS_UNAVAILABLE' } });
  expect(parts.clock.now() - began).toBeLessThanOrEqual(5_000);
});

describe('a check of dead letters', () => {
  async function checked(ms: number, timeoutMs: number) {
    const parts = reports();
    await parts.commit(...Array.from({ length: 20 }, () => LARGE));
    const bodies = parts.queue.messages().map(({ body }) => body);
    const { handle } = parts.consumerOf(handlerOf('leased'), slow(parts, ms));
    const began = parts.clock.now();
    const context = lambdaContext({ clock: parts.clock, timeoutMs });
    const answer = handle({ mailroomCheck: { bodies } } as never, context).catch((error: unknown) => error);
    const report = await runThrough(parts.clock, answer);
    return { report, tookMs: parts.clock.now() - began };
  }

  test('reads several payloads at the same time, in order', async () => {
    const { report, tookMs } = await checked(1_000, 30_000);
    const { checks } = report as CheckReport;
    expect(checks).toHaveLength(20);
    expect(checks.every(({ ok }) => ok)).toBe(true);
    expect(tookMs).toBe(3_000);
  });

  test('judges nothing, and answers in time, if S3 does not', async () => {
    const { report, tookMs } = await checked(10_000, 6_000);
    expect(report).toMatchObject({ code: 'PAYLOADS_UNAVAILABLE' });
    expect(tookMs).toBeLessThanOrEqual(5_000);
  });
});

describe('a payload that is loaded under a claim', () => {
  async function redelivered(read: (parts: ReturnType<typeof reports>, eventId: string) => Promise<unknown>) {
    const parts = reports();
    const [{ eventId } = { eventId: '' }] = await parts.commit(LARGE);
    const leases: number[] = [];
    const handler = leased(ReportMade, async () => {
      leases.push(Number(parts.row(eventId)?.leaseUntil) - parts.clock.now());
    });
    const away: Payloads = {
      ...parts.payloads,
      read: () => Promise.reject(new MailroomError('PAYLOADS_UNAVAILABLE', 'away')),
    };
    await parts.consumerOf(handler, away).deliver();
    await parts.clock.advance(3_600_000);
    const payloads: Payloads = {
      ...parts.payloads,
      read: async (event) => {
        await parts.clock.sleep(9_000);
        await read(parts, eventId);
        return parts.payloads.read(event);
      },
    };
    await parts.consumerOf(handler, payloads).deliver(120_000);
    return { ...parts, leases, row: () => parts.row(eventId) };
  }

  test('leaves its handler a whole lease', async () => {
    const { leases, row } = await redelivered(async () => {});
    expect(leases).toEqual([consumerConfig.leaseMs]);
    expect(row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('starts no handler if another worker has the message then', async () => {
    const { leases, row } = await redelivered(({ memory, row: rowOf }, eventId) =>
      memory.write({ Put: { Item: { ...rowOf(eventId), fence: 'of another worker' } as Item } }),
    );
    expect(leases).toEqual([]);
    expect(row()).toMatchObject({ status: 'PROCESSING', fence: 'of another worker' });
  });
});

test('the data of an event is written as JSON for an object only where there are objects', async () => {
  const { payloads, outboxOf } = reports();
  const draft = ReportMade.create({ aggregateId: 'r', data: { text: 'small' } });
  const stringify = vi.spyOn(JSON, 'stringify');
  const callsOf = async (own?: Payloads) => {
    stringify.mockClear();
    await outboxOf(own).commit({ events: [draft] });
    return stringify.mock.calls.filter(([value]) => value === draft.data).length;
  };
  const without = await callsOf();
  expect(await callsOf(payloads)).toBe(without + 1);
  stringify.mockRestore();
});

describe('a stale message without its object', () => {
  const expiresInMs = 60_000;
  const drafts: readonly EventDraft[] = [];
  const stale: Readonly<Record<string, Handler>> = {
    leased: leased(ReportMade, async () => {}, { expiresInMs }),
    transactional: transactional(ReportMade, async () => ({}), { expiresInMs }),
    batch: transactionalBatch(ReportMade, async () => ({ events: drafts as [] }), { expiresInMs }),
  };

  test.each(KINDS)('is discarded as stale, and not rejected: %s', async (kind) => {
    const parts = reports();
    const committed = await parts.commit(LARGE, LARGE);
    parts.payloads.objects.clear();
    await parts.clock.advance(3_600_000);
    await parts.consumerOf(stale[kind] as Handler).drain();
    for (const { eventId } of committed) expect(parts.row(eventId)).toMatchObject({ status: 'DISCARDED' });
    expect(parts.queue.deadLetters()).toEqual([]);
  });

  test.each(KINDS)('that becomes stale while its object is read is discarded: %s', async (kind) => {
    const parts = reports();
    const committed = await parts.commit(LARGE, LARGE);
    await parts.clock.advance(expiresInMs - 5_000);
    await parts.consumerOf(stale[kind] as Handler, slow(parts, 9_000)).deliver();
    for (const { eventId } of committed)
      expect(parts.row(eventId)).toMatchObject({ status: 'DISCARDED', reason: 'STALE' });
  });

  test('is loaded after its claim if an effect may have happened, and then processed', async () => {
    const parts = reports();
    const [event] = await parts.commit(LARGE);
    const seen: string[] = [];
    let fails = true;
    const handler = leased(
      ReportMade,
      async ({ data }, ctx) => {
        await ctx.once('told', async () => 'done');
        if (fails) throw new Error('fails once');
        seen.push(data.text);
      },
      { expiresInMs },
    );
    await parts.consumerOf(handler).deliver();
    fails = false;
    await parts.clock.advance(3_600_000);
    const away: Payloads = {
      ...parts.payloads,
      read: async () => {
        throw new MailroomError('PAYLOADS_UNAVAILABLE', 'away');
      },
    };
    await parts.consumerOf(handler, away).deliver();
    expect(parts.row(event?.eventId ?? '')).toMatchObject({ status: 'FAILED', attempts: 1 });
    await parts.clock.advance(3_600_000);
    await parts.consumerOf(handler).deliver();
    expect(parts.row(event?.eventId ?? '')).toMatchObject({ status: 'PROCESSED' });
    expect(seen).toEqual([LARGE]);
  });
});
