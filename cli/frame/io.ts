import type { ExitCode } from './exit-code.ts';

/** What a run of the command reads and writes, besides AWS: the process's own, or a test's. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether `out` is a terminal: `status --watch` draws over itself there only. */
  readonly outIsTerminal: boolean;
  /** Whether `err` is a terminal: progress is shown there only. */
  readonly errIsTerminal: boolean;
  out(text: string): void;
  err(text: string): void;
  /** Aborted when the user asks it to stop, e.g. `status --watch`. */
  readonly signal: AbortSignal;
  /** How the command ends. */
  exitCode: ExitCode;
}
