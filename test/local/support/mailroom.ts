import { inject } from 'vitest';
import { runMailroom } from '../../../cli/program.ts';
import type { ExitCode } from '../../../cli/terminal/io.ts';
import { capturedIo } from '../../support/captured-io.ts';

/** What a run of the `mailroom` command printed, and how it ended. */
export interface Run {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
  /** What `--json` printed. */
  // biome-ignore lint/suspicious/noExplicitAny: each command prints a shape of its own
  json(): any;
}

/** Runs `mailroom` on the deployed order system, as a user of this engine would. */
export async function mailroom(...argv: readonly string[]): Promise<Run> {
  return mailroomAt(inject('endpoint'), ...argv);
}

/** Runs `mailroom` on another endpoint. */
export async function mailroomAt(endpoint: string, ...argv: readonly string[]): Promise<Run> {
  return mailroomUntil(() => false, endpoint, argv);
}

/** Runs `mailroom` and presses Ctrl-C when what it printed is enough. */
export async function mailroomUntil(
  enough: (out: string) => boolean,
  endpoint: string,
  argv: readonly string[],
): Promise<Run> {
  const stop = new AbortController();
  const { io, written } = capturedIo({
    env: {
      // An account is found as by a user's shell.
      ...(endpoint === '' ? process.env : { AWS_ENDPOINT_URL: endpoint }),
      MAILROOM_STACK: inject('stack'),
    },
    signal: stop.signal,
    onOut: (out) => {
      if (enough(out)) stop.abort();
    },
  });
  const code = await runMailroom(argv, io);
  return { code, ...written, json: () => JSON.parse(written.out) };
}
