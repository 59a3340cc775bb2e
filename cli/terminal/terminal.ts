import { escaped, jsonLine, shown } from './escaped.ts';
import { EXIT, type ExitCode, type Io } from './io.ts';
import { plain } from './paint.ts';
import { COLUMNS, prose } from './prose.ts';

/** The result of a command: for a program, for a person, and for a pipeline. */
export interface Report<Document = unknown> {
  /** The document of `--json`. */
  readonly json: Document;
  /** The same as text. Texts that others wrote are escaped in it. */
  text(): string | Promise<string>;
  readonly exitCode: ExitCode;
}

/**
 * Creates a report.
 *
 * Others wrote what is stored, so no text of a row reaches a terminal unescaped: see `escaped.ts`.
 *
 * @param json - the document of `--json`
 * @param subject - what the text shows
 * @param text - called only without `--json`, with every string of `subject` escaped. It must read stored values from there only,
 * because its own line breaks and colors are printed
 *
 * @example
 * ```ts
 * return reportOf({ operations }, operations, operationsText);
 * ```
 */
export function reportOf<Document, Subject>(
  json: Document,
  subject: Subject,
  text: (subject: Subject) => string,
  exitCode: ExitCode = EXIT.ok,
): Report<Document> {
  return { json, text: () => text(shown(subject)), exitCode };
}

/** The place that a change of several parts has reached. */
export interface ProgressReached {
  /** The step that is sent, from 1, and the number of steps. */
  readonly step?: number;
  readonly steps?: number;
  /** The parts that are done, and all of them. */
  readonly done?: number;
  readonly of?: number;
}

/** The output of a command: reports go to stdout, as text or JSON; everything else goes to stderr. */
export interface Terminal {
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** True with `--json`. */
  readonly json: boolean;
  /** Prints a report. Texts are colored with `paint`; `NO_COLOR` and pipes remove the colors. */
  print(report: Pick<Report, 'json' | 'text'>): Promise<void>;
  /** Prints a line on stderr; escaped. */
  say(line: string): void;
  /**
   * Prints a line that the next one overwrites; escaped, and cut to one line. Only on a terminal.
   *
   * @param reached - what the line says, for the page
   */
  progress(line: string, reached?: ProgressReached): void;
}

const CLEAR_LINE = '\r\u001b[K';

/** Creates the terminal of a run. */
export function createTerminal(io: Io, json: boolean): Terminal {
  let inLine = false;
  const endLine = (): void => {
    if (inLine) io.err(CLEAR_LINE);
    inLine = false;
  };
  return {
    signal: io.signal,
    json,
    print: async (report) => {
      const text = json ? jsonLine(report.json) : await report.text();
      endLine();
      const line = json ? text : plain(text, io, io.outIsTerminal);
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
