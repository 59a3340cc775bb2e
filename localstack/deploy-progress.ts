/** Receives the progress of a deployment. */
export interface DeployProgress {
  /** Receives a short line when a step begins. */
  readonly onProgress?: ((line: string) => void) | undefined;
  /** Receives the current activity within a step. */
  readonly onDetail?: ((text: string) => void) | undefined;
}

/** Reports what the CDK builds and deploys, and returns the reader of its output lines. */
export function deployProgress({ onProgress, onDetail }: DeployProgress): (line: string) => void {
  let deploying = false;
  let functions = 0;
  return (line) => {
    const bundled = /^Bundling asset (\S+?)(?:\/Function)?\/Code\/Stage\.\.\./.exec(line)?.[1];
    if (bundled) {
      functions += 1;
      // A stack and its one construct often have the same id.
      onDetail?.(`function ${functions}: ${bundled.replace(/^([^/]+)\/\1(?=\/|$)/, '$1')}`);
    }
    const begun = /^(\S+)(?: \(\S+\))?: deploying\.\.\./.exec(line)?.[1];
    if (begun) {
      if (!deploying) onProgress?.('Deploying the stacks');
      deploying = true;
      onDetail?.(begun);
    }
    const done = /^\s*✅\s+(\S+)/u.exec(line)?.[1];
    if (done) onDetail?.(`${done} is deployed`);
  };
}
