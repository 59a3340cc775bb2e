import type { Command } from 'commander';
import type { ExitCode, Io } from './io.ts';
import { openSession, type Session } from './session.ts';
import type { GlobalOptions } from './target.ts';

/**
 * Runs a command against the Mailroom that its options select, and sets the exit code.
 *
 * @example
 * ```ts
 * new Command('status').action(withSession(io, async (session, options) => EXIT.ok));
 * ```
 */
export function withSession<Args extends readonly unknown[], Options>(
  io: Io,
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
