import type { Io } from '../../../../cli/frame/io.ts';
import { createOutput } from '../../../../cli/frame/output.ts';
import type { Session } from '../../../../cli/frame/session.ts';
import type { GlobalOptions } from '../../../../cli/frame/target.ts';
import { MailroomError } from '../../../../lambdas/runtime/errors.ts';
import { mailroomInMemory } from './mailroom-in-memory.ts';
import { wiringInMemory } from './wiring-in-memory.ts';

/** A Mailroom in memory on which `runInMemory` runs the whole command. */
export type MemoryMailroom = ReturnType<typeof mailroomInMemory> & {
  readonly deployed?: ReturnType<typeof wiringInMemory>;
};

/** A session on a Mailroom in memory, in place of `openSession`. It has no AWS clients. */
function memorySession(mailroom: MemoryMailroom, io: Io, { json = false }: GlobalOptions): Session {
  const { clock, table, queues, directory } = mailroom;
  const session = {
    output: createOutput(io, json),
    signal: io.signal,
    clock,
    clockIsTrusted: true,
    region: 'eu-west-1',
    directory,
    table,
    queues,
    operator: async () => 'arn:aws:sts::111122223333:assumed-role/ops/ada',
    commandLine: (command: string) => `npx mailroom ${command} --stage dev`,
    awsLine: (command: string) => `aws ${command} --region eu-west-1`,
    consumer: (name: string) => {
      const found = directory.consumers.find((entry) => entry.name === name);
      if (found === undefined) throw new MailroomError('NO_SUCH_CONSUMER', name);
      return found;
    },
  };
  return session as unknown as Session;
}

let current: MemoryMailroom = mailroomInMemory([]);

/** Selects the Mailroom of the next session. */
export function sessionOn(mailroom: MemoryMailroom): void {
  current = mailroom;
}

/**
 * What replaces `cli/frame/session.ts` and `cli/status/aws-wiring.ts` in a test that calls `runInMemory`.
 *
 * @example
 * ```ts
 * vi.mock('../../../cli/frame/session.ts', async () => (await import('./support/memory-session.ts')).mocks.session);
 * vi.mock('../../../cli/status/aws-wiring.ts', async () => (await import('./support/memory-session.ts')).mocks.wiring);
 * ```
 */
export const mocks = {
  session: { openSession: async (io: Io, options: GlobalOptions) => memorySession(current, io, options) },
  wiring: { awsWiring: () => (current.deployed ?? wiringInMemory()).wiring },
};
