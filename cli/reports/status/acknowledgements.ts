import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { readOperations } from '../../deployment/operations.ts';

/** The commands that record an acknowledgement, and the end of one. */
export const ACK = 'ack';
export const ACK_REMOVE = 'ack remove';

/** The longest acknowledgement: each status reads the operations of this time. */
export const ACK_MAX_MS = 30 * DAY_MS;

/** An operator's acknowledgement of a known failure. Times are epoch milliseconds. */
export interface Acknowledgement {
  /** The text in the findings that are acknowledged, in any case. */
  readonly cause: string;
  /** When it ends. */
  readonly until: number;
  /** A finding with a higher count is not acknowledged; `null`: its findings have no count. */
  readonly upTo: number | null;
  readonly by: string;
  readonly reason: string;
  readonly at: number;
}

/** The parts of an acknowledgement that its operation's subject states. */
type AckTerms = Pick<Acknowledgement, 'cause' | 'until' | 'upTo'>;

const SUBJECT = /^(.+) until (\d{4}-\d\d-\d\dT[\d:.]+Z)(?:, up to (\d+))?$/s;

/** The subject of an acknowledgement in the operations log. */
export function ackSubject({ cause, until, upTo }: AckTerms): string {
  return `${cause} until ${new Date(until).toISOString()}${upTo === null ? '' : `, up to ${upTo}`}`;
}

/** The terms in a subject; `undefined` if it is not one of {@link ackSubject}. */
function termsOf(subject: string): AckTerms | undefined {
  const [, cause, until, upTo] = SUBJECT.exec(subject) ?? [];
  if (cause === undefined || until === undefined) return undefined;
  return { cause, until: Date.parse(until), upTo: upTo === undefined ? null : Number(upTo) };
}

/** Reads the acknowledgements that have not ended, newest first. The last operation about a cause counts. */
export async function readAcks(table: Table, now: number): Promise<readonly Acknowledgement[]> {
  const { operations } = await readOperations(table, now - ACK_MAX_MS, now);
  const acks = new Map<string, Acknowledgement | undefined>();
  for (const { command, subject, by, reason, at } of operations) {
    const terms = command === ACK ? termsOf(subject) : undefined;
    const cause = command === ACK_REMOVE ? subject : terms?.cause;
    if (cause !== undefined && !acks.has(cause)) acks.set(cause, terms && { ...terms, by, reason, at });
  }
  return [...acks.values()].flatMap((ack) => (ack !== undefined && ack.until > now ? [ack] : []));
}

/** The count with which a finding begins, e.g. `15 dead letters in …`; `null` for one without. */
export function countOf(what: string): number | null {
  const [count] = /^\d+/.exec(what) ?? [];
  return count === undefined ? null : Number(count);
}

/** True if a finding has a cause. A check that was not made has none. */
export function hasCause(what: string, cause: string): boolean {
  return what.toLowerCase().includes(cause.toLowerCase()) && !what.startsWith('not checked: ');
}

/** The acknowledgement of a finding at a time; `undefined` if there is none, it has ended, or the count has grown beyond it. */
export function ackOf(
  what: string,
  acks: readonly Acknowledgement[],
  now: number,
): Acknowledgement | undefined {
  const count = countOf(what) ?? 0;
  return acks.find(({ cause, until, upTo }) => until > now && hasCause(what, cause) && count <= (upTo ?? 0));
}
