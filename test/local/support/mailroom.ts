import { inject } from 'vitest';
import { EXIT, type ExitCode } from '../../../cli/exit-code.ts';
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
  let out = '';
  let err = '';
  const code = await runMailroom(argv, {
    env: { AWS_ENDPOINT_URL: endpoint },
    interactive: false,
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    signal: new AbortController().signal,
    exitCode: EXIT.ok,
  });
  return { code, out, err, json: () => JSON.parse(out) };
}
