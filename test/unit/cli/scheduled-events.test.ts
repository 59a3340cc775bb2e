import { describe, expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { readDueTimes, scheduledStatus } from '../../../cli/reports/status/scheduled-events.ts';
import { leased, transactional } from '../../../lambdas/runtime/consume/handler.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { outboxPartition } from '../../../lambdas/runtime/store/outbox-partition.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const REASON = ['--apply', '--reason', 'the warehouse lost it'];

/** A Mailroom with events of thing-1 that are due in the given minutes; the sweep has just run. */
async function withScheduled(...minutes: readonly number[]) {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  await mailroom.publish();
  const schedule = async (inMinutes: number, aggregateId = 'thing-1') => {
    const deliverAt = mailroom.clock.now() + inMinutes * MINUTE_MS;
    const event = ThingHappened.create({ aggregateId, data: { n: Math.ceil(inMinutes) }, deliverAt });
    const [envelope] = await mailroom.outbox.commit({ events: [event] });
    return envelope?.eventId ?? '';
  };
  const ids: string[] = [];
  for (const inMinutes of minutes) ids.push(await schedule(inMinutes));
  const run = async (...argv: readonly string[]) => {
    const { code, out, err } = await runInMemory(mailroom, argv);
    return { code, out: unwrapped(out), err: unwrapped(err) };
  };
  const json = async (...argv: readonly string[]) =>
    JSON.parse((await runInMemory(mailroom, [...argv, '--json'])).out);
  return { ...mailroom, schedule, ids, run, json };
}

const unwrapped = (text: string) => text.replace(/\s+/g, ' ').trim();
const eventIds = ({ events }: { readonly events: readonly { readonly eventId: string }[] }) =>
  events.map(({ eventId }) => eventId);

describe('status', () => {
  test('counts the events that are due within an hour, and shows when the first of them is', async () => {
    const { json, clock } = await withScheduled(40, 5, 61);
    const nextDueAt = clock.now() + 5 * MINUTE_MS;
    const report = await json('status');
    expect(report.outbox.scheduled).toEqual({ withinMs: HOUR_MS, due: 2, nextDueAt, overdue: 0 });
    expect(report).toMatchObject({ ok: true, outbox: { pending: 0, oldestPendingMs: 0 }, atLeast: [] });
  });

  test('counts neither cancelled events nor those of the running minute that are due already', async () => {
    const { json, outbox, ids, clock } = await withScheduled(40, 0.1);
    expect((await json('status')).outbox).toMatchObject({ pending: 0, scheduled: { due: 2 } });
    await outbox.cancel(ids[0] ?? '');
    await clock.advance(10_000);
    const report = await json('status');
    expect(report.outbox).toMatchObject({ pending: 1, scheduled: { due: 0, nextDueAt: null } });
  });

  test('reads each minute of the next hour once in each shard, and ahead if it is read again; at most 50 rows of it', async () => {
    const mailroom = await withScheduled();
    const now = mailroom.clock.now();
    const dueAt = now + 5 * MINUTE_MS;
    const minute = '2026-01-01T00:07';
    for (let n = 0; n < 51; n += 1) {
      const row = { PK: outboxPartition(minute, 0), SK: `EVENT#${idAt(dueAt, n)}`, status: 'PENDING', dueAt };
      await mailroom.memory.write({ Put: { Item: row } });
    }
    const ahead: string[] = [];
    const query = mailroom.table.query.bind(mailroom.table);
    const table = Object.assign(Object.create(mailroom.table), {
      query: (asked: Parameters<typeof query>[0]) => {
        if (asked.pk.startsWith('OUTBOX#') && asked.pk >= `OUTBOX#${minute.slice(0, -2)}03`)
          ahead.push(asked.pk);
        return query(asked);
      },
    });
    const { out } = await runInMemory({ ...mailroom, table }, ['status', '--json']);
    const report = JSON.parse(out);
    expect(report.outbox.scheduled.due).toBe(50);
    expect(report.atLeast).toEqual(['outbox.scheduled.due']);
    expect(new Set(ahead).size).toBe(60 * 2);
    expect(ahead.splice(0)).toHaveLength(60 * 2);
    await readDueTimes({ stored: dynamoRows(table), shards: [0, 1] }, now, 10 * MINUTE_MS);
    expect(new Set(ahead).size).toBe(70 * 2);
    expect(ahead).toHaveLength(70 * 2);
  });

  test('a reading that is kept for a minute leaves out what has come due since', () => {
    const now = 10 * HOUR_MS;
    const dueTimes = [now, now + 1, now + HOUR_MS, now + HOUR_MS + 1];
    expect(scheduledStatus(dueTimes, [], now)).toMatchObject({ due: 2, nextDueAt: now + 1 });
  });

  test('requires action for an event that was due more than five minutes ago, not for one that waits for the sweep', async () => {
    const { json, run, clock } = await withScheduled(1, 2);
    await clock.advance(6 * MINUTE_MS);
    const early = await json('status');
    expect(early.outbox).toMatchObject({ pending: 2, scheduled: { overdue: 0 } });
    await clock.advance(30_000);
    const report = await json('status');
    expect(report.outbox).toMatchObject({ pending: 2, scheduled: { overdue: 1 } });
    expect(report.findings[0]).toMatchObject({
      state: 'broken',
      id: 'events-pending/outbox/due',
      code: 'events-pending',
      count: 1,
      commands: ['npx cdk-mailroom sweep --since 1h --stage dev'],
    });
    expect((await run('status')).code).toBe(1);
  });
});

describe('events list --scheduled', () => {
  test('lists what is due within 24 hours, the next one first', async () => {
    const { json, run, ids, clock, outbox } = await withScheduled(90, 5, 30, 25 * 60);
    const [later, next, cancelled, tomorrow] = ids;
    await outbox.cancel(cancelled ?? '');
    const found = await json('events', 'list', '--scheduled');
    expect(found.more).toBe(false);
    expect(found.events).toMatchObject([
      { eventId: next, dueAt: clock.now() + 5 * MINUTE_MS, scheduledAt: clock.now(), aggregateId: 'thing-1' },
      { eventId: later, type: 'ThingHappened', source: 'things' },
    ]);
    expect(eventIds(await json('events', 'list', '--scheduled', '--within', '2d'))).toEqual([
      next,
      later,
      tomorrow,
    ]);
    expect(eventIds(await json('events', 'list', '--scheduled', '--within', '5m'))).toEqual([next]);
    // They are not pending yet.
    expect((await run('events', 'list')).out).toBe('No such events.');
  });

  test('selects by aggregate, stops at the limit, and exports', async () => {
    const { json, run, schedule, ids } = await withScheduled(5, 30);
    const other = await schedule(10, 'thing-2');
    expect(eventIds(await json('events', 'list', '--scheduled', '--aggregate', 'thing-2'))).toEqual([other]);
    expect(eventIds(await json('events', 'list', '--scheduled', '--type', 'Thing'))).toEqual([]);
    const cut = await json('events', 'list', '--scheduled', '--limit', '2');
    expect([eventIds(cut), cut.more]).toEqual([[ids[0], other], true]);
    const csv = await run('events', 'list', '--scheduled', '--limit', '1', '--format', 'csv');
    expect(csv.out).toMatch(
      /^eventId,type,source,aggregateType,aggregateId,correlationId,causationId,occurredAt,dueAt,scheduledAt \S+$/,
    );
  });

  test.each([
    [['--within', '2h'], '--within'],
    [['--scheduled', '--within', '400d'], '366 d'],
    [['--scheduled', '--within', 'tomorrow'], '--within'],
    [['--scheduled', '--pending'], '--pending'],
    [['--scheduled', '--since', '2h'], '--since'],
    [['--type', 'ThingHappened'], '--type'],
  ])('refuses %j, and names the option or its limit', async (options, named) => {
    const { run } = await withScheduled();
    expect(await run('events', 'list', ...options)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining(named),
    });
  });
});

