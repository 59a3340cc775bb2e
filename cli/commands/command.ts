import type { Command } from 'commander';
import { type Deployment, openDeployment } from '../deployment/deployment.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import type { ExitCode, Io } from '../terminal/io.ts';

/** Opens the Mailroom of a run; a test's `io` has one in memory. */
interface Opener {
  /** @default `openDeployment`, which opens one on AWS */
  readonly open?: typeof openDeployment;
}

/**
 * Runs a command against the Mailroom that its options select, and sets the exit code.
 *
 * @example
 * ```ts
 * new Command('status').action(withDeployment(io, async (deployment, options) => EXIT.ok));
 * ```
 */
export function withDeployment<Args extends readonly unknown[], Options>(
  io: Io & Opener,
  run: (deployment: Deployment, options: Options, ...args: Args) => Promise<ExitCode>,
): (...received: [...Args, Options, Command]) => Promise<void> {
  return async (...received) => {
    const command = received.at(-1) as Command;
    const args = received.slice(0, -2) as unknown as Args;
    const all = command.optsWithGlobals<GlobalOptions & Options>();
    const open = io.open ?? openDeployment;
    io.exitCode = await run(await open(io, all), all, ...args);
  };
}
