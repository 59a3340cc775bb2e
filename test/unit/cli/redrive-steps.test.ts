import { describe, expect, test } from 'vitest';
import type { RedriveProgress } from '../../../cli/changes/redrive/redrive-run.ts';
import { redriveInSteps } from '../../../cli/changes/redrive/redrive-steps.ts';
import { queueRedriver, redriverOf } from '../../../cli/changes/redrive/redrivers.ts';
import type { DeadLetter, DeadLetterSource } from '../../../cli/reports/dead-letters/dead-letters.ts';
import { fingerprint } from '../../../lambdas/runtime/base/fingerprint.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { manualClock, memoryTable } from '../../../testing/index.ts';
import { runThrough } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';

const BANK_ERROR = Object.assign(new Error('The bank answered 500'), { name: 'BankError' });
/** As a consumer stores it, of a failed attempt and of the rejection after the last one. */
const CAUSE = `payments ${fingerprint(BANK_ERROR)}`;

const source = {
  name: 'consumer:payments',
  kind: 'consumer',
  url: 'dead-letters',
  consumer: { name: 'payments', queue: 'source' } as ConsumerEntry,
} satisfies DeadLetterSource;

/** What the consumer makes of a message that is redelivered, and then of it again; each after some time. */
type Reaction = readonly (Partial<InboxRow> & { readonly afterMs?: number })[];

/** Dead letters of rejected messages in a dead-letter queue, and a consumer that reacts to what is sent to it. */
function scene(count: number, reaction: (nth: number) => Reaction) {
  const clock = manualClock();
  const memory = memoryTable({ clock });
  const calls: string[] = [];
  const sentAt: number[] = [];
  const queues: Pick<Queues, 'send' | 'remove'> = {
    send: async (_url, eventId) => {
      calls.push(`send ${eventId}`);
      for (const [i, { afterMs = 0, ...row }] of reaction(sentAt.push(clock.now())).entries()) {
        const write = () => put(eventId, { fence: `claim ${i}`, ...row });
        if (afterMs === 0) await write();
        else void clock.sleep(afterMs).then(write);
      }
      return 'a new id';
    },
    remove: async (_url, { body }) => {
      calls.push(`remove ${body}`);
    },
  };
  const put = (eventId: string, row: Partial<InboxRow>) =>
    memory.write({ Put: { Item: { ...inboxKey('payments', eventId), ...row } } });
  const deadLetters = Array.from({ length: count }, (_, i): DeadLetter => {
    const eventId = mintEventId(clock.now() + i, 8);
    const row = { status: 'REJECTED', fence: 'before', fingerprint: CAUSE } as InboxRow;
    const received = { messageId: `m${i}`, receiptHandle: 'r', body: eventId, sentAt: 0, attributes: {} };
    return {
      id: `m${i}`,
      eventId,
      type: 'OrderPlaced',
      sentAt: 0,
      expiresAt: 1,
      fingerprint: CAUSE,
      lastError: undefined,
      received,
      row,
    };
  });
  const stop = new AbortController();
  const said: string[] = [];
  const told: string[] = [];
  const redrive = async () => {
    for (const { eventId = '', row } of deadLetters) await put(eventId, { ...row });
    return runThrough(
      clock,
      redriveInSteps(
        { clock, signal: stop.signal, progress: (line) => said.push(line), say: (line) => told.push(line) },
        deadLetters,
        queueRedriver(withStored({ table: memory, queues: queues as Queues }), source, NOTE),
        { ratePerS: 10, waitMs: 60_000 },
      ),
    );
  };
  return { clock, memory, deadLetters, calls, sentAt, put, redrive, stop, said, told };
}

const NOTE = { by: 'ada', reason: 'fixed' };

const PROCESSED: Reaction = [{ status: 'PROCESSED' }];