describe('why', () => {
  test('shows when an event is due and who scheduled it', async () => {
    const { run, json, ids } = await withScheduled(180);
    const [id = ''] = ids;
    expect((await run('why', id)).code).toBe(0);
    const { events, searchedTo, verdict } = await json('why', id);
    expect(searchedTo).toBeNull();
    expect(verdict).toMatchObject({ state: 'scheduled', eventId: id, next: null });
    expect(events[0].story.map(({ what }: Item) => what)).toEqual(['scheduled', 'due']);
  });

  test('shows who cancelled an event, and that this is final', async () => {
    const { run, json, ids, outbox, clock } = await withScheduled(180);
    const [id = ''] = ids;
    await clock.advance(MINUTE_MS);
    await outbox.cancel(id);
    expect((await run('why', id)).code).toBe(0);
    const { events, verdict } = await json('why', id);
    expect(verdict).toMatchObject({ state: 'cancelled', eventId: id, next: null });
    expect(events[0].story.map(({ what }: Item) => what)).toEqual(['scheduled', 'cancelled']);
    expect(events[0].status).toBe('CANCELLED');
  });

  test('an event that is due waits for the sweep, and is overdue after five minutes', async () => {
    const { json, ids, clock, publish } = await withScheduled(1);
    const [id = ''] = ids;
    await clock.advance(MINUTE_MS + 10_000);
    const due = (await json('why', id)).verdict;
    expect(due).toMatchObject({ state: 'publishing', next: null });
    await clock.advance(5 * MINUTE_MS);
    const overdue = (await json('why', id)).verdict;
    expect(overdue).toMatchObject({
      state: 'stuck',
      next: expect.stringContaining('sweep --since 1h'),
    });
    await publish();
    const { events } = await json('why', id);
    expect(events[0].status).toBe('PUBLISHED');
  });

  test('finds the scheduled events of an aggregate as far ahead as it searches back', async () => {
    const { json, ids, clock } = await withScheduled(30, 180);
    const [soon, later] = ids;
    const found = await json('why', 'thing-1');
    expect(eventIds(found)).toEqual([soon]);
    expect(found.searchedTo).toBe(clock.now() + HOUR_MS);
    const wider = await json('why', 'thing-1', '--since', '4h');
    expect(eventIds(wider)).toEqual([soon, later]);
    expect(wider.verdict).toMatchObject({ state: 'scheduled', eventId: soon });
  });

  test('a cancelled timer does not hide that the rest of the chain was processed, or that it waits', async () => {
    const mailroom = mailroomInMemory([
      transactional(ThingHappened, async ({ data, occurredAt }) => ({
        events:
          data.n === 1
            ? [
                ThingHappened.create({
                  aggregateId: 'thing-1',
                  data: { n: 2 },
                  deliverAt: occurredAt + 30 * MINUTE_MS,
                }),
              ]
            : [],
      })),
    ]);
    const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    await mailroom.drain();
    const read = async () => JSON.parse((await runInMemory(mailroom, ['why', 'thing-1', '--json'])).out);
    const scheduled = await read();
    const [cause, timer] = scheduled.events;
    expect([cause.eventId, cause.caused]).toEqual([event?.eventId, [timer.eventId]]);
    expect(scheduled.verdict).toMatchObject({ state: 'scheduled', eventId: timer.eventId });
    await mailroom.outbox.cancel(timer.eventId);
    const { verdict } = await read();
    expect(verdict.state).toBe('processed');
  });
});

