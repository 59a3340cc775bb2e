import { expect, test } from 'vitest';
import { epochMs } from '../../../../lambdas/runtime/base/epoch-time.ts';

const NEW_YEAR = Date.UTC(2026, 0, 1);

test.each([
  ['seconds', NEW_YEAR / 1_000],
  ['seconds with a fraction', NEW_YEAR / 1_000 + 0.0004],
  ['milliseconds', NEW_YEAR],
  ['microseconds', NEW_YEAR * 1_000],
  ['nanoseconds', NEW_YEAR * 1e6],
  ['text', '2026-01-01T00:00:00Z'],
])('%s are read as the same time', (_unit, value) => {
  expect(epochMs(value)).toBe(NEW_YEAR);
});

test.each([
  [1e11 - 1, 1e14 - 1_000],
  [1e11, 1e11],
  [1e14 - 1, 1e14 - 1],
  [1e14, 1e11],
  [1e17 - 16, 1e14 - 1],
  [1e17, 1e11],
  [0, 0],
])('the number %d, at the edge of a unit, is the time %d', (value, ms) => {
  expect(epochMs(value)).toBe(ms);
});

test.each([
  -1,
  -0.5,
  Number.NaN,
  1e20,
  Number.POSITIVE_INFINITY,
  '',
  '1767225600',
  null,
  undefined,
  {},
  true,
])('%j is not a time', (value) => {
  expect(epochMs(value)).toBeUndefined();
});
