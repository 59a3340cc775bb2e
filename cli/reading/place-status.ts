import type { QueueDepth, Queues } from '../../lambdas/runtime/operations/queues.ts';
import type { DeadPointer, RejectedPointer } from '../../lambdas/runtime/store/rows.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { QueuePlace } from './place.ts';

/** What lies in one of the places where a message is dead. Times are epoch milliseconds. */
export interface PlaceStatus {
  readonly place: string;
  readonly count: number;
  /** When the oldest that was seen was sent for the first time; for `dead`, when it became DEAD. */
  readonly oldestAt: number | null;
  /** When the first of them is deleted for ever. DEAD rows never are. */
  readonly firstExpiryAt: number | null;
}

/** A look at a queue sees this many letters. SQS hands out about the oldest first. */
const LETTERS_SEEN = 10;

/** All that a queue holds. */
export function held(depth: QueueDepth | undefined): number {
  return (depth?.waiting ?? 0) + (depth?.inFlight ?? 0);
}

/** The DEAD events. */
export function placeOfDead(pointers: readonly (DeadPointer | UnreadableRow)[]): PlaceStatus {
  const deadAt = pointers.flatMap((pointer) => readable(pointer)?.deadAt ?? []);
  return { place: 'dead', count: pointers.length, oldestAt: earliest(deadAt), firstExpiryAt: null };
}

/**
 * Looks into a queue of letters. SQS keeps a message for the queue's retention from its **first** send, also after it was moved
 * here, so the metric of a dead-letter queue's oldest message, which counts from the move, does not say when it goes.
 *
 * @param rejected - the consumer's rejected messages, for its own dead-letter queue: they say when all of them were sent
 */
export async function readPlace(
  deps: { readonly queues: Queues; readonly now: number },
  { place, url }: QueuePlace,
  depth: QueueDepth | undefined,
  rejected: readonly RejectedPointer[],
): Promise<PlaceStatus> {
  const count = held(depth);
  if (depth === undefined || count === 0) return { place, count, oldestAt: null, firstExpiryAt: null };
  // Not hidden at all: whoever looks every two seconds must not stand in the way of a redrive.
  const letters = await deps.queues.receive(url, { limit: LETTERS_SEEN, hideS: 0 });
  const sent = [...letters, ...rejected]
    .flatMap(({ sentAt }) => sentAt ?? [])
    // The letter of a rejection that is older than this is gone already.
    .filter((sentAt) => sentAt + depth.retentionMs > deps.now);
  const oldestAt = earliest(sent);
  return { place, count, oldestAt, firstExpiryAt: oldestAt === null ? null : oldestAt + depth.retentionMs };
}

function earliest(times: readonly number[]): number | null {
  return times.length === 0 ? null : times.reduce((first, time) => Math.min(first, time));
}
