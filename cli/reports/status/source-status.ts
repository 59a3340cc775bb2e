import type { DeadLetterQueue } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { QueueDepth, Queues } from '../../../lambdas/runtime/operations/queues.ts';
import type { RejectedPointer } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { DeadPointer } from '../../../lambdas/runtime/store/outbox-row.ts';
import { readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { refusalCode } from '../../deployment/refusal-code.ts';

/** The contents of a dead-letter source. Times are epoch milliseconds. */
export interface SourceStatus {
  /** Its name, e.g. `consumer:payments`. */
  readonly source: string;
  readonly count: number;
  /** First send of the oldest dead letter seen; for `dead`, when it became DEAD. */
  readonly oldestAt: number | null;
  /** When the first of them is permanently deleted; `null` for DEAD rows, which are kept. */
  readonly firstExpiryAt: number | null;
  /** Of `rule:<consumer>`: EventBridge's error code on the newest dead letter seen, e.g. `NO_PERMISSIONS`. @default none was seen */
  readonly errorCode?: string;
}

/** The dead letters received from a queue. SQS returns roughly the oldest first. */
const DEAD_LETTERS_SEEN = 10;

/** All messages of a queue. */
export function held(depth: QueueDepth | undefined): number {
  return (depth?.waiting ?? 0) + (depth?.inFlight ?? 0);
}

/** The status of the source `dead`. */
export function deadEventsStatus(pointers: readonly (DeadPointer | UnreadableRow)[]): SourceStatus {
  const deadAt = pointers.flatMap((pointer) => readable(pointer)?.deadAt ?? []);
  return { source: 'dead', count: pointers.length, oldestAt: earliest(deadAt), firstExpiryAt: null };
}

/**
 * Reads the status of a dead-letter queue. SQS deletes a message one retention period after its **first** send, even if it was
 * moved here later, so the metric of the oldest message, which counts from the move, does not show when it is deleted.
 *
 * @param rejected - for the consumer's own dead-letter queue: its rejected messages, with the times of their first send
 */
export async function readSourceStatus(
  deps: { readonly queues: Queues; readonly now: number },
  { name: source, kind, url }: DeadLetterQueue,
  depth: QueueDepth | undefined,
  rejected: readonly RejectedPointer[],
): Promise<SourceStatus> {
  const count = held(depth);
  if (depth === undefined || count === 0) return { source, count, oldestAt: null, firstExpiryAt: null };
  // Not hidden: a status that is read every two seconds must not block a redrive.
  const letters = await deps.queues.receive(url, { limit: DEAD_LETTERS_SEEN, hideS: 0 });
  const sent = [...letters, ...rejected]
    .flatMap(({ sentAt }) => sentAt ?? [])
    // The dead letter of an older rejection is already deleted.
    .filter((sentAt) => sentAt + depth.retentionMs > deps.now);
  const oldestAt = earliest(sent);
  const firstExpiryAt = oldestAt === null ? null : oldestAt + depth.retentionMs;
  const newest = letters.toSorted((a, b) => b.sentAt - a.sentAt)[0];
  const errorCode = kind === 'rule' ? refusalCode(newest) : undefined;
  return { source, count, oldestAt, firstExpiryAt, ...(errorCode !== undefined && { errorCode }) };
}

function earliest(times: readonly number[]): number | null {
  return times.length === 0 ? null : times.reduce((first, time) => Math.min(first, time));
}
