import { expect, test } from 'vitest';
import { OTHER_FAILURES_MAX, type RedriveProgress } from '../../../cli/changes/redrive/redrive-run.ts';
import { type Redriven, redriveInSteps } from '../../../cli/changes/redrive/redrive-steps.ts';
import type { DeadLetter } from '../../../cli/reports/dead-letters/dead-letters.ts';
import type { RedrivePlace } from '../../../cli/reports/dead-letters/redrive-order.ts';
import { manualClock } from '../../../testing/index.ts';
import { runThrough } from '../../support/runtime-rig.ts';

const DONE: RedriveProgress = { state: 'done' };

/** Dead letters `<cause>-<n>`, and the result of each, after its first look. */
function redriving(
  ids: readonly string[],
  resultOf: (id: string) => RedriveProgress | 'throws' | 'never',
  options: { readonly keepGoing?: boolean; readonly stopAt?: number } = {},
) {
  const clock = manualClock();
  const stop = new AbortController();
  const sent: string[] = [];
  const told: string[] = [];
  const letters = ids.map(letterOf);
  const run = redriveInSteps(
    { clock, signal: stop.signal, progress: () => {}, say: (line) => told.push(line) },
    letters,
    {
      resend: async ({ id }) => {
        if (resultOf(id) === 'throws') throw Object.assign(new Error(id), { name: 'Throttled' });
        sent.push(id);
        if (sent.length === options.stopAt) stop.abort();
      },
      look: async ({ id }) => {
        const result = resultOf(id);
        return typeof result === 'string' ? { state: 'waiting' } : result;
      },
    },
    { ratePerS: 10, waitMs: 5_000, keepGoing: options.keepGoing },
  );
  return { clock, sent, told, redriven: () => runThrough(clock, run) };
}

/** `<cause>-<n>`, or `<cause>-<aggregate>.<sequence>`, which has a number in an order. */
function letterOf(id: string): DeadLetter & { readonly place?: RedrivePlace } {
  const [cause = '', number = ''] = id.split('-');
  const [aggregateId = '', sequence] = number.split('.');
  const aggregate = { source: 's', aggregateType: 'T', aggregateId };
  return {
    id,
    eventId: id,
    type: 'T',
    sentAt: 0,
    expiresAt: 1,
    fingerprint: cause,
    lastError: cause,
    ...(sequence !== undefined && { place: { aggregate, sequence: Number(sequence), ahead: 0 } }),
  };
}

