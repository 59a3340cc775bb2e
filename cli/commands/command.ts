import type { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { type OperatorChange, run } from '../changes/change.ts';
import { type Deployment, openDeployment } from '../deployment/deployment.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import type { ChangeOptions } from '../terminal/change.ts';
import type { ExitCode, Io } from '../terminal/io.ts';
import type { Report } from '../terminal/terminal.ts';

/** Opens the Mailroom of a run; a test's `io` has one in memory. */
interface Opener {
  /** @default `openDeployment`, which opens one on AWS */
  readonly open?: typeof openDeployment;
}

/**
 * An action of commander that runs a command on the Mailroom that its options select, prints its report, and sets the exit code.
 *
 * @param run - the command; it receives the parsed arguments and options as one object
 * @param names - the members of that object for the arguments, in their order
 *
 * @example
 * ```ts
 * new Command('describe').argument('<consumer>').action(reporting(io, describe, 'consumer'));
 * ```
 */
export function reporting<Options extends object>(
  io: Io & Opener,
  run: (deployment: Deployment, options: Options) => Promise<Report>,
  ...names: readonly (keyof Options & string)[]
): (...received: unknown[]) => Promise<void> {
  return acting<Options>(
    io,
    async (deployment, options) => {
      const report = await run(deployment, options);
      await deployment.terminal.print(report);
      return report.exitCode;
    },
    ...names,
  );
}

/** As {@link reporting}, for a command that plans a change, and with `--apply` makes it. */
export function changing<Options extends ChangeOptions, Plan, Made, Document>(
  io: Io & Opener,
  change: OperatorChange<Options, Plan, Made, Document>,
  ...names: readonly (keyof Options & string)[]
): (...received: unknown[]) => Promise<void> {
  return reporting<Options>(io, (deployment, options) => run(change, deployment, options), ...names);
}

/** As {@link reporting}, for a command that prints while it runs. @param run - returns the exit code */
export function acting<Options extends object>(
  io: Io & Opener,
  run: (deployment: Deployment, options: Options) => Promise<ExitCode>,
  ...names: readonly (keyof Options & string)[]
): (...received: unknown[]) => Promise<void> {
  return async (...received) => {
    const command = received.at(-1) as Command;
    const given = Object.fromEntries(names.map((name, index) => [name, received[index]]));
    const options = { ...command.optsWithGlobals<GlobalOptions & Options>(), ...given };
    const { open = openDeployment } = io;
    io.exitCode = await run(await open(io, options), options);
  };
}

/** @param why - a clause after "but", and the remedy @throws `BAD_ARGUMENT` for an option that selects a deployed Mailroom */
export function refuseSelection(options: GlobalOptions, why: string): void {
  for (const name of ['stage', 'stack', 'profile', 'region', 'endpoint'] as const) {
    const value = options[name];
    if (value !== undefined) throw new MailroomError('BAD_ARGUMENT', `--${name} is "${value}", but ${why}`);
  }
}
