import { describe, expect, test } from 'vitest';
import { pastAttemptsOf, withAttempt } from '../../../../lambdas/runtime/inbox/past-attempts.ts';
import type { AttemptEnd } from '../../../../lambdas/runtime/store/inbox-row.ts';

const end = (attempt: number, more: Partial<AttemptEnd> = {}): AttemptEnd => ({
  at: attempt,
  attempt,
  ended: 'failed',
  ...more,
});
const attemptsOf = (past: readonly AttemptEnd[]) => past.map(({ attempt }) => attempt);

describe('the past attempts of a message', () => {
  test('are kept in order, the last 10 of them', () => {
    let past: AttemptEnd[] = [];
    for (let attempt = 1; attempt <= 12; attempt += 1) past = withAttempt(past, end(attempt));
    expect(attemptsOf(past)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  test('take at most 2 KB: the oldest go first, and of one that is too large its effects', () => {
    const effects = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`effect-${n}`, 'completed'] as const));
    const error = 'x'.repeat(500);
    let past: AttemptEnd[] = [];
    for (let attempt = 1; attempt <= 8; attempt += 1)
      past = withAttempt(past, end(attempt, { error, effects: effects(10) }));
    expect(Buffer.byteLength(JSON.stringify(past))).toBeLessThanOrEqual(2_048);
    expect(attemptsOf(past)).toEqual([5, 6, 7, 8]);
    expect(past.map((one) => one.error)).toEqual(Array(4).fill('x'.repeat(120)));
    expect(withAttempt(past, end(9, { effects: effects(200) }))).toEqual([end(9)]);
  });

  test.each([
    ['an attribute that is not a list', 'gone', []],
    ['no attribute', undefined, []],
    ['an attempt without a time', [{ attempt: 1, ended: 'failed' }, end(2)], [2]],
    ['an attempt that is not a map', [null, 'x', end(3)], [3]],
  ])('are read in spite of %s', (_what, stored, attempts) => {
    expect(attemptsOf(pastAttemptsOf(stored))).toEqual(attempts);
    expect(attemptsOf(withAttempt(stored, end(7)))).toEqual([...attempts, 7]);
  });
});
