import { expect, test } from 'vitest';
import { timeArgument, windowOf } from '../../../cli/terminal/window.ts';
import { HOUR_MS } from '../../../lambdas/runtime/base/units.ts';

/** A time of the machine's zone, of 22 November 2026. */
const local = (hours: number, minutes: number, day = 22) => new Date(2026, 10, day, hours, minutes).getTime();

test.each([
  ['14:00', local(15, 30), local(14, 0)],
  ['14:00', local(13, 59), local(14, 0, 21)],
  ['9:05', local(9, 5), local(9, 5)],
  ['2026-11-20T14:00Z', local(15, 30), Date.UTC(2026, 10, 20, 14)],
  ['2026-11-20 14:00', local(15, 30), local(14, 0, 20)],
])('--at %s means the last such time', (text, now, expected) => {
  expect(timeArgument(text)(now)).toBe(expected);
});

test.each(['24:00', '14', '14:60', 'yesterday', '2026-11-20', '2026-99-99T14:00'])(
  '--at %s is refused',
  (text) => {
    expect(() => timeArgument(text)).toThrow('such as 14:00');
  },
);

test('--at reads --since before and after a time, and never the future', () => {
  const now = local(15, 30);
  expect(windowOf({ since: HOUR_MS, at: timeArgument('14:00') }, now)).toMatchObject({
    since: local(13, 0),
    until: local(15, 0),
  });
  expect(windowOf({ since: 2 * HOUR_MS, at: timeArgument('15:00') }, now).until).toBe(now + 2_000);
  expect(() => windowOf({ since: HOUR_MS, at: timeArgument('2027-01-01T00:00Z') }, now)).toThrow(
    expect.objectContaining({ code: 'BAD_ARGUMENT' }),
  );
});

test('without --at a range ends now', () => {
  expect(windowOf({ since: HOUR_MS }, 10 * HOUR_MS)).toEqual({
    since: 9 * HOUR_MS,
    until: 10 * HOUR_MS + 2_000,
    text: 'in the last 1 h',
  });
});
