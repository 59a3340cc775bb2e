import Table from 'cli-table3';
import { escaped, jsonLine, shown } from './escaped.ts';
import type { Io, TerminalSize } from './io.ts';
import { paint, plain } from './paint.ts';
import { COLUMNS, columnsOf, prose } from './prose.ts';

/**
 * The output of a command: its result goes to stdout, as text or as one JSON document; everything else goes to stderr.
 * Texts are coloured with `paint`; `NO_COLOR` and pipes remove the colours.
 *
 * Others wrote what is stored, so no text of a row reaches a terminal unescaped: see `escaped.ts`.
 */
export interface Output {
  readonly json: boolean;
  /**
   * Prints the result. `text` is called only without `--json`, with every string of `subject` escaped. It must read
   * stored values from there only, because its own line breaks and colours are printed.
   */
  result<S>(json: unknown, subject: S, text: (subject: S) => string): void;
  /** Prints a line on stderr; escaped. */
  say(line: string): void;
  /** Prints a line that the next one overwrites; escaped, and cut to one line. Only on a terminal. */
  progress(line: string): void;
}

const CLEAR_LINE = '\r\u001b[K';

/** Creates the output of a run. */
export function createOutput(io: Io, json: boolean): Output {
  let inLine = false;
  const endLine = (): void => {
    if (inLine) io.err(CLEAR_LINE);
    inLine = false;
  };
  return {
    json,
    result: (value, subject, text) => {
      endLine();
      const line = json ? jsonLine(value) : plain(text(shown(subject)), io, io.outIsTerminal);
      // A list of JSON documents without one has no line: an empty line is not JSON.
      if (line !== '') io.out(`${line}\n`);
    },
    say: (line) => {
      endLine();
      io.err(`${prose(escaped(line))}\n`);
    },
    progress: (line) => {
      if (!io.errIsTerminal) return;
      // A line that wraps could not be overwritten.
      const columns = Math.min(COLUMNS, io.outSize()?.columns ?? COLUMNS);
      io.err(`${CLEAR_LINE}${escaped(line).slice(0, columns - 1)}`);
      inLine = true;
    },
  };
}

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
  return [first, ...lines.flatMap((line, index) => [line, ...below(rows[index])])].join('\n');
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
