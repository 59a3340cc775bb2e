import { expect, test } from 'vitest';
import {
  firstLine,
  headlineOf,
  idParts,
  minuteRate,
  rate,
  roughly,
  stateOf,
  urgencyOf,
} from '../../../../../cli/page/client/frame/format.ts';
import { isActionRequired, STATES } from '../../../../../cli/reports/why/event-state.ts';
import { HOUR_MS } from '../../../../../lambdas/runtime/base/units.ts';

test('an age has one unit and is at least a second', () => {
  expect([-20, 10, 3_400, 125_000].map(roughly)).toEqual(['1 s', '1 s', '3 s', '2 min']);
});

test('small rates keep their digits', () => {
  expect([0, 0.25, 9.96, 12.4, 1_234].map(rate)).toEqual(['0/s', '0.3/s', '10/s', '12/s', '1,234/s']);
});

test('a long id ends in its last 8 characters, and loses none', () => {
  expect(idParts('01a1fe32-7358-7e75-8b69-4ee374467501')).toEqual([
    '01a1fe32-7358-7e75-8b69-4ee3',
    '74467501',
  ]);
  expect(idParts('evt_1')).toEqual(['', 'evt_1']);
  expect(idParts(`an order ${'😀'.repeat(9)}`)).toEqual(['an order 😀', '😀'.repeat(8)]);
});

test('every state of an event that requires no action has its own sign', () => {
  const states = STATES.filter((state) => !isActionRequired({ state }));
  expect(states).toContain('scheduled');
  expect(states.filter((state) => stateOf(state) === 'broken')).toEqual([]);
});

test('a permanent deletion is urgent in three days, and broken in one', () => {
  expect(urgencyOf(null, 0)).toBe('ok');
  expect(urgencyOf(72 * HOUR_MS, 0)).toBe('ok');
  expect(urgencyOf(72 * HOUR_MS - 1, 0)).toBe('look');
  expect(urgencyOf(24 * HOUR_MS, 0)).toBe('look');
  expect(urgencyOf(24 * HOUR_MS - 1, 0)).toBe('broken');
  expect(urgencyOf(-1, 0)).toBe('broken');
});

test('the headline is the worst count of open findings, in the words of the command', () => {
  const acknowledged = { by: 'ada', until: 1, reason: 'known' };
  const known = { state: 'broken', acknowledged } as const;
  const [broken, look] = [{ state: 'broken' }, { state: 'look' }] as const;
  const headline = (
    findings: readonly (typeof known | typeof broken | typeof look)[],
    parts: string[] = [],
  ) => headlineOf({ findings, wiring: { notChecked: parts.length > 0 ? [{ needs: ['iam'], parts }] : [] } });
  expect(headlineOf(null).is).toBe('idle');
  expect(headline([known])).toEqual({ is: 'ok', text: 'Nothing visible is broken' });
  expect(headline([look, look, known])).toEqual({ is: 'look', text: '2 warnings' });
  expect(headline([broken, look])).toEqual({ is: 'broken', text: '1 problem, 1 warning' });
  // A part that was not checked does not count as a warning.
  expect(headline([look], ['sweep', 'bus'])).toEqual({ is: 'look', text: '2 parts not checked' });
});

test.each([
  ['2 DEAD events', '2 DEAD events'],
  [
    '1 dead letter in consumer:payments; it is deleted in 3.5 h',
    '1 dead letter in consumer:payments; it is deleted in 3.5 h',
  ],
  [
    'stock receives no events: its rule shop-prod-stock-StockRule79E5F8A5-B45F79174BC23 is disabled. Restore it',
    'stock receives no events: its rule …9174BC23 is disabled',
  ],
])('a finding in one line: %s', (text, line) => {
  expect(firstLine(text)).toBe(line);
});

test.each([
  [[], '–'],
  [[0, 0, 0], '0/s'],
  // One event in two seconds, three times in a minute of 30 intervals.
  [[...Array.from({ length: 27 }, () => 0), 0.5, 0.5, 0.5].toReversed(), '3/min'],
  // Just above 1 per second, and nothing in the last interval.
  [[1.5, 2, 0], '1.2/s'],
  [[2, 4, 12], '6.0/s'],
  [[0.9, 1, 1.1], '1.0/s'],
  [[12, 16, 17], '15/s'],
])('the rate of a minute with %j is %s', (perS, text) => {
  expect(minuteRate(perS)).toBe(text);
});
