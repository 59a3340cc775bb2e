/** Prints the steps of a long task, so that no part of it is silent. */
export interface StepPrinter {
  /** Begins a step, and ends the current one. */
  step(line: string): void;
  /** Shows the current activity within the step. */
  detail(text: string): void;
  /** Ends the current step and prints a line. */
  say(line: string): void;
  /** Ends the current step with its duration. */
  end(): void;
  /** Ends the current step without a duration. */
  fail(): void;
}

/** The part of a Node.js output stream that a {@link StepPrinter} uses. */
interface StepStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

interface Step {
  readonly line: string;
  readonly startedAt: number;
  readonly timer: NodeJS.Timeout;
  detail: string;
  nextLogS: number;
}

/** The interval between the lines that a log shows during a long step, seconds. */
const LOG_EVERY_S = 10;

const CLEAR_LINE = '\r\u001b[K';

/**
 * Creates a printer. A terminal gets one live line per step with its seconds; a log gets a line when a step begins, one every
 * 10 seconds, and one when it ends.
 *
 * @example
 * ```ts
 * const steps = stepPrinter(process.stderr);
 * await deployLocal({ endpoint, onProgress: steps.step, onDetail: steps.detail });
 * steps.end();
 * ```
 */
export function stepPrinter(stream: StepStream): StepPrinter {
  const { isTTY = false } = stream;
  let current: Step | undefined;

  const seconds = (startedAt: number): number => Math.floor((Date.now() - startedAt) / 1_000);

  function drawLive(): void {
    if (!isTTY || current === undefined) return;
    const { line, startedAt, detail } = current;
    const elapsed = seconds(startedAt);
    const shown = [line, ...(elapsed > 0 ? [`${elapsed} s`] : []), ...(detail ? [detail] : [])].join('  ');
    // A line as wide as the terminal would wrap, and could not be cleared. A pseudo-terminal without a size reports 0 columns.
    stream.write(CLEAR_LINE + shown.slice(0, (stream.columns || 80) - 1));
  }

  function tick(): void {
    if (isTTY) drawLive();
    else if (current !== undefined) {
      const elapsed = seconds(current.startedAt);
      if (elapsed < current.nextLogS) return;
      current.nextLogS += LOG_EVERY_S;
      stream.write(`  ${[`${elapsed} s`, current.detail].join('  ').trimEnd()}\n`);
    }
  }

  function finish(succeeded: boolean): void {
    if (current === undefined) return;
    const { line, startedAt, timer } = current;
    clearInterval(timer);
    current = undefined;
    const time = `${seconds(startedAt)} s`;
    if (isTTY) stream.write(`${CLEAR_LINE}${succeeded ? `${line}  ${time}` : line}\n`);
    else if (succeeded) stream.write(`  done in ${time}\n`);
  }

  return {
    step: (line) => {
      finish(true);
      const timer = setInterval(tick, 1_000);
      timer.unref();
      current = { line, startedAt: Date.now(), detail: '', nextLogS: LOG_EVERY_S, timer };
      if (isTTY) drawLive();
      else stream.write(`${line}\n`);
    },
    detail: (text) => {
      if (current === undefined) return;
      current.detail = text;
      drawLive();
    },
    say: (line) => {
      finish(true);
      stream.write(`${line}\n`);
    },
    end: () => finish(true),
    fail: () => finish(false),
  };
}
