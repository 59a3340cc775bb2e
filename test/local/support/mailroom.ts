import { inject } from 'vitest';
import { EXIT, type ExitCode } from '../../../cli/frame/exit-code.ts';
import { runMailroom } from '../../../cli/program.ts';

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
  let out = '';
  let err = '';
  const code = await runMailroom(argv, {
    env: { AWS_ENDPOINT_URL: endpoint },
    outIsTerminal: false,
    errIsTerminal: false,
    out: (text) => {
      out += text;
      if (enough(out)) stop.abort();
    },
    err: (text) => {
      err += text;
    },
    signal: stop.signal,
    exitCode: EXIT.ok,
  });
  return { code, out, err, json: () => JSON.parse(out) };
}
