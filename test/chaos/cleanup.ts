/** What has to be put back or stopped, whatever happens in between. */
export interface Cleanup {
  /** Notes how to put something back. */
  add(undo: () => Promise<void> | void): void;
  /**
   * Does all that was noted and was not done yet, the newest first; what fails does not keep the rest from being done.
   *
   * @returns the errors of what failed
   */
  run(): Promise<unknown[]>;
}

/** Makes an empty list. */
export function createCleanup(): Cleanup {
  const undos: (() => Promise<void> | void)[] = [];
  return {
    add: (undo) => void undos.push(undo),
    run: async () => {
      const errors: unknown[] = [];
      for (let undo = undos.pop(); undo !== undefined; undo = undos.pop()) {
        try {
          await undo();
        } catch (error) {
          errors.push(error);
        }
      }
      return errors;
    },
  };
}
