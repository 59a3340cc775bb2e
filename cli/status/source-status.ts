import type { DeadLetterQueue } from '../../lambdas/runtime/operations/dead-letters.ts';
import type { QueueDepth, Queues } from '../../lambdas/runtime/operations/queues.ts';
import type { DeadPointer, RejectedPointer } from '../../lambdas/runtime/store/rows.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';

/** What a dead-letter source holds. Times are epoch milliseconds. */
export interface SourceStatus {
  /** Its name, e.g. `consumer:payments`. */
  readonly source: string;
  readonly count: number;
  /** When the oldest that was seen was first sent; for `dead`, when it became DEAD. */
  readonly oldestAt: number | null;
  /** When the first of them is permanently deleted. DEAD rows never are. */
  readonly firstExpiryAt: number | null;
}

/** A look at a queue sees this many dead letters. SQS hands out about the oldest first. */
const DEAD_LETTERS_SEEN = 10;

/** All that a queue holds. */
export function held(depth: QueueDepth | undefined): number {
  return (depth?.waiting ?? 0) + (depth?.inFlight ?? 0);
}

/** The DEAD events. */
export function deadEventsStatus(pointers: readonly (DeadPointer | UnreadableRow)[]): SourceStatus {
  const deadAt = pointers.flatMap((pointer) => readable(pointer)?.deadAt ?? []);
  return { source: 'dead', count: pointers.length, oldestAt: earliest(deadAt), firstExpiryAt: null };
}

/**
 * Looks into a dead-letter queue. SQS keeps a message for the queue's retention from its **first** send, also after it was moved
 * here, so the metric of a dead-letter queue's oldest message, which counts from the move, does not say when it is deleted.
 *
 * @param rejected - the consumer's rejected messages, for its own dead-letter queue: they say when all of them were sent
 */
export async function readSourceStatus(
  deps: { readonly queues: Queues; readonly now: number },
  { name: source, url }: DeadLetterQueue,
  depth: QueueDepth | undefined,
  rejected: readonly RejectedPointer[],
): Promise<SourceStatus> {
  const count = held(depth);
  if (depth === undefined || count === 0) return { source, count, oldestAt: null, firstExpiryAt: null };
  // Not hidden: a status that is read every two seconds must not stand in the way of a redrive.
  const letters = await deps.queues.receive(url, { limit: DEAD_LETTERS_SEEN, hideS: 0 });
  const sent = [...letters, ...rejected]
    .flatMap(({ sentAt }) => sentAt ?? [])
    // The dead letter of a rejection that is older than this is deleted already.
    .filter((sentAt) => sentAt + depth.retentionMs > deps.now);
  const oldestAt = earliest(sent);
  return { source, count, oldestAt, firstExpiryAt: oldestAt === null ? null : oldestAt + depth.retentionMs };
}

function earliest(times: readonly number[]): number | null {
  return times.length === 0 ? null : times.reduce((first, time) => Math.min(first, time));
}
