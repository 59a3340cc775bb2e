import { expect, test } from 'vitest';
import { timelineOf } from '../../../../../cli/page/client/event/timeline.ts';
import type { EventReport } from '../../../../../cli/page/client/event/waterfall.ts';

type Line = EventReport['story'][number];

const line = (at: number | null, what: Line['what'], consumer: string | null, cause?: string): Line => ({
  at,
  what,
  consumer,
  text: `${what} ${at}`,
  ...(cause !== undefined && { cause }),
});

const rowsOf = (...story: readonly Line[]) =>
  timelineOf([{ eventId: 'one', type: 'OrderPlaced', story: [...story] }]).map(
    ({ line: { text }, alike }) => `${text} after ${alike.length}`,
  );

test('successive attempts of a consumer that ended alike are one row, also between the lines of others', () => {
  expect(
    rowsOf(
      line(1, 'published', null),
      line(2, 'attempt-ended', 'payments', 'bank'),
      line(3, 'processed', 'inventory'),
      line(4, 'attempt-ended', 'payments', 'bank'),
      line(5, 'attempt-ended', 'payments', 'bank'),
    ),
  ).toEqual(['published 1 after 0', 'processed 3 after 0', 'attempt-ended 5 after 2']);
});

test.each([
  ['of another cause', line(3, 'attempt-ended', 'payments', 'card')],
  ['of another consumer', line(3, 'attempt-ended', 'mail', 'bank')],
  ['without a cause', line(3, 'attempt-ended', 'payments')],
])('an attempt %s has its own row', (_, other) => {
  expect(rowsOf(line(2, 'attempt-ended', 'payments', 'bank'), other)).toHaveLength(2);
});

test('an attempt after a redrive has its own row', () => {
  const attempt = (at: number) => line(at, 'attempt-ended', 'payments', 'bank');
  expect(rowsOf(attempt(2), line(null, 'redriven', 'payments'), attempt(4))).toHaveLength(3);
});

test('the lines of several events are in order of time, and one without a time follows the one before it', () => {
  const events = [
    { eventId: 'one', type: 'OrderPlaced', story: [line(1, 'committed', null), line(null, 'expired', null)] },
    { eventId: 'two', type: 'StockReserved', story: [line(2, 'committed', null)] },
  ];
  expect(timelineOf(events).map(({ key }) => key)).toEqual(['one 0', 'one 1', 'two 0']);
});
