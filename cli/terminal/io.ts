import { readFile } from 'node:fs/promises';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';

/** The exit codes: a contract with pipelines. */
export const EXIT = {
  /** No action required, or done. */
  ok: 0,
  /** It worked, and action is required: dead letters, a stuck or a missing event. */
  attention: 1,
  /** Wrong usage, or refused. Nothing was changed. */
  usage: 2,
  /** No such deployment, event or dead letter. */
  notFound: 3,
  /** AWS denied the request or did not respond. */
  aws: 4,
  /** An internal error of the command. */
  defect: 5,
  /** Stopped by Ctrl-C before it was done: 128 + SIGINT, as shells report it. */
  stopped: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The size of a terminal, characters. */
export interface TerminalSize {
  readonly rows: number;
  readonly columns: number;
}

/** The environment and streams of a run: the process's own, or a test's. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if `out` is a terminal: `status --watch` redraws only there. */
  readonly outIsTerminal: boolean;
  /** True if `err` is a terminal: progress is shown only there. */
  readonly errIsTerminal: boolean;
  /** The size of the terminal of `out`; `undefined` if it is not a terminal. Read again after each resize. */
  outSize(): TerminalSize | undefined;
  out(text: string): void;
  err(text: string): void;
  /**
   * Calls the listener for each line that is typed. Absent if stdin is not a terminal.
   *
   * @returns a function that ends this
   */
  readonly onLine?: (listener: () => void) => () => void;
  /** Reads all of standard input. @default it is empty */
  readonly input?: () => Promise<string>;
  /** Aborted when the user asks it to stop, e.g. `status --watch`. */
  readonly signal: AbortSignal;
  /** The exit code of the run. */
  exitCode: ExitCode;
}

/**
 * Reads the file that an option names.
 *
 * @param option - e.g. `--data`, for the error
 * @param file - `-` for standard input
 * @throws `BAD_ARGUMENT` if it cannot be read
 */
export async function fileText(io: Io, option: string, file: string): Promise<string> {
  if (file === '-') return (await io.input?.()) ?? '';
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new MailroomError('BAD_ARGUMENT', `${option}: ${errorMessage(error)}`);
  }
}
