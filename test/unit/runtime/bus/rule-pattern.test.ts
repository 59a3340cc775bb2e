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
  'a deployed pattern of exactly the declared events is recognised',
  (events) => {
    expect(takesExactly(JSON.stringify(encodeRulePattern(events)), [...events].reverse())).toBe(true);
  },
);

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
