import { runMailroom } from '../cli/program.ts';
import { EXIT, type ExitCode } from '../cli/terminal/io.ts';
import { mailroomStack } from './system-name.ts';
import type { VerifyTarget } from './target.ts';

/** The end of a run of the `mailroom` command. */
interface MailroomRun {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
}

/** Runs `mailroom` with these arguments. */
export type MailroomRunner = (...argv: readonly string[]) => Promise<MailroomRun>;

/** The `mailroom` command on the verified deployment, and on no other. */
export function mailroomOf(target: VerifyTarget, name: string, signal: AbortSignal): MailroomRunner {
  const { region, profile, endpoint } = target;
  const where = [
    ...['--stack', mailroomStack(name), '--region', region],
    ...(profile === undefined ? [] : ['--profile', profile]),
    ...(endpoint === undefined ? [] : ['--endpoint', endpoint]),
  ];
  return async (...argv) => {
    const written = { out: '', err: '' };
    const code = await runMailroom([...argv, ...where], {
      env: process.env,
      outIsTerminal: false,
      errIsTerminal: false,
      outSize: () => undefined,
      out: (text) => {
        written.out += text;
      },
      err: (text) => {
        written.err += text;
      },
      signal,
      exitCode: EXIT.ok,
    });
    return { code, ...written };
  };
}