test('logs of an event that is not due, or was cancelled, searches a range that ends after it begins', async () => {
  const { json, ids, outbox, clock } = await withScheduled(180);
  const [id = ''] = ids;
  const range = { since: clock.now() - MINUTE_MS, until: clock.now() + MINUTE_MS };
  expect(await json('logs', id)).toMatchObject(range);
  await outbox.cancel(id);
  expect(await json('logs', id)).toMatchObject(range);
});

describe('a command that changes an event', () => {
  test.each([
    ['events republish', ['events', 'republish']],
    ['messages resolve', ['messages', 'resolve', 'worker']],
  ])('%s refuses one that is not due, and one that was cancelled', async (_name, words) => {
    const { run, ids, outbox, memory } = await withScheduled(180);
    const [id = ''] = ids;
    const before = memory.items();
    const early = await run(...words, id, ...REASON);
    expect(early).toMatchObject({ code: 2, err: expect.stringContaining('NOT_PUBLISHED') });
    expect(memory.items()).toEqual(before);
    await outbox.cancel(id);
    const late = await run(...words, id, ...REASON);
    expect(late).toMatchObject({ code: 2, err: expect.stringContaining('is CANCELLED') });
  });

  test.each(['redrive', 'discard'])('dlq %s names the command that shows where it is', async (word) => {
    const { run, ids } = await withScheduled(180);
    const [id = ''] = ids;
    const { code, err } = await run('dlq', word, 'dead', id, ...REASON);
    expect([code, err]).toEqual([3, expect.stringContaining(`npx cdk-mailroom why ${id}`)]);
  });

  test('dlq resend sends nothing in its place', async () => {
    const mailroom = await withScheduled(180);
    const [id = ''] = mailroom.ids;
    const words = ['dlq', 'resend', 'consumer:worker', id, '--data', '-', ...REASON];
    const before = mailroom.memory.items();
    const { code, err } = await runInMemory(mailroom, words, { input: '{"n":1}' });
    expect([code, err]).toEqual([3, expect.stringContaining(`npx cdk-mailroom why ${id}`)]);
    expect(mailroom.memory.items()).toEqual(before);
  });

  test('sweep publishes nothing before it is due', async () => {
    const { run, ids, clock, publishedIds, memory } = await withScheduled(0.4, 180);
    const [soon = '', later = ''] = ids;
    await run('sweep', '--since', '2h');
    expect(publishedIds()).toEqual([]);
    await clock.advance(30_000);
    expect((await run('sweep', '--since', '2h')).out).toContain('1 published, 0 still pending');
    expect(publishedIds()).toEqual([soon]);
    expect(memory.item(outboxKeyOf(later))).toMatchObject({ status: 'PENDING', attempts: 0 });
  });
});

