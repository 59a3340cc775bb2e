import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { table } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { createStatusReader } from './status-reader.ts';
import type { StatusReport } from './status-report.ts';

/** Another Mailroom on the bus. */
export interface NeighborStatus {
  readonly stack: string;
  /** `null`: it could not be read. */
  readonly state: StatusReport['state'] | null;
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

/** Creates a reader of the other Mailrooms on a deployment's bus; it keeps what `createStatusReader` keeps. */
export function createBusReader({ neighbors = [] }: Deployment): () => Promise<NeighborStatus[]> {
  const readers = neighbors.map((deployment) => ({ deployment, reader: createStatusReader(deployment) }));
  const readOne = async ({ deployment, reader }: (typeof readers)[number]): Promise<NeighborStatus> => {
    const { stack } = deployment.directory.mailroom;
    const next = deployment.commandLine(shell`status`);
    try {
      const { state, outbox, consumers } = await reader.read();
      const { pending, dead } = outbox;
      const counts = Object.entries(consumers).map(
        ([name, { backlog, deadLetters }]) => [name, { backlog, deadLetters }] as const,
      );
      return { stack, state, error: null, pending, dead, consumers: Object.fromEntries(counts), next };
    } catch (error) {
      const text = `${errorCode(error)}: ${errorMessage(error)}`;
      return { stack, state: null, error: text, pending: 0, dead: 0, consumers: {}, next };
    }
  };
  return () => Promise.all(readers.map(readOne));
}

/** True if another Mailroom requires action, or could not be read. */
export function isNeighborOpen({ state }: NeighborStatus): boolean {
  return state !== 'ok';
}

/** The other Mailrooms as text, with the command for each that requires action; nothing without one. */
export function busText(neighbors: readonly NeighborStatus[]): string[] {
  if (neighbors.length === 0) return [];
  const rows = neighbors.flatMap(({ stack, state, pending, dead, consumers }) => {
    const outbox = [stack, stated(state), String(pending), String(dead), '', '', ''];
    const below = Object.entries(consumers).map(([name, { backlog, deadLetters }]) => [
      ...['', '', '', '', name],
      String(backlog),
      deadLetters > 0 ? paint.red(String(deadLetters)) : '0',
    ]);
    return [outbox, ...below];
  });
  const head = ['on this bus', 'state', 'pending', 'dead', 'consumer', 'backlog', 'dead letters'];
  const todo = neighbors.filter(isNeighborOpen).map(({ stack, error, next }) => {
    const text = error === null ? 'has findings' : `could not be read (${error})`;
    return `${prose(`${stack} ${text}:`)}\n  ${paint.bold(next)}`;
  });
  return [[table(head, rows), ...todo].join('\n')];
}

function stated(state: NeighborStatus['state']): string {
  if (state === 'ok') return paint.green(state);
  return state === 'look' ? paint.yellow(state) : paint.red(state ?? 'unknown');
}
