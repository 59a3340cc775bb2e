const followed = new Set<string>();
const started = new Set<string>();

/** Shows a run until it is dismissed: one that this tab started or saw going on. The operations log has the others. */
export function followRun(id: string): void {
  followed.add(id);
}

/** Follows a run that this tab has started: it receives the focus once it is shown. */
export function followStartedRun(id: string): void {
  followRun(id);
  started.add(id);
}

/** True if a run is shown. */
export function isFollowed(id: string): boolean {
  return followed.has(id);
}

/** True once for a run that this tab has started. */
export function takesFocus(id: string): boolean {
  return started.delete(id);
}

/** The progress of a run, read from the lines that the command prints. Members are `null` until a line has them. */
export interface RunProgress {
  /** The step that is sent: the first has 1, the second 10, the third the rest. */
  readonly step: number | null;
  readonly steps: number | null;
  readonly done: number | null;
  readonly of: number | null;
}

/** The progress before the first line. */
export const NO_PROGRESS: RunProgress = { step: null, steps: null, done: null, of: null };

/**
 * Adds a line to the progress of a run: the command prints the step in one line and the dead letters that are done in another.
 *
 * @example
 * ```ts
 * progressed(NO_PROGRESS, 'Step 2 of 3: 4 of 10 redriven'); // { step: 2, steps: 3, done: null, of: null }
 * ```
 */
export function progressed(before: RunProgress, line: string): RunProgress {
  const [, step, steps] = /^Step (\d+) of (\d+):/.exec(line) ?? [];
  if (step !== undefined) return { ...before, step: Number(step), steps: Number(steps) };
  const [, done, of] = /^Done: (\d+) of (\d+)$/.exec(line) ?? /^(\d+) of (\d+) discarded$/.exec(line) ?? [];
  return done === undefined ? before : { ...before, done: Number(done), of: Number(of) };
}