test('a dead letter without an inbox row is marked as sent again on its outbox row, before it is', async () => {
  const { deadLetters, memory } = scene(3, () => PROCESSED);
  const [unknown, rejected, expired] = deadLetters.map((deadLetter, i) =>
    i === 1 ? deadLetter : { ...deadLetter, row: undefined },
  );
  const rowOf = ({ eventId = '' }: DeadLetter) => memory.item(outboxKeyOf(eventId));
  for (const { eventId = '' } of deadLetters.slice(0, 2))
    await memory.write({ Put: { Item: { ...outboxKeyOf(eventId), status: 'PUBLISHED' } } });
  const marked: unknown[] = [];
  const send = async (_url: string, eventId: string) => {
    marked.push(memory.item(outboxKeyOf(eventId))?.resentAt);
    return 'a new id';
  };
  const queues = { send, remove: async () => {} } as Partial<Queues> as Queues;
  const { resend } = queueRedriver(withStored({ table: memory, queues }), source, NOTE);
  for (const deadLetter of [unknown, rejected, expired])
    if (deadLetter !== undefined) await resend(deadLetter);
  expect(marked).toEqual([expect.any(Number), undefined, undefined]);
  expect(deadLetters.map(rowOf).map((row) => row?.status)).toEqual(['PUBLISHED', 'PUBLISHED', undefined]);
});

test.each([
  ['failed with the same cause', { status: 'FAILED', fingerprint: CAUSE, attempts: 1 }, 'back', false],
  ['failed with another cause', { status: 'FAILED', fingerprint: 'other', attempts: 1 }, 'retrying', false],
  ['was rejected again', { status: 'REJECTED', fingerprint: CAUSE }, 'back', true],
] as const)(
  'of an ordered message that %s, the dead letter is deleted only if no attempt follows',
  async (_, row, state, isDeleted) => {
    const { deadLetters, memory, put, calls } = scene(1, () => PROCESSED);
    const [letter] = deadLetters;
    if (letter === undefined) throw new Error('No dead letter');
    await put(letter.eventId ?? '', { ...row, fence: 'after' });
    const queues = { remove: async () => void calls.push('remove') } as Partial<Queues> as Queues;
    const { look } = queueRedriver(withStored({ table: memory, queues }), source, NOTE);
    expect(await look({ ...letter, isOrdered: true })).toMatchObject({ state });
    expect(calls).toEqual(isDeleted ? ['remove'] : []);
  },
);

