import { describe, expect, test } from 'vitest';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const REASON = ['--apply', '--reason', 'the warehouse lost it'];

/** A Mailroom whose consumer has processed an event of thing-1 and rejected one of thing-2, and one event that is pending. */
async function withHistory() {
  const calls: string[] = [];
  const mailroom = mailroomInMemory([
    leased(ThingHappened, async ({ aggregateId, data }) => {
      calls.push(aggregateId);
      if (data.n === 2) throw new PoisonMessage('no price');
    }),
  ]);
  const commit = async (n: number) => {
    const event = ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } });
    const [envelope] = await mailroom.outbox.commit({ events: [event] });
    return envelope?.eventId ?? '';
  };
  const processed = await commit(1);
  await mailroom.clock.advance(3 * 60_000);
  const rejected = await commit(2);
  await mailroom.publish();
  await mailroom.drain();
  const pending = await commit(3);
  return { ...mailroom, calls, ids: { processed, rejected, pending } };
}

const json = ({ out }: { readonly out: string }) => JSON.parse(out);
const unwrapped = (text: string) => text.replace(/\s+/g, ' ');

describe('events list --published', () => {
  test('lists the published events of the range, newest first', async () => {
    const mailroom = await withHistory();
    const { processed, rejected } = mailroom.ids;
    const run = await runInMemory(mailroom, ['events', 'list', '--published', '--json']);
    expect(json(run).more).toBe(false);
    expect(json(run).events).toMatchObject([
      { eventId: rejected, aggregateId: 'thing-2', publishedBy: 'sweep', type: 'ThingHappened' },
      { eventId: processed, aggregateId: 'thing-1', causationId: null },
    ]);
    const recent = await runInMemory(mailroom, ['events', 'list', '--published', '--since', '2m', '--json']);
    expect(json(recent).events.map(({ eventId }: { eventId: string }) => eventId)).toEqual([rejected]);
  });

  test.each([
    [['--aggregate', 'thing-1'], ['processed']],
    [['--aggregate', 'thing'], []],
    [
      ['--type', 'ThingHappened'],
      ['rejected', 'processed'],
    ],
    [['--type', 'Thing'], []],
    [['--type', 'ThingHappened', '--aggregate', 'thing-2'], ['rejected']],
  ] as const)('selects with %j', async (options, expected) => {
    const mailroom = await withHistory();
    const run = await runInMemory(mailroom, ['events', 'list', '--published', ...options, '--json']);
    const ids = json(run).events.map(({ eventId }: { eventId: string }) => eventId);
    expect(ids).toEqual(expected.map((name) => mailroom.ids[name]));
  });

  test('stops at the limit, and says so', async () => {
    const mailroom = await withHistory();
    const text = await runInMemory(mailroom, ['events', 'list', '--published', '--limit', '1']);
    expect(text.out).toContain(mailroom.ids.rejected);
    expect(text.out).not.toContain(mailroom.ids.processed);
    const csv = await runInMemory(mailroom, [
      'events',
      'list',
      '--published',
      '--limit',
      '1',
      '--format',
      'csv',
    ]);
    expect(csv.out.trim().split('\n')).toEqual([
      'eventId,type,source,aggregateType,aggregateId,correlationId,causationId,occurredAt,publishedAt,publishedBy',
      expect.stringContaining(`${mailroom.ids.rejected},ThingHappened,things,Thing,thing-2,`),
    ]);
  });

  test('refuses options that select nothing else', async () => {
    const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
    for (const options of [
      ['--type', 'ThingHappened'],
      ['--published', '--dead'],
    ])
      expect((await runInMemory(mailroom, ['events', 'list', ...options])).code).toBe(2);
  });
});

