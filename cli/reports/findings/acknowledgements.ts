import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { readOperations } from '../../deployment/operations.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';

/** The commands that record an acknowledgement, and the end of one. */
export const ACK = 'ack';
export const ACK_REMOVE = 'ack remove';

/** The longest acknowledgement: each status reads the operations of this time. */
export const ACK_MAX_MS = 30 * DAY_MS;

/** An operator's acknowledgement of one finding. Times are epoch milliseconds. */
export interface Acknowledgement {
  /** The id of the finding. */
  readonly finding: string;
  /** When it ends. */
  readonly until: number;
  /** Above this count, the finding is not acknowledged; `null`: it had no count. */
  readonly upTo: number | null;
  readonly by: string;
  readonly reason: string;
  readonly at: number;
}

/** Reads the acknowledgements that have not ended, newest first. The last operation about a finding counts. */
export async function readAcks(
  stored: Pick<StoredRows, 'operations'>,
  now: number,
): Promise<readonly Acknowledgement[]> {
  const { operations } = await readOperations(stored, now - ACK_MAX_MS, now);
  const acks = new Map<string, Acknowledgement | undefined>();
  for (const { command, finding, until = 0, upTo = null, by, reason, at } of operations) {
    const isAck = command === ACK;
    if (finding === undefined || acks.has(finding) || !(isAck || command === ACK_REMOVE)) continue;
    acks.set(finding, isAck ? { finding, until, upTo, by, reason, at } : undefined);
  }
  return [...acks.values()].flatMap((ack) => (ack !== undefined && ack.until > now ? [ack] : []));
}

/** The acknowledgement of a finding at a time; `undefined` if there is none, it has ended, or the count has grown beyond it. */
export function ackOf(
  { id, count }: { readonly id?: string; readonly count: number | null },
  acks: readonly Acknowledgement[],
  now: number,
): Acknowledgement | undefined {
  return acks.find(
    ({ finding, until, upTo }) => finding === id && until > now && (count ?? 1) <= (upTo ?? 1),
  );
}
