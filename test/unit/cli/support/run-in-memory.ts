import type { ExitCode } from '../../../../cli/frame/io.ts';
import { runMailroom } from '../../../../cli/program.ts';
import { capturedIo } from '../../../support/captured-io.ts';
import { type MemoryMailroom, sessionOn } from './memory-session.ts';

/** A run of the command. */
export interface MemoryRun {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
}

/** Runs `mailroom` on a Mailroom in memory. The test mocks `openSession`: see `memory-session.ts`. */
export async function runInMemory(
  mailroom: MemoryMailroom,
  argv: readonly string[],
  options: Parameters<typeof capturedIo>[0] = {},
): Promise<MemoryRun> {
  sessionOn(mailroom);
  const { io, written } = capturedIo(options);
  const code = await runMailroom(argv, io);
  return { code, ...written };
}