/** An event id of a time, in shard 0. */
function idAt(ms: number, n: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${n.toString(16).padStart(12, '0')}`;
}

test('why of an aggregate whose event is due later than intended names the command that lists it, and no search that was just made', async () => {
  const { run, ids } = await withScheduled(20 * 24 * 60);
  for (const since of ['1h', '2d']) {
    const { code, err } = await run('why', 'thing-1', '--since', since);
    expect(code).toBe(3);
    expect(err).toContain(since === '1h' ? '--since 24h' : '--since 7d');
    const [command = ''] = /events list --scheduled .*thing-1/.exec(err) ?? [];
    const { out } = await run(...command.split(' '));
    expect(out).toContain(ids[0]);
  }
});

test('scheduled events are overdue because the sweep is off: status and why name its rule, and the next pass publishes each once', async () => {
  const mailroom = await withScheduled(5, 60);
  const deployed = resourcesInMemory(mailroom.directory);
  deployed.changeRule('default|sweep-rule', { enabled: false });
  await mailroom.clock.advance(20 * HOUR_MS);
  const run = async (...argv: string[]) => (await runInMemory({ ...mailroom, deployed }, argv)).out;
  const enable = 'aws events enable-rule --name sweep-rule';
  const status = await run('status');
  expect(status).toContain(enable);
  expect(unwrapped(status)).toContain('2 of them scheduled and overdue');
  expect(await run('why', mailroom.ids[0] ?? '')).toContain(enable);
  const before = mailroom.publishedIds().length;
  await mailroom.publish();
  await mailroom.publish();
  expect(mailroom.publishedIds().slice(before).toSorted()).toEqual(mailroom.ids.toSorted());
});
