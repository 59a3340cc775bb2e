import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { discardOne } from '../../../cli/changes/discard/discard-one.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { externalEvent } from '../../../lambdas/runtime/events/external-event.ts';
import { discardMessage, resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { externalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { APPLY, rejected, source } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

const refund = { Put: { Item: { PK: 'THING#1', SK: 'REFUND' } } };
const other = { Put: { Item: { PK: 'THING#1', SK: 'OTHER' } } };

async function file(fix: unknown): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'fix-')), 'fix.json');
  await writeFile(path, JSON.stringify(fix));
  return path;
}

/** A rejected message of a consumer that owns `THING#*`. */
async function rig(options: Parameters<typeof rejected>[0] = {}) {
  const made = await rejected(options);
  const consumers = made.directory.consumers.map((entry) => ({ ...entry, domainKeys: ['THING#*'] }));
  const mailroom = { ...made, directory: { ...made.directory, consumers } };
  const note = { consumer: worker.name, eventId: made.eventId, by: 'bo', reason: 'by phone' };
  const run = (...argv: string[]) => made.until(runInMemory(mailroom, argv));
  const json = async (...argv: string[]) => {
    const { code, out } = await run(...argv, '--json');
    return { code, ...JSON.parse(out) };
  };
  return {
    ...mailroom,
    run,
    note,
    json,
    text: async (...argv: string[]) => unwrapped((await run(...argv)).out),
    /** Runs a command whose function does its work, and whose answer is lost. */
    unanswered: async (...argv: string[]) => {
      const { invoke } = mailroom;
      mailroom.invoke = async (request) => {
        const answer = await invoke(request);
        if (Object(request).mailroomCheck) return answer;
        throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
      };
      expect((await run(...argv)).code).toBe(4);
      mailroom.invoke = invoke;
    },
    resolve: ['messages', 'resolve', 'worker', made.eventId],
    item: (SK: string) => made.memory.item({ PK: 'THING#1', SK }),
    operations: () => made.memory.items().filter(({ PK }) => String(PK).startsWith('OPERATIONS#')),
  };
}

describe('messages resolve --commit after a lost answer', () => {
  test('reports that its fix was committed', async () => {
    const { resolve, unanswered, json, text, item } = await rig();
    const commit = ['--commit', await file({ writes: [refund] })];
    await unanswered(...resolve, ...commit, ...APPLY);
    expect(item('REFUND')).toBeDefined();
    expect(await json(...resolve, ...commit, ...APPLY)).toMatchObject({
      code: 0,
      status: 'resolved',
      committed: true,
    });
    expect(await text(...resolve, ...commit, ...APPLY)).toContain('It committed 1 write and 0 events');
  });

  test('reports that its fix was not committed if the handler was first', async () => {
    const { resolve, json, run, item, memory, eventId, operations } = await rig();
    const key = inboxKey(worker.name, eventId);
    memory.write({ Put: { Item: { ...memory.item(key), ...key, status: 'PROCESSED', processedAt: 1 } } });
    const commit = ['--commit', await file({ writes: [refund] })];
    expect(await json(...resolve, ...commit, ...APPLY)).toMatchObject({
      code: 1,
      status: 'processed',
      committed: false,
    });
    expect(unwrapped((await run(...resolve, ...commit, ...APPLY)).out)).toContain(
      'was processed by its handler. The fix was not committed: 1 write',
    );
    expect(item('REFUND')).toBeUndefined();
    expect(operations()).toEqual([]);
  });

  test.each([
    ['resolved', resolveMessage],
    ['discarded', discardMessage],
  ] as const)(
    'reports that its fix was not committed if the message was %s by another operator',
    async (status, decide) => {
      const { resolve, json, text, note, table, clock } = await rig();
      await decide({ table, clock }, note);
      const commit = ['--commit', await file({ writes: [refund] })];
      expect(await json(...resolve, ...commit, ...APPLY)).toMatchObject({
        code: 1,
        status,
        committed: false,
      });
      expect(await text(...resolve, ...commit, ...APPLY)).toContain(
        `was ${status} before by bo (by phone). The fix was not committed`,
      );
    },
  );

  test('does not take the fix of another run for its own', async () => {
    const { resolve, json, item } = await rig();
    expect(await json(...resolve, '--commit', await file({ writes: [refund] }), ...APPLY)).toMatchObject({
      committed: true,
    });
    expect(await json(...resolve, '--commit', await file({ writes: [other] }), ...APPLY)).toMatchObject({
      code: 1,
      status: 'resolved',
      committed: false,
    });
    expect(item('OTHER')).toBeUndefined();
  });

  test('asks nothing in a plan, and says how to find out', async () => {
    const { resolve, json, text, note, table, clock } = await rig();
    await resolveMessage({ table, clock }, note);
    const commit = ['--commit', await file({ writes: [refund] })];
    expect(await text(...resolve, ...commit)).toContain(
      'With --apply, the command reports whether this fix was committed, and changes nothing.',
    );
    expect(await json(...resolve, ...commit)).not.toHaveProperty('committed');
  });
});

test('messages resolve without a fix tells the handler from an operator who was first', async () => {
  const { resolve, json, text, note, table, clock } = await rig();
  await resolveMessage({ table, clock }, note);
  expect(await json(...resolve, ...APPLY)).toMatchObject({ code: 0, status: 'resolved' });
  expect(await text(...resolve)).toContain('was resolved before by bo (by phone).');
});

