import Table from 'cli-table3';
import type { TerminalSize } from './io.ts';
import { paint } from './paint.ts';
import { COLUMNS, columnsOf, prose } from './prose.ts';

/** The space between two cells. */
const GAP = '  ';

/** The least width of the last column of a table: narrower, a sentence is hard to read. */
const LAST_MIN = 24;

type Cells = readonly (string | number)[];

/** A table without borders: a head, and a line for each row. The last column wraps where the table is wider than 80 columns. */
export function table(head: readonly string[], rows: readonly Cells[]): string {
  const others = head.slice(0, -1).map((_, column) => widest([head, ...rows], column) + GAP.length);
  const left = COLUMNS - others.reduce((sum, width) => sum + width, 0);
  const wrapped = (cell: string | number = '') => prose(String(cell), 0, Math.max(left, LAST_MIN));
  return grid(
    head,
    rows.map((row) => [...row.slice(0, -1), wrapped(row.at(-1))]),
  );
}

/** A row of short cells, and lines below it for what is too long for a column. */
export interface DetailedRow {
  /** A line above the row: what it and the next rows have in common. @default none */
  readonly heading?: string | undefined;
  readonly cells: Cells;
  readonly details: readonly string[];
}

/** A table whose rows have indented lines below them. */
export function detailedTable(head: readonly string[], rows: readonly DetailedRow[]): string {
  const [first = '', ...lines] = grid(
    head,
    rows.map(({ cells }) => cells),
  ).split('\n');
  const below = (row: DetailedRow | undefined) => (row?.details ?? []).map((line) => prose(`  ${line}`, 4));
  const above = ({ heading }: Partial<DetailedRow> = {}) => (heading === undefined ? [] : [prose(heading)]);
  return [
    first,
    ...lines.flatMap((line, index) => [...above(rows[index]), line, ...below(rows[index])]),
  ].join('\n');
}

function grid(head: readonly string[], rows: readonly Cells[]): string {
  const borders = ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left'];
  const others = ['bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'];
  const made = new Table({
    head: head.map((cell) => paint.dim(cell)),
    chars: { ...Object.fromEntries([...borders, ...others].map((border) => [border, ''])), middle: GAP },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  made.push(...rows.map((row) => row.map(String)));
  return made.toString().replace(/ +$/gm, '');
}

function widest(rows: readonly Cells[], column: number): number {
  return Math.max(...rows.map((row) => columnsOf(String(row[column] ?? ''))));
}

/** A time in UTC to the minute, rounded up, e.g. `14:05 UTC`: something is certain then. */
export function minuteAfter(ms: number): string {
  return `${new Date(Math.ceil(ms / 60_000) * 60_000).toISOString().slice(11, 16)} UTC`;
}

/** A stored text, cut to 300 characters. */
export function clipped(text: string): string {
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}

/** A text cut to a terminal, so that its first line, the verdict, stays in view. The last line counts the missing ones. */
export function fitted(text: string, { rows, columns }: TerminalSize): string {
  const lines = text.split('\n');
  const below = lines.map((_, index) =>
    lines
      .slice(0, index + 1)
      .reduce((sum, line) => sum + Math.max(1, Math.ceil(columnsOf(line) / columns)), 0),
  );
  // The cursor takes the last row.
  if ((below.at(-1) ?? 0) < rows) return text;
  const kept = below.filter((height) => height < rows - 1);
  const shownLines = lines.slice(0, Math.max(1, kept.length));
  return [...shownLines, paint.dim(`${lines.length - shownLines.length} more lines`)].join('\n');
}

/** A count and its noun, e.g. `1 message`, `2 messages`. */
export function many(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The place of a number in a row, e.g. `second`, `4th`. @param count - at least 2 */
export function ordinal(count: number): string {
  return { 2: 'second', 3: 'third' }[count] ?? `${count}th`;
}

/** A finding as a sentence: with a full stop, unless it ends with a question. */
export function sentence(finding: string): string {
  return finding.endsWith('?') ? finding : `${finding}.`;
}

/** A stored error that a full stop follows: cut, and without its final full stop. */
export function asClause(error: string): string {
  return clipped(error.replace(/[.\s]+$/, ''));
}