describe('events republish', () => {
  test('plans what each consumer would do, and changes nothing', async () => {
    const mailroom = await withHistory();
    const { processed, rejected } = mailroom.ids;
    const before = mailroom.memory.items();
    const plan = await runInMemory(mailroom, ['events', 'republish', processed]);
    expect(plan.code).toBe(0);
    expect(plan.out).toContain(`events republish ${processed} --apply --reason '…'`);
    const again = await runInMemory(mailroom, ['events', 'republish', rejected, '--json']);
    expect(json(again)).toMatchObject({ applied: false, consumers: { worker: 'rejected' } });
    expect(mailroom.memory.items()).toEqual(before);
    expect(mailroom.publishedIds()).toHaveLength(2);
  });

  test('publishes the event under its id, which its consumer absorbs, and records who did it', async () => {
    const mailroom = await withHistory();
    const { processed } = mailroom.ids;
    const calls = [...mailroom.calls];
    const run = await runInMemory(mailroom, ['events', 'republish', processed, ...REASON]);
    expect(run.code, run.err).toBe(0);
    expect(mailroom.publishedIds().filter((id) => id === processed)).toHaveLength(2);
    await mailroom.drain();
    expect(mailroom.calls).toEqual(calls);
    expect(mailroom.memory.item(outboxKeyOf(processed))).toMatchObject({
      status: 'PUBLISHED',
      resentAt: expect.any(Number),
    });
    const log = await runInMemory(mailroom, ['operations', '--json']);
    expect(json(log).operations).toMatchObject([
      {
        command: 'events republish',
        subject: processed,
        reason: 'the warehouse lost it',
        by: expect.stringContaining('ada'),
      },
    ]);
  });

  test('runs at a consumer that has no row of it', async () => {
    const mailroom = await withHistory();
    const { processed } = mailroom.ids;
    await mailroom.memory.write({ Delete: { Key: { ...inboxKey('worker', processed) } } });
    const plan = await runInMemory(mailroom, ['events', 'republish', processed, '--json']);
    expect(Object.keys(json(plan).consumers)).toEqual(['worker']);
    await runInMemory(mailroom, ['events', 'republish', processed, ...REASON]);
    const calls = mailroom.calls.length;
    await mailroom.drain();
    expect(mailroom.calls).toHaveLength(calls + 1);
  });

  test.each<
    [string, (mailroom: Awaited<ReturnType<typeof withHistory>>) => Promise<string> | string, number, RegExp]
  >([
    ['a pending event', ({ ids }) => ids.pending, 2, /NOT_PUBLISHED: .* is PENDING/],
    ['an unknown id', () => '01a1fba6-4458-7a41-9c37-3f5d2b8e1103', 3, /NO_SUCH_EVENT/],
    ['a text that is not an id', () => 'thing-1', 3, /NO_SUCH_EVENT/],
    [
      'a DEAD event',
      async ({ ids, memory }) => {
        const key = outboxKeyOf(ids.processed);
        const set = { status: 'DEAD', lastError: 'refused', fingerprint: 'f', deadAt: 1 };
        await memory.updateEach([{ key, set, when: {} }]);
        return ids.processed;
      },
      2,
      /NOT_PUBLISHED: .* is DEAD.*dlq redrive dead/,
    ],
    [
      'an unreadable row',
      async ({ ids, memory }) => {
        await memory.updateEach([{ key: outboxKeyOf(ids.processed), set: { schema: 99 }, when: {} }]);
        return ids.processed;
      },
      2,
      /UNREADABLE_ROW/,
    ],
  ])('refuses %s, records nothing and publishes nothing', async (_what, prepare, code, message) => {
    const mailroom = await withHistory();
    const id = await prepare(mailroom);
    const run = await runInMemory(mailroom, ['events', 'republish', id, ...REASON]);
    expect([run.code, unwrapped(run.err)]).toEqual([code, expect.stringMatching(message)]);
    expect(mailroom.publishedIds()).toHaveLength(2);
    expect(mailroom.memory.items().some(({ PK }) => String(PK).startsWith('OPERATIONS#'))).toBe(false);
  });

  test('refuses while the bus does not exist, because EventBridge would drop the event', async () => {
    const mailroom = await withHistory();
    const deployed = resourcesInMemory(mailroom.directory);
    deployed.buses.clear();
    const run = await runInMemory({ ...mailroom, deployed }, [
      'events',
      'republish',
      mailroom.ids.processed,
      ...REASON,
    ]);
    expect([run.code, unwrapped(run.err)]).toEqual([2, expect.stringMatching(/NO_BUS/)]);
    expect(mailroom.publishedIds()).toHaveLength(2);
  });

  test('names a sweep that was built before it could do this, and a bus that refuses the event', async () => {
    const mailroom = await withHistory();
    const { processed } = mailroom.ids;
    const old = { ...mailroom, invokeSweep: async () => ({ published: 0 }) as never };
    const run = await runInMemory(old, ['events', 'republish', processed, ...REASON]);
    expect([run.code, unwrapped(run.err)]).toEqual([2, expect.stringMatching(/OLD_RELAY: .*sweep-function/)]);
    const refusal = { code: 'ThrottlingException', message: 'slow down' };
    const refusing = { ...mailroom, invokeSweep: async () => ({ republish: processed, refusal }) as never };
    const refused = await runInMemory(refusing, ['events', 'republish', processed, ...REASON]);
    expect(unwrapped(refused.err)).toMatch(/NOT_REPUBLISHED: .*ThrottlingException/);
  });
});
