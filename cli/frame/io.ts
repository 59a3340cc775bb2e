/** How the command ends: a pipeline can go by it. */
export const EXIT = {
  /** All is well, or what was asked for is done. */
  ok: 0,
  /** It worked, and what it found requires action: dead letters, a stuck event, a missing one. */
  attention: 1,
  /** It was called wrongly, or refused to do what was asked. Nothing was changed. */
  usage: 2,
  /** There is nothing of that name: no deployment, no event, no dead letter. */
  notFound: 3,
  /** AWS refused or did not answer. */
  aws: 4,
  /** The command itself failed: a defect of its own. */
  defect: 5,
  /** It was stopped by Ctrl-C before it was done; what a shell says of it, too. */
  stopped: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

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
