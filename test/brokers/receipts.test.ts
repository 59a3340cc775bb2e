import { expect, test } from 'vitest';
import { idsOf, receiptOf } from './receipts.ts';

const CASE = { broker: 'none', scenario: 'counted' };

test('a receipt counts duplicates once, and a lost message', () => {
  expect(receiptOf(CASE, idsOf('a', 'b', 'c'), idsOf('a', 'a', 'b'))).toEqual({
    ...CASE,
    sent: 3,
    received: 3,
    distinct: 2,
    outOfOrder: 0,
    lost: 1,
  });
});

test('a receipt counts a message that arrives after its successor, and no duplicate of an earlier one', () => {
  expect(receiptOf(CASE, idsOf('a', 'b', 'c'), idsOf('b', 'a', 'c', 'a')).outOfOrder).toBe(1);
  expect(receiptOf(CASE, idsOf('a', 'b', 'c'), idsOf('a', 'b', 'a', 'c')).outOfOrder).toBe(0);
});

test('a receipt judges the order within each key', () => {
  const [a, b] = [
    { id: 'a', key: '1' },
    { id: 'b', key: '2' },
  ];
  expect(receiptOf(CASE, [a, b], [b, a]).outOfOrder).toBe(0);
});

test('a receipt counts no unknown message as one that was sent', () => {
  const receipt = receiptOf(CASE, idsOf('a'), idsOf('x'));
  expect([receipt.lost, receipt.distinct]).toEqual([1, 1]);
});