function many(cause: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${cause}-${n}`);
}

function again(fingerprint: string, sameCause = true): RedriveProgress {
  return { state: 'back', fingerprint, sameCause };
}

function numbers({ done, back, retrying = [], failed = [], waiting, untried }: Redriven) {
  const whys: Record<string, number> = {};
  for (const { deadLetter, why } of untried) {
    const key = `${deadLetter.fingerprint} ${why}`;
    whys[key] = (whys[key] ?? 0) + 1;
  }
  return {
    done: done.length,
    failed: back.length + retrying.length + failed.length,
    waiting: waiting.length,
    untried: whys,
  };
}

test('208 dead letters of four causes, two of them fixed: one redrive processes what can run, and tries one each of the others', async () => {
  const ids = [...many('A', 100), ...many('B', 60), ...many('C', 40), ...many('D', 8)];
  const { redriven, sent, told } = redriving(ids, (id) => (/^[AC]/.test(id) ? DONE : again(id.slice(0, 1))));
  expect(numbers(await redriven())).toEqual({
    done: 140,
    failed: 2,
    waiting: 0,
    untried: { 'B failed-again': 59, 'D failed-again': 7 },
  });
  expect(sent.slice(0, 4)).toEqual(['A-0', 'B-0', 'C-0', 'D-0']);
  expect(told).toEqual([
    'Not tried: 59 dead letters of B: it failed again.',
    'Not tried: 7 dead letters of D: it failed again.',
  ]);
});

test('148 dead letters of a fixed cause, of which the oldest 15 have an unknown customer: the others are processed', async () => {
  const { redriven } = redriving(many('A', 148), (id) =>
    Number(id.slice(2)) < 15 ? again('UnknownCustomer', false) : DONE,
  );
  expect(numbers(await redriven())).toEqual({ done: 133, failed: 15, waiting: 0, untried: {} });
});

test('a failure with another cause leaves out the dead letters of that cause', async () => {
  const ids = [...many('A', 30), ...many('B', 12)];
  const { redriven, sent } = redriving(ids, (id) => {
    if (id === 'A-0') return again('B', false);
    return id.startsWith('A') ? DONE : { state: 'waiting' };
  });
  expect(numbers(await redriven())).toMatchObject({ done: 29, untried: { 'B failed-again': 11 } });
  expect(sent.filter((id) => id.startsWith('B'))).toEqual(['B-0']);
});

test('a failure with another cause does not leave out a cause of which one was processed', async () => {
  const ids = [...many('A', 30), ...many('B', 30)];
  const { redriven } = redriving(ids, (id) => (id === 'A-5' ? again('B', false) : DONE));
  expect(numbers(await redriven())).toEqual({ done: 59, failed: 1, waiting: 0, untried: {} });
});

test.each([
  ['rejected', again('TypeError', false)],
  ['tried again', { state: 'retrying', fingerprint: 'TypeError' } as const],
  ['not sent', 'throws' as const],
])('a deployment in which every message is %s stops after the most failures', async (_, result) => {
  const { redriven, sent, told } = redriving(many('A', 200), (id) => (id === 'A-3' ? DONE : result));
  const { done, failed, untried } = numbers(await redriven());
  expect({ done, failed, untried }).toEqual({
    done: 1,
    failed: OTHER_FAILURES_MAX,
    untried: { 'A too-many-failures': 200 - OTHER_FAILURES_MAX - 1 },
  });
  expect(sent.length).toBeLessThanOrEqual(OTHER_FAILURES_MAX + 1);
  expect(told).toEqual([
    `Not tried: ${200 - OTHER_FAILURES_MAX - 1} dead letters of A: too many failed with other causes.`,
  ]);
});

test('messages that fail slowly are not all at risk: only as many are in the queue as may fail', async () => {
  const looks = new Map<string, number>();
  const { redriven, sent } = redriving(many('A', 200), (id) => {
    looks.set(id, (looks.get(id) ?? 0) + 1);
    return (looks.get(id) ?? 0) > 4 ? again('TypeError', false) : { state: 'waiting' };
  });
  expect(numbers(await redriven())).toMatchObject({ done: 0, failed: OTHER_FAILURES_MAX });
  expect(sent).toHaveLength(OTHER_FAILURES_MAX);
});

test('many causes that all fail with another cause stop together', async () => {
  const ids = Array.from({ length: 60 }, (_, n) => many(`cause${n}`, 2)).flat();
  const { redriven } = redriving(ids, () => again('TypeError', false));
  const { failed, untried } = numbers(await redriven());
  expect(failed).toBe(OTHER_FAILURES_MAX);
  expect(Object.values(untried).reduce((sum, count) => sum + count, 0)).toBe(120 - OTHER_FAILURES_MAX);
});

test('a cause without results is left out, and the others go on', async () => {
  const ids = [...many('A', 30), ...many('B', 30)];
  const { redriven, sent } = redriving(ids, (id) => (id.startsWith('A') ? DONE : 'never'));
  expect(numbers(await redriven())).toEqual({
    done: 30,
    failed: 0,
    waiting: 1,
    untried: { 'B no-result': 29 },
  });
  expect(sent.filter((id) => id.startsWith('B'))).toEqual(['B-0']);
});

test('--keep-going tries every dead letter once, whatever fails', async () => {
  const ids = [...many('A', 60), ...many('B', 60), ...many('C', 15)];
  const { redriven, sent, told } = redriving(
    ids,
    (id) => (id.startsWith('A') ? again('A') : id.startsWith('B') ? again('TypeError', false) : 'never'),
    { keepGoing: true },
  );
  expect(numbers(await redriven())).toEqual({ done: 0, failed: 120, waiting: 15, untried: {} });
  expect(sent.toSorted()).toEqual(ids.toSorted());
  expect(told).toEqual([]);
});

test.each([false, true])(
  'an event behind one that failed again is not tried, and others are (keepGoing: %s)',
  async (keepGoing) => {
    const ids = ['A-x.1', 'Gap-x.2', 'Gap-x.3', 'A-y.1', 'Gap-y.2', 'Gap-y.3'];
    const result = (id: string) => (id === 'A-x.1' ? again('B', false) : id === 'Gap-x.2' ? 'never' : DONE);
    const { redriven, sent } = redriving(ids, result, { keepGoing });
    const made = await redriven();
    expect(made.done.map(({ id }) => id)).toEqual(['A-y.1', 'Gap-y.2', 'Gap-y.3']);
    expect(made.untried).toMatchObject([{ deadLetter: { id: 'Gap-x.3' }, why: 'predecessor' }]);
    expect(sent.indexOf('A-y.1')).toBeLessThan(sent.indexOf('Gap-y.2'));
    expect(sent.indexOf('Gap-y.2')).toBeLessThan(sent.indexOf('Gap-y.3'));
  },
);

test('Ctrl-C sends nothing more, and reports what was redriven', async () => {
  const ids = [...many('A', 30), ...many('B', 30)];
  const { redriven, sent } = redriving(ids, (id) => (id.startsWith('A') ? DONE : again('B')), { stopAt: 6 });
  const made = await redriven();
  expect(sent).toHaveLength(6);
  expect(numbers(made)).toEqual({
    done: 5,
    failed: 1,
    waiting: 0,
    untried: { 'A stopped': 25, 'B failed-again': 29 },
  });
});

test('one that failed again and is processed meanwhile counts as processed, and its cause goes on', async () => {
  const looks = new Map<string, number>();
  const { redriven } = redriving([...many('A', 12), ...many('B', 12)], (id) => {
    const look = (looks.get(id) ?? 0) + 1;
    looks.set(id, look);
    return id === 'A-0' && look < 3 ? again('A') : DONE;
  });
  expect(numbers(await redriven())).toMatchObject({ done: 24, failed: 0, untried: {} });
});
