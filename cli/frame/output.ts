import Table from 'cli-table3';
import { isTime } from '../../lambdas/runtime/clock.ts';
import { escaped, jsonLine, shown } from './escaped.ts';
import type { Io } from './io.ts';
import { paint, plain } from './paint.ts';

/**
 * Where a command writes: its result to stdout, as text for people or as one JSON document; everything else to stderr.
 * Texts are coloured with `paint`; `NO_COLOR` and a pipe take the colours away.
 *
 * What is stored was written by others, so no text of a row reaches a terminal as it is: see `escaped.ts`.
 */
export interface Output {
  readonly json: boolean;
  /**
   * The result. `text` is only made where people read it: of `subject` with every text escaped. It must take
   * all that is stored from there, because its own line breaks and colours are printed.
   */
  result<S>(json: unknown, subject: S, text: (subject: S) => string): void;
  /** A line for whoever watches; escaped. */
  say(line: string): void;
  /** A line that the next one writes over, on a terminal; escaped. Elsewhere nothing. */
  progress(line: string): void;
}

const CLEAR_LINE = '\r\u001b[K';

/** Writes to where the run writes. */
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
      io.out(`${json ? jsonLine(value) : plain(text(shown(subject)), io, io.outIsTerminal)}\n`);
    },
    say: (line) => {
      endLine();
      io.err(`${escaped(line)}\n`);
    },
    progress: (line) => {
      if (!io.errIsTerminal) return;
      io.err(`${CLEAR_LINE}${escaped(line)}`);
      inLine = true;
    },
  };
}

/** A table without borders: a head, and a line for each row. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const borders = ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left'];
  const others = ['bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'];
  const made = new Table({
    head: head.map((cell) => paint.dim(cell)),
    chars: { ...Object.fromEntries([...borders, ...others].map((border) => [border, ''])), middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  made.push(...rows.map((row) => row.map(String)));
  return made.toString().replace(/ +$/gm, '');
}

/** An age or a pause for people: its two largest units, e.g. `2 h 5 min`. */
export function duration(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ] as const;
  if (Number.isNaN(ms)) return '?';
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const first = units.findIndex(([, size]) => ms >= size);
  const shown = units.slice(first, first + 2).map(([unit, size], index) => {
    const above = index === 0 ? Number.POSITIVE_INFINITY : (units[first]?.[1] ?? 1);
    return [Math.floor((ms % above) / size), unit] as const;
  });
  return shown
    .filter(([count], index) => index === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** A time for people: UTC, to the second; `?` where there is none. */
export function time(ms: number): string {
  if (!isTime(ms)) return '?';
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** A text out of a row as it may stand in a sentence: at most 300 characters. */
export function clipped(text: string): string {
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}

/** A count and its noun, e.g. `1 message`, `2 messages`. */
export function many(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