describe('a redrive', () => {
  test('sends 1, then 10, then the rest, each step when the one before is processed', async () => {
    const slow: Reaction = [{ status: 'PROCESSED', afterMs: 5_000 }];
    const { deadLetters, redrive, sentAt } = scene(30, () => slow);
    expect(await redrive()).toEqual({
      done: deadLetters,
      handled: [],
      superseded: [],
      back: [],
      retrying: [],
      failed: [],
      waiting: [],
      untried: [],
    });
    const [first = 0, second = 0] = sentAt;
    const [last = 0, third = 0] = sentAt.slice(10);
    expect(second - first).toBeGreaterThanOrEqual(5_000);
    expect(last - second).toBeLessThan(5_000);
    expect(third - last).toBeGreaterThanOrEqual(5_000);
    expect((sentAt[29] ?? 0) - third).toBeLessThan(5_000);
  });

  test.each([
    [30, ['Step 1 of 3: 1 of 1 redriven', 'Step 2 of 3: 7 of 10 redriven', 'Step 3 of 3: 19 of 19 redriven']],
    [11, ['Step 2 of 2: 10 of 10 redriven']],
    [1, ['Step 1 of 1: 1 of 1 redriven']],
  ])('a redrive of %d messages reports its progress by step', async (count, lines) => {
    const { redrive, said } = scene(count, () => PROCESSED);
    await redrive();
    expect(said).toEqual(expect.arrayContaining(lines));
  });

  test('looks again after a look that has failed, and reports what is not done in time', async () => {
    const { clock, deadLetters } = scene(2, () => PROCESSED);
    const [first, second] = deadLetters;
    let looks = 0;
    const look = async (deadLetter: DeadLetter): Promise<RedriveProgress> => {
      looks += 1;
      if (deadLetter === second || looks === 1) throw new Error('Rate exceeded');
      return { state: 'done' };
    };
    const redriven = await runThrough(
      clock,
      redriveInSteps(
        { clock, signal: new AbortController().signal, progress: () => {}, say: () => {} },
        deadLetters,
        { resend: async () => {}, look },
        { ratePerS: 10, waitMs: 5_000 },
      ),
    );
    expect(redriven).toMatchObject({ done: [first], waiting: [second] });
  });

  test('sends a dead letter before it deletes it, one at a time, at the rate', async () => {
    const { deadLetters, redrive, calls, sentAt } = scene(30, () => PROCESSED);
    await redrive();
    expect(calls).toEqual(deadLetters.flatMap(({ eventId }) => [`send ${eventId}`, `remove ${eventId}`]));
    const third = sentAt.slice(11);
    expect(third.map((at) => at - (third[0] ?? 0))).toEqual(third.map((_, i) => i * 100));
  });

  test.each([
    ['is rejected again', { status: 'REJECTED', fingerprint: CAUSE }, CAUSE, true],
    [
      'fails its first attempt with the same cause',
      { status: 'FAILED', fingerprint: CAUSE, attempts: 1 },
      CAUSE,
      true,
    ],
  ] as const)('leaves out the others of a cause when one %s', async (_, row, fingerprint, sameCause) => {
    const { deadLetters, redrive, calls, told } = scene(30, (nth) => (nth === 5 ? [row] : PROCESSED));
    const { done, back, waiting, untried } = await redrive();
    expect(back).toMatchObject([{ deadLetter: deadLetters[4], fingerprint, sameCause }]);
    expect(done).toHaveLength(10);
    expect(waiting).toEqual([]);
    expect(untried).toEqual(deadLetters.slice(11).map((deadLetter) => ({ deadLetter, why: 'failed-again' })));
    expect(calls).toHaveLength(22);
    expect(told).toEqual([`Not tried: 19 dead letters of ${CAUSE}: it failed again.`]);
  });

  test.each([
    [
      'for a cause that begins with the same words',
      { status: 'REJECTED', fingerprint: `${CAUSE}, again` },
      `${CAUSE}, again`,
    ],
    ['without a known cause', { status: 'REJECTED' }, 'unknown'],
    [
      'for another reason',
      { status: 'REJECTED', fingerprint: 'payments INVALID_PAYLOAD: data' },
      'payments INVALID_PAYLOAD: data',
    ],
  ] as const)('goes on past one that is rejected %s', async (_, row, fingerprint) => {
    const { deadLetters, redrive, told } = scene(30, (nth) => (nth === 1 ? [row] : PROCESSED));
    const { done, back, waiting, untried } = await redrive();
    expect(back).toMatchObject([{ deadLetter: deadLetters[0], fingerprint, sameCause: false }]);
    expect(done).toEqual(deadLetters.slice(1));
    expect([waiting, untried, told]).toEqual([[], [], []]);
  });

  test('goes on past one that failed with another cause and is tried again, when nothing has changed for long', async () => {
    const slow = { status: 'FAILED', fingerprint: 'payments TimeoutError: slow', attempts: 1 } as const;
    const { redrive, deadLetters, clock } = scene(30, (nth) => (nth === 1 ? [slow] : PROCESSED));
    const startedAt = clock.now();
    const { done, retrying, untried } = await redrive();
    expect(retrying).toMatchObject([{ deadLetter: deadLetters[0], fingerprint: slow.fingerprint }]);
    expect(done).toEqual(deadLetters.slice(1));
    expect(untried).toEqual([]);
    expect(clock.now() - startedAt).toBeLessThan(70_000);
  });

  test('does not treat the failure that caused a dead letter as a new one', async () => {
    const { redrive, deadLetters } = scene(1, () => [{ status: 'PROCESSED', afterMs: 10_000 }]);
    expect((await redrive()).done).toEqual(deadLetters);
  });

  test('keeps waiting after a failure with another cause, which the next attempt may resolve', async () => {
    const { redrive, deadLetters, sentAt } = scene(2, (nth) =>
      nth > 1
        ? PROCESSED
        : [
            { status: 'FAILED', fingerprint: 'payments TimeoutError: slow', attempts: 1 },
            { status: 'PROCESSED', afterMs: 30_000 },
          ],
    );
    expect((await redrive()).done).toEqual(deadLetters);
    expect((sentAt[1] ?? 0) - (sentAt[0] ?? 0)).toBeGreaterThanOrEqual(30_000);
  });

  test('keeps waiting after an attempt that is not counted, because it waited for an effect of the last one', async () => {
    const { redrive, deadLetters } = scene(1, () => [
      { status: 'FAILED', fingerprint: CAUSE, attempts: 0 },
      { status: 'PROCESSED', afterMs: 30_000 },
    ]);
    expect((await redrive()).done).toEqual(deadLetters);
  });

  test('stops when nothing was processed for as long as it may wait', async () => {
    const { deadLetters, redrive, clock } = scene(30, (nth) => (nth === 3 ? [] : PROCESSED));
    const startedAt = clock.now();
    const { done, waiting, untried, back } = await redrive();
    expect(waiting).toEqual([deadLetters[2]]);
    expect(done).toHaveLength(10);
    expect(untried).toEqual(deadLetters.slice(11).map((deadLetter) => ({ deadLetter, why: 'no-result' })));
    expect(back).toEqual([]);
    expect(clock.now() - startedAt).toBeGreaterThanOrEqual(60_000);
  });

  test('sends nothing more after a request to stop', async () => {
    const { deadLetters, redrive, stop, calls } = scene(30, (nth) => {
      if (nth === 4) stop.abort();
      return PROCESSED;
    });
    const { done, untried } = await redrive();
    expect(calls).toHaveLength(8);
    expect(done).toEqual(deadLetters.slice(0, 4));
    expect(untried).toEqual(deadLetters.slice(4).map((deadLetter) => ({ deadLetter, why: 'stopped' })));
  });

  test('keeps a dead letter, and does not count it as done, if a resend has replaced its event meanwhile', async () => {
    const next = mintEventId(1, 8);
    const replaced = { status: 'DISCARDED', replacedBy: next } as const;
    const { deadLetters, redrive, calls } = scene(1, () => [replaced]);
    expect(await redrive()).toMatchObject({ done: [], superseded: [], back: [], waiting: deadLetters });
    expect(calls).toEqual([`send ${deadLetters[0]?.eventId}`]);
  });

  test('deletes a dead letter whose event was replaced by one that was received', async () => {
    const next = mintEventId(1, 8);
    const replaced = { status: 'DISCARDED', replacedBy: next } as const;
    const { deadLetters, redrive, put, calls } = scene(1, () => [replaced]);
    await put(next, { status: 'FAILED', fence: 'f' });
    expect(await redrive()).toMatchObject({ done: [], handled: deadLetters, waiting: [] });
    expect(calls).toHaveLength(2);
  });

  test('a redrive of no messages does nothing', async () => {
    expect(await scene(0, () => []).redrive()).toEqual({
      done: [],
      handled: [],
      superseded: [],
      back: [],
      retrying: [],
      failed: [],
      waiting: [],
      untried: [],
    });
  });
});

test.each([
  ['PUBLISHED', 'done'],
  ['DISCARDED', 'handled'],
] as const)('a DEAD event that is %s at a look is %s', async (status, state) => {
  const memory = memoryTable();
  const eventId = mintEventId(1, 8);
  const Key = outboxKeyOf(eventId);
  const row = {
    schema: 1,
    leaseUntil: 0,
    attempts: 1,
    source: 'orders',
    type: 'OrderPlaced',
    envelope: '{}',
  };
  await memory.write({ Put: { Item: { ...Key, ...row, status } } });
  const dead = { kind: 'dead', name: 'dead' } satisfies DeadLetterSource;
  const deps = { table: memory, queues: {} as Queues, sweep: () => Promise.reject(new Error('no sweep')) };
  const redriver = redriverOf(withStored(deps), dead, { by: 'ada', reason: 'the bus is back' });
  expect(await redriver.look({ id: eventId } as DeadLetter)).toEqual({ state });
});