describe('dlq discard --reject after a lost answer', () => {
  const options = { rejected: async () => ({ writes: [refund] }) };

  test('reports that the rejected function has committed', async () => {
    const { unanswered, json, letterId, letters, item } = await rig({ options });
    const discarding = ['dlq', 'discard', source, letterId, '--reject', ...APPLY];
    await unanswered(...discarding);
    expect(item('REFUND')).toBeDefined();
    expect(await json(...discarding)).toMatchObject({ code: 0, deadLetters: [{ outcome: 'rejected' }] });
    expect(await letters()).toEqual([]);
  });

  test('reports that it committed nothing if the message was discarded without it', async () => {
    const { json, note, table, clock, letterId, letters } = await rig({ options });
    await discardMessage({ table, clock }, note);
    const { deadLetters } = await json('dlq', 'discard', source, letterId, '--reject', ...APPLY);
    expect(deadLetters).toMatchObject([
      {
        outcome: 'handled',
        message: 'It was discarded before by bo (by phone). Its rejected function committed nothing.',
      },
    ]);
    expect(await letters()).toEqual([]);
  });
});

test('a repeated discard of a DEAD event reports the discard that was made', async () => {
  const mailroom = operatingMailroom([leased(ThingHappened, async () => {})]);
  const [event] = await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
  const id = event?.eventId ?? '';
  const [row] = mailroom.rows();
  mailroom.memory.write({ Put: { Item: { ...row, status: 'DEAD', deadAt: 1 } as never } });
  const dead = { name: 'dead', kind: 'dead' } as const;
  const letter = {
    id,
    eventId: id,
    type: undefined,
    sentAt: 1,
    expiresAt: undefined,
    fingerprint: '',
    lastError: '',
  };
  const note = { by: 'bo', reason: 'by phone' };
  expect(await discardOne(withStored(mailroom), dead, letter, note)).toEqual({ outcome: 'discarded' });
  expect(await discardOne(withStored(mailroom), dead, letter, note)).toEqual({ outcome: 'discarded' });
});

describe('messages resolve --commit of a message without an event of the outbox', () => {
  const Charged = externalEvent({
    source: 'stripe',
    type: 'charge.succeeded',
    id: 'id',
    schema: z.object({ id: z.string() }),
  });

  /** A consumer that failed an external event and cannot read another one. */
  async function external() {
    const made = mailroomInMemory([
      leased(Charged, async () => {
        throw new Error('down');
      }),
    ]);
    made.queue.send({ id: 'evt_1' });
    const unreadable = made.queue.send({ ID: 'evt_2' });
    await made.drain();
    const consumers = [{ ...worker, domainKeys: ['THING#*'], events: [ThingHappened, Charged] }];
    const mailroom = { ...made, directory: { ...directory, consumers } };
    const recorded = () => made.memory.items().filter(({ PK }) => String(PK).startsWith('OPERATIONS#'));
    const run = async (...argv: string[]) => runInMemory(mailroom, argv);
    return { ...mailroom, run, recorded, externalId: externalEventId(Charged, ['evt_1']), unreadable };
  }

  test('commits the fix of an external event, whose new events continue its chain', async () => {
    const { run, externalId, memory, rows } = await external();
    const event = { type: 'Refunded', aggregateType: 'Thing', aggregateId: '1', data: {} };
    const path = await file({ writes: [refund], events: [event] });
    const { code, err } = await run('messages', 'resolve', 'worker', externalId, '--commit', path, ...APPLY);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(memory.item({ PK: 'THING#1', SK: 'REFUND' })).toBeDefined();
    expect(JSON.parse(rows()[0]?.envelope ?? '')).toMatchObject({
      causationId: externalId,
      correlationId: externalId,
    });
  });

  test('commits the fix of an unreadable message', async () => {
    const { run, memory } = await external();
    const [{ SK: id } = { SK: '' }] = memory
      .items()
      .filter(({ PK, SK }) => PK === 'REJECTED#worker' && String(SK).startsWith('unreadable-'));
    const path = await file({ writes: [refund] });
    const { code } = await run('messages', 'resolve', 'worker', String(id), '--commit', path, ...APPLY);
    expect(code).toBe(0);
    expect(memory.item({ PK: 'THING#1', SK: 'REFUND' })).toBeDefined();
  });

  test.each([
    [
      'an event with a version that is not a number',
      { events: [{ type: 'A', version: 'x', aggregateType: 'T', aggregateId: '1', data: 1 }] },
      'events[0].version must be a whole number from 1',
    ],
    [
      'an event with an unknown member',
      { events: [{ type: 'A', aggregateType: 'T', aggregateId: '1', data: 1, to: 'x' }] },
      'events[0].to is unknown',
    ],
    [
      'an event whose version no definition can have',
      { events: [{ type: 'A', version: 0, aggregateType: 'T', aggregateId: '1', data: 1 }] },
      'BAD_EVENT_DEFINITION',
    ],
  ])('refuses %s before it records the decision', async (_what, fix, message) => {
    const { run, externalId, recorded } = await external();
    const argv = ['messages', 'resolve', 'worker', externalId, '--commit', await file(fix), ...APPLY];
    const { code, err } = await run(...argv);
    expect(code).toBe(2);
    expect(unwrapped(err)).toContain(message);
    expect(recorded()).toEqual([]);
  });
});
