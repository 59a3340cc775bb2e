import { expect, test } from 'vitest';
import { exported } from '../../../cli/terminal/export.ts';

const rows = [
  { eventId: '01', attempt: 2, at: 1_795_266_113_222, lastError: 'it said "no", twice\nand\u001b[31m' },
  { eventId: '02', attempt: null, at: null, lastError: '=HYPERLINK("x")' },
];

const COLUMNS = { eventId: true, attempt: true, at: true, lastError: true } as const;

test('CSV has a line of names, quotes what needs it, and runs no formula; without items it still has its names', () => {
  expect(exported(rows, 'csv', COLUMNS).split('\n')).toEqual([
    'eventId,attempt,at,lastError',
    '01,2,1795266113222,"it said ""no"", twice\\u000aand\\u001b[31m"',
    `02,,,"'=HYPERLINK(""x"")"`,
  ]);
  expect(exported([], 'csv', COLUMNS)).toBe('eventId,attempt,at,lastError');
});

test('JSON lines parse to the same values', () => {
  const lines = exported(rows, 'jsonl', COLUMNS).split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(rows);
});
