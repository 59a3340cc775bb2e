import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { countArgument, durationArgument, reasonArgument } from '../../../cli/terminal/arguments.ts';
import { applyWords, reasonToApply } from '../../../cli/terminal/change.ts';
import { byCause } from '../../../cli/terminal/listing.ts';
import { clipped, fitted, table } from '../../../cli/terminal/output.ts';
import { paint } from '../../../cli/terminal/paint.ts';
import { createTerminal, reportOf } from '../../../cli/terminal/terminal.ts';
import { duration } from '../../../cli/terminal/times.ts';
import { capturedIo } from '../../support/captured-io.ts';

describe('a text on a short terminal', () => {
  const text = ['the verdict', 'x'.repeat(25), ...Array.from({ length: 8 }, (_, n) => `line ${n}`)].join(
    '\n',
  );
  const inRows = (rows: number) => stripVTControlCharacters(fitted(text, { rows, columns: 10 })).split('\n');

  test('is whole if it fits, with a row for the cursor', () => {
    // The verdict takes 2 rows of 10 columns, the long line 3, each other line 1.
    expect(inRows(14)).toEqual(text.split('\n'));
    expect(inRows(13)).toHaveLength(9);
  });

  test('keeps its first line in view, and counts the lines that are missing', () => {
    expect(inRows(7)).toEqual(['the verdict', 'x'.repeat(25), '8 more lines']);
    expect(inRows(2)).toEqual(['the verdict', '9 more lines']);
  });
});

describe('the output', () => {
  test.each([
    [true, {}, true],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [false, {}, false],
    [false, { CI: 'true' }, false],
    [false, { FORCE_COLOR: '1' }, true],
    [false, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
  ])('on a terminal: %s, with %j, is colored: %s', async (isTerminal, env, colored) => {
    const { io, written } = capturedIo({ isTerminal, env });
    await createTerminal(io, false).print(reportOf({}, 'dead', paint.red));
    expect(written.out.includes('\u001b[31m')).toBe(colored);
    expect(written.out).toContain('dead');
  });

  test('as JSON is one line on stdout, and nothing else is', async () => {
    const { io, written } = capturedIo({ isTerminal: true });
    const terminal = createTerminal(io, true);
    terminal.progress('1 of 2');
    terminal.say('half of it');
    await terminal.print(reportOf({ a: [1, 'two\nlines'] }, 'for people', (text) => text));
    expect(written.out).toBe('{"a":[1,"two\\nlines"]}\n');
    expect(written.err).toContain('half of it');
  });

  test('shows progress on a terminal only', () => {
    const { io, written } = capturedIo();
    createTerminal(io, false).progress('1 of 2');
    expect(written.err).toBe('');
  });

  test('aligns a table by what is seen of it', () => {
    const text = table(
      ['name', 'n'],
      [
        [paint.red('a'), 1],
        ['much longer', 20],
      ],
    );
    const [, first, second] = text.split('\n');
    expect(stripVTControlCharacters(first ?? '').indexOf('1')).toBe(second?.indexOf('20'));
  });
});

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [1_000, '1 s'],
  [61_000, '1 min 1 s'],
  [3_600_000, '1 h'],
  [90_000_000, '1 d 1 h'],
  [-5, '0 ms'],
])('%i ms is shown as %s', (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test('a text out of a row is not too long in a sentence', () => {
  expect(clipped('x'.repeat(1_000))).toHaveLength(300);
});

describe('arguments', () => {
  test.each([
    ['90s', 90_000],
    ['15m', 900_000],
    ['6h', 21_600_000],
    ['400d', 34_560_000_000],
  ])('the duration %s is %i ms', (text, ms) => {
    expect(durationArgument(text)).toBe(ms);
  });

  test.each(['', '5', '0h', '1.5h', '-1h', '1w', '401d', '1 h', '99999999d'])(
    '"%s" is not a duration',
    (text) => {
      expect(() => durationArgument(text)).toThrow('whole number with a unit');
    },
  );

  test('counts are whole and at least 1; reasons are not empty', () => {
    expect(countArgument('7')).toBe(7);
    for (const text of ['0', '-1', '1.5', 'x', '']) expect(() => countArgument(text)).toThrow('from 1');
    expect(reasonArgument('  charged\nby phone ')).toBe('charged by phone');
    for (const text of ['', '  ', 'ok', 'x'.repeat(501)])
      expect(() => reasonArgument(text)).toThrow('a reason of');
  });

  test.each([
    '…',
    '...',
    "'…'",
    '<reason>',
    '<why>',
    'reason',
    'Why?',
    'the reason',
    'REASON HERE',
    'TODO',
    'n/a',
    'xxx',
  ])('a reason is not the placeholder %j', (text) =>
    expect(() => reasonArgument(text)).toThrow(/^It is a placeholder\. .*such as "the bank is back"/),
  );

  test.each([
    'the reason is a lost rule',
    'INC-1234',
    '12345',
    'die Bank ist zurück',
    '銀行が復旧した',
    'todo of ticket 12',
  ])('the reason %j is taken', (text) => expect(reasonArgument(text)).toBe(text));

  test('a change is made only with a reason; a plan needs none, and prints a reason that is still to be written', () => {
    expect(reasonToApply({})).toBeUndefined();
    expect(reasonToApply({ reason: 'by phone' })).toBeUndefined();
    expect(reasonToApply({ apply: true, reason: 'by phone' })).toBe('by phone');
    expect(() => reasonToApply({ apply: true })).toThrow('--apply needs a reason');
    expect(applyWords({ reason: 'by phone' })).toEqual(['--apply', '--reason', 'by phone']);
    expect(() => reasonArgument(applyWords({}).at(-1) ?? '')).toThrow('a reason of');
  });
});

test('failures are grouped by cause: the most frequent first, with the newest as the example', () => {
  const failure = (fingerprint: string, at: number) => ({ fingerprint, at, eventId: `event-${at}` });
  expect(
    byCause([failure('rare', 9), failure('often', 5), failure('often', 7), failure('often', 6)]),
  ).toEqual([
    { fingerprint: 'often', count: 3, oldestAt: 5, newestAt: 7, example: 'event-7' },
    { fingerprint: 'rare', count: 1, oldestAt: 9, newestAt: 9, example: 'event-9' },
  ]);
});
