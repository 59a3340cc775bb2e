import type { GlobalOptions } from '../../../../cli/deployment/target.ts';
import { runMailroom } from '../../../../cli/program.ts';
import type { ExitCode, Io } from '../../../../cli/terminal/io.ts';
import { capturedIo } from '../../../support/captured-io.ts';
import { type MemoryMailroom, memoryDeployment } from './memory-deployment.ts';

/** A run of the command. */
export interface MemoryRun {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
}

/** Runs `mailroom` on a Mailroom in memory: everything but the SDK clients is the command's own. */
export async function runInMemory(
  mailroom: MemoryMailroom,
  argv: readonly string[],
  options: Parameters<typeof capturedIo>[0] = {},
): Promise<MemoryRun> {
  const { io, written } = capturedIo(options);
  const open = async (opened: Io, given: GlobalOptions) => memoryDeployment(mailroom, opened, given);
  const own = Object.assign(io, { open });
  const code = await runMailroom(argv, own);
  return { code, ...written };
}
