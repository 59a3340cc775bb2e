import { rm } from 'node:fs/promises';
import { poll, tail } from '../../../localstack/health.ts';
import { type ServerCommand, type ServerProcess, startProcess } from './server-process.ts';

/** A server answers within seconds; this long only on a machine that does something else. */
const READY_DEADLINE_MS = 120_000;

/** A broker on the loopback address, with its own data folder. */
export interface Broker {
  /** Starts it on its data and waits until it answers its clients. */
  readonly start: () => Promise<void>;
  /** Stops it as an operator does. Its data stays. */
  readonly stop: () => Promise<void>;
  /** Ends it as `kill -9` does. Its data stays. */
  readonly kill: () => Promise<void>;
  /** Stops it and removes its data. */
  readonly close: () => Promise<void>;
  /** The id of the server's process, if it runs. */
  readonly pid: () => number | undefined;
}

/** The parts in which the brokers differ. */
export interface BrokerOptions {
  readonly command: ServerCommand;
  /** The folder to remove. */
  readonly dir: string;
  /** Connects as a client does, and fails as long as the broker is not ready. */
  readonly connect: () => Promise<void>;
  /** Runs after the broker itself was closed. */
  readonly closed?: () => Promise<void>;
}

/** A broker that is not started yet. */
export function brokerOf({ command, dir, connect, closed }: BrokerOptions): Broker {
  let server: ServerProcess | undefined;
  const start = async () => {
    const started = startProcess(command);
    server = started;
    const state = await poll(READY_DEADLINE_MS, async () => {
      if (started.hasEnded()) return 'ended';
      return await connect().then(
        () => 'ready',
        () => undefined,
      );
    });
    if (state === 'ready') return;
    await started.kill();
    const what = state ?? `did not answer within ${READY_DEADLINE_MS / 1_000} s`;
    throw new Error(`${command.command} ${what}. The last lines of ${command.log}:\n${tail(command.log)}`);
  };
  const stop = async () => await server?.stop();
  return {
    start,
    stop,
    kill: async () => await server?.kill(),
    close: async () => {
      await stop();
      await closed?.();
      await rm(dir, { recursive: true, force: true });
    },
    pid: () => (server === undefined || server.hasEnded() ? undefined : server.pid),
  };
}
