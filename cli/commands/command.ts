import type { Command } from 'commander';
import { openSession, type Session } from '../deployment/session.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import type { ExitCode, Io } from '../terminal/io.ts';

/** Opens the Mailroom of a run; a test's `io` has one in memory. */
interface Opener {
  /** @default `openSession`, which opens one on AWS */
  readonly open?: typeof openSession;
}

/**
 * Runs a command against the Mailroom that its options select, and sets the exit code.
 *
 * @example
 * ```ts
 * new Command('status').action(withSession(io, async (session, options) => EXIT.ok));
 * ```
 */
export function withSession<Args extends readonly unknown[], Options>(
  io: Io & Opener,
  run: (session: Session, options: Options, ...args: Args) => Promise<ExitCode>,
): (...received: [...Args, Options, Command]) => Promise<void> {
  return async (...received) => {
    const command = received.at(-1) as Command;
    const args = received.slice(0, -2) as unknown as Args;
    const all = command.optsWithGlobals<GlobalOptions & Options>();
    const open = io.open ?? openSession;
    io.exitCode = await run(await open(io, all), all, ...args);
  };
}
