import { describe, expect, test } from 'vitest';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const HOUR_MS = 3_600_000;

/** A Mailroom with an event that is due in three hours. */
async function rig() {
  const mailroom = mailroomInMemory([]);
  const { clock, outbox } = mailroom;
  const schedule = async (n: number, inMs: number) => {
    const deliverAt = clock.now() + inMs;
    const [event] = await outbox.commit({
      events: [ThingHappened.create({ aggregateId: `thing-${n}`, data: { n }, deliverAt })],
    });
    return event?.eventId ?? '';
  };
  const eventId = await schedule(1, 3 * HOUR_MS);
  const run = (...argv: string[]) => runInMemory(mailroom, argv);
  return {
    ...mailroom,
    schedule,
    eventId,
    run,
    text: async (...argv: string[]) => {
      const { out, err } = await run(...argv);
      return unwrapped(out + err);
    },
    json: async (...argv: string[]) => JSON.parse((await run(...argv, '--json')).out),
  };
}

describe('why', () => {
  test('says when a scheduled event is due, and requires no action', async () => {
    const { run, eventId, json } = await rig();
    const { code, out } = await run('why', eventId, '--story');
    expect(code).toBe(0);
    expect(unwrapped(out)).toContain(`ThingHappened ${eventId} is scheduled: it is due in 3 h`);
    expect(unwrapped(out)).toContain('scheduled by things for');
    expect(await json('why', eventId)).toMatchObject({ verdict: { state: 'scheduled', next: null } });
  });

  test('says who cancelled it', async () => {
    const { text, eventId, json, outbox } = await rig();
    await outbox.cancel(eventId);
    expect(await text('why', eventId, '--story')).toContain(
      `ThingHappened ${eventId} was cancelled by things at`,
    );
    expect(await json('why', eventId)).toMatchObject({ verdict: { state: 'cancelled', next: null } });
  });

  test('waits three minutes after the due time, then it is stuck', async () => {
    const { text, eventId, clock, json } = await rig();
    await clock.advance(3 * HOUR_MS + 2 * 60_000);
    expect(await text('why', eventId)).toContain(
      'was due 2 min ago and is not published yet. The sweep publishes it',
    );
    await clock.advance(4 * 60_000);
    expect(await json('why', eventId)).toMatchObject({ verdict: { state: 'stuck' } });
  });
});

describe('events list', () => {
  test('leaves out what is not due, and shows it with --scheduled, next first', async () => {
    const { json, eventId, schedule, text, clock } = await rig();
    const first = await schedule(2, HOUR_MS);
    await schedule(3, 30 * HOUR_MS);
    expect(await json('events', 'list')).toEqual({ events: [], more: false });
    const { events, more } = await json('events', 'list', '--scheduled');
    expect(more).toBe(false);
    expect(events).toMatchObject([
      { eventId: first, status: 'PENDING', at: clock.now(), nextAt: clock.now() + HOUR_MS },
      { eventId, nextAt: clock.now() + 3 * HOUR_MS },
    ]);
    expect((await json('events', 'list', '--scheduled', '--within', '2d')).events).toHaveLength(3);
    expect(await json('events', 'list', '--scheduled', '--limit', '1')).toMatchObject({
      events: [{}],
      more: true,
    });
    expect(await text('events', 'list', '--scheduled')).toContain('2 events scheduled');
  });

  test('does not read the scheduled events as pending in the minute in which they are due', async () => {
    const { json, schedule } = await rig();
    await schedule(4, 10_000);
    expect(await json('events', 'list')).toEqual({ events: [], more: false });
  });

  test('refuses what excludes each other, and a time without a unit', async () => {
    const { text } = await rig();
    expect(await text('events', 'list', '--scheduled', '--dead')).toContain('cannot be used with');
    expect(await text('events', 'list', '--scheduled', '--within', '7')).toContain('a unit, such as 90s');
  });
});

test('events republish refuses a cancelled event', async () => {
  const { text, eventId, outbox } = await rig();
  await outbox.cancel(eventId);
  expect(await text('events', 'republish', eventId)).toContain(
    'Its producer cancelled it, and must write a new event.',
  );
});
