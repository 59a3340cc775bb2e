import { expect, test } from 'vitest';
import { encodeRulePattern, takesExactly } from '../../../../lambdas/runtime/bus/rule-pattern.ts';

const placed = { source: 'orders', type: 'OrderPlaced' };
const cancelled = { source: 'orders', type: 'OrderCancelled' };
const declined = { source: 'payments', type: 'PaymentDeclined' };

test('a pattern of one service is plain, and one of several keeps each service with its own types', () => {
  expect(encodeRulePattern([placed, cancelled, placed])).toEqual({
    source: ['orders'],
    'detail-type': ['OrderPlaced', 'OrderCancelled'],
  });
  expect(encodeRulePattern([placed, declined, cancelled])).toEqual({
    $or: [
      { source: ['orders'], 'detail-type': ['OrderPlaced', 'OrderCancelled'] },
      { source: ['payments'], 'detail-type': ['PaymentDeclined'] },
    ],
  });
});

test.each([[[placed]], [[placed, cancelled]], [[placed, declined, cancelled]]])(
  'a deployed pattern of exactly the declared events is recognized',
  (events) => {
    expect(takesExactly(JSON.stringify(encodeRulePattern(events)), [...events].reverse())).toBe(true);
  },
);

const shipped = { source: 'orders', type: 'OrderShipped' };
const toSwitzerland = { ...shipped, filter: { country: ['CH'], cents: [{ numeric: ['>=', 10] }] } };

test('a filtered event has its own alternative, with a condition on the payload', () => {
  const { filter } = toSwitzerland;
  const alternative = { source: ['orders'], 'detail-type': ['OrderShipped'], detail: { data: filter } };
  expect(encodeRulePattern([toSwitzerland])).toEqual(alternative);
  expect(encodeRulePattern([placed, toSwitzerland])).toEqual({
    $or: [{ source: ['orders'], 'detail-type': ['OrderPlaced'] }, alternative],
  });
});

test('a deployed pattern with the declared filter is recognized, whatever the order of its members', () => {
  const pattern = JSON.stringify({
    $or: [
      {
        detail: { data: { cents: [{ numeric: ['>=', 10.0] }], country: ['CH'] } },
        'detail-type': ['OrderShipped'],
        source: ['orders'],
      },
      { 'detail-type': ['OrderPlaced'], source: ['orders'] },
    ],
  });
  expect(takesExactly(pattern, [placed, toSwitzerland])).toBe(true);
});

test.each([
  ['without the filter', shipped],
  ['with another filter', { ...shipped, filter: { country: ['AT'] } }],
])('a deployed pattern %s is not that of the declared filter', (_what, event) => {
  expect(takesExactly(JSON.stringify(encodeRulePattern([placed, event])), [placed, toSwitzerland])).toBe(
    false,
  );
  expect(takesExactly(JSON.stringify(encodeRulePattern([placed, toSwitzerland])), [placed, event])).toBe(
    false,
  );
});

test('a condition beside the payload is not a declared filter', () => {
  const detail = { data: toSwitzerland.filter, version: [1] };
  const pattern = { ...encodeRulePattern([toSwitzerland]), detail };
  expect(takesExactly(JSON.stringify(pattern), [toSwitzerland])).toBe(false);
});

test.each([
  [
    'is a cross product',
    { source: ['orders', 'payments'], 'detail-type': ['OrderPlaced', 'PaymentDeclined'] },
  ],
  ['lacks an event', { source: ['orders'], 'detail-type': ['OrderPlaced'] }],
  ['has no condition on the source', { $or: [{ 'detail-type': ['OrderPlaced'] }] }],
  ['adds a condition', { ...encodeRulePattern([placed, declined]), detail: { n: [1] } }],
  ['matches by prefix', { source: [{ prefix: '' }], 'detail-type': ['OrderPlaced'] }],
])('a pattern that %s is not', (_what, pattern) => {
  expect(takesExactly(JSON.stringify(pattern), [placed, declined])).toBe(false);
});
