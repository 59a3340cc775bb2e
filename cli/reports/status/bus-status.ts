import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { busFaults } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { busPath } from '../../../lambdas/runtime/operations/bus-directory.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { table } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { createStatusReader } from './status-reader.ts';
import type { StatusReport } from './status-report.ts';

/** Another Mailroom on the bus. */
export interface NeighborStatus {
  /** `null`: its entry cannot be used, and `parameter` names it. */
  readonly stack: string | null;
  /** The parameter that cannot be used; `null` if all can. */
  readonly parameter: string | null;
  /** `null`: it could not be read. */
  readonly state: StatusReport['state'] | null;
  /** The code of why it could not be read, such as `BAD_DIRECTORY`; `null` if it was. */
  readonly code: string | null;
  /** Why it could not be read; `null` if it was. */
  readonly error: string | null;
  /** PENDING and DEAD events of its outbox. */
  readonly pending: number;
  readonly dead: number;
  /** By consumer: messages in its queue, and in its dead-letter queue. */
  readonly consumers: Readonly<Record<string, { readonly backlog: number; readonly deadLetters: number }>>;
  /** The command that shows its findings. */
  readonly next: string;
}

/**
 * Creates a reader of the other Mailrooms on a deployment's bus; it keeps what `createStatusReader` keeps. What cannot be read is in its result.
 *
 * @param isRepeated - see `createStatusReader` @default true
 */
export function createBusReader(deployment: Deployment, isRepeated = true): () => Promise<NeighborStatus[]> {
  const { neighbors = [], claims } = deployment;
  const next = deployment.commandLine(shell`doctor`);
  const fine = { parameter: null, code: null, error: null };
  // Read once, as the directories are.
  let faults: NeighborStatus[] | undefined;
  const unread = { state: null, pending: 0, dead: 0, consumers: {} };
  const readers = neighbors.map((deployment) => ({
    deployment,
    reader: createStatusReader(deployment, isRepeated),
  }));
  const readOne = async ({ deployment, reader }: (typeof readers)[number]): Promise<NeighborStatus> => {
    const { stack } = deployment.directory.mailroom;
    const next = deployment.commandLine(shell`status`);
    try {
      const { state, outbox, consumers } = await reader.read();
      const { pending, dead } = outbox;
      const counts = Object.entries(consumers).map(
        ([name, { backlog, deadLetters }]) => [name, { backlog, deadLetters }] as const,
      );
      return { ...fine, stack, state, pending, dead, consumers: Object.fromEntries(counts), next };
    } catch (error) {
      return { ...unread, ...fine, stack, code: errorCode(error), error: errorMessage(error), next };
    }
  };
  const faultOf = (parameter: string, code: string, error: string) =>
    ({ ...unread, stack: null, parameter, code, error, next }) satisfies NeighborStatus;
  const readFaults = async (): Promise<NeighborStatus[]> => {
    try {
      faults ??= busFaults(deployment, await claims?.()).map(({ parameter, text }) =>
        faultOf(parameter, 'BAD_DIRECTORY', text),
      );
      return faults;
    } catch (error) {
      return [faultOf(busPath(deployment.directory.mailroom.bus), errorCode(error), errorMessage(error))];
    }
  };
  return async () => (await Promise.all([...readers.map(readOne), readFaults()])).flat();
}

/** True if another Mailroom requires action, or could not be read. */
export function isNeighborOpen({ state }: NeighborStatus): boolean {
  return state !== 'ok';
}

/** The other Mailrooms as text, with the command for each that requires action; nothing without one. */
export function busText(neighbors: readonly NeighborStatus[]): string[] {
  if (neighbors.length === 0) return [];
  const rows = neighbors.flatMap(({ stack, state, pending, dead, parameter, consumers }) => {
    const outbox = [stack ?? parameter ?? '', stated(state), String(pending), String(dead), '', '', ''];
    const below = Object.entries(consumers).map(([name, { backlog, deadLetters }]) => [
      ...['', '', '', '', name],
      String(backlog),
      deadLetters > 0 ? paint.red(String(deadLetters)) : '0',
    ]);
    return [outbox, ...below];
  });
  const head = ['on this bus', 'state', 'pending', 'dead', 'consumer', 'backlog', 'dead letters'];
  const todo = neighbors.filter(isNeighborOpen).map(({ stack, parameter, code, error, next }) => {
    const text = error === null ? 'has findings' : `could not be read (${code}: ${error})`;
    return `${prose(`${stack ?? parameter} ${text}:`)}\n  ${paint.bold(next)}`;
  });
  return [[table(head, rows), ...todo].join('\n')];
}

function stated(state: NeighborStatus['state']): string {
  if (state === 'ok') return paint.green(state);
  return state === 'look' ? paint.yellow(state) : paint.red(state ?? 'unknown');
}
