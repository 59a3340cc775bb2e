import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/rows.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Trace } from './trace-reader.ts';

/** An effect that may have happened although no result is stored: the function that ran it has stopped. */
export interface EffectInDoubt {
  readonly eventId: string;
  readonly consumer: string;
  readonly effect: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** The idempotency key under which its provider can be asked, and under which an attempt repeats it. */
  readonly key: string;
}

/** The effects in doubt of one message. @param row - its inbox row; absent if it does not exist or cannot be read */
export function doubtsOf(
  eventId: string,
  consumer: string,
  row: InboxRow | undefined,
  now: number,
): EffectInDoubt[] {
  if (row === undefined || row.status === 'PROCESSED' || row.status === 'DISCARDED') return [];
  return Object.entries(row.effects ?? {})
    .filter(([, effect]) => effect.status === 'IN_PROGRESS' && effect.endsBy + CLOCK_SKEW_MS < now)
    .map(([effect, { startedAt }]) => ({
      eventId,
      consumer,
      effect,
      startedAt,
      key: `${consumer}:${eventId}:${effect}`,
    }));
}

/** The effects in doubt of a chain of events: a member of the document of `mailroom why --json`. */
export function effectsInDoubt({ events }: Trace, now: number): EffectInDoubt[] {
  return events.flatMap(({ eventId, messages }) =>
    messages.flatMap(({ consumer, row }) => doubtsOf(eventId, consumer.name, readable(row), now)),
  );
}
