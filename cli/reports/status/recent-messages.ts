import { HOUR_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { isHeartbeat } from '../../../lambdas/runtime/events/heartbeat-event.ts';
import { STALE } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import { type InboxState, inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { eventIdTime, minuteOf } from '../../../lambdas/runtime/store/event-id.ts';
import { type OutboxReaderDeps, publishedIn } from '../../deployment/published-events.ts';
import { minutesOf } from '../../deployment/rows-reader.ts';
import type { Keep } from './kept-readings.ts';

/** A sampled event at one of the consumers that must receive it. Times are epoch milliseconds. */
export interface RecentMessage {
  readonly consumer: string;
  readonly eventId: string;
  readonly committedAt: number;
  readonly publishedAt: number;
  readonly isHeartbeat: boolean;
  readonly is: InboxState['is'];
  /** The latest claims, all of which ended without a result: the function crashed, or its time was up. */
  readonly crashes: number;
  readonly processedAt?: number | undefined;
  /** Its consumer discarded it because it was stale. */
  readonly isStale: boolean;
}

/** A sample of the last hour. */
export interface RecentSample {
  /** By their publish, oldest first. */
  readonly messages: readonly RecentMessage[];
  /** The sort keys of outbox rows that cannot be read. */
  readonly unreadable: readonly string[];
}

/** The period that is sampled. */
const RECENT_MS = HOUR_MS;

/** The rows read of each shard of a minute: all of them, where there is little traffic, and enough to notice a lost minute elsewhere. */
const ROWS_MAX = 5;

/** The time for which a minute is kept whose messages are all finished, and any other, milliseconds. */
const KEPT_MS = { finished: 20 * MINUTE_MS, open: MINUTE_MS };

const FINISHED: ReadonlySet<InboxState['is']> = new Set(['processed', 'discarded', 'rejected']);

/** True if a message still has to be processed. */
export function isUnprocessed({ is }: RecentMessage): boolean {
  return !FINISHED.has(is) && is !== 'unreadable';
}

/**
 * Reads the first events of each minute of the last hour, and what became of each at its consumers. SQS's counts cannot tell a busy
 * consumer from one that crashes, nor an idle one from one that no event reaches: the inbox rows can.
 *
 * @param periodMs - milliseconds @default the last hour
 */
export async function readRecent(
  deps: OutboxReaderDeps & { readonly directory: Directory; readonly keep: Keep; readonly now: number },
  periodMs = RECENT_MS,
): Promise<RecentSample> {
  const { keep, now } = deps;
  const minutes = minutesOf(now - periodMs, now - MINUTE_MS);
  // Events of a younger minute may still be unpublished.
  const settled = minuteOf(now - 2 * MINUTE_MS);
  const read = await Promise.all(
    minutes.map((minute) =>
      keep(
        `recent ${minute}`,
        ({ messages }) =>
          minute < settled && messages.every(({ is }) => FINISHED.has(is)) ? KEPT_MS.finished : KEPT_MS.open,
        () => readMinute(deps, minute),
      ),
    ),
  );
  const messages = read.flatMap((sample) => sample.messages);
  return {
    messages: messages.sort((a, b) => a.publishedAt - b.publishedAt),
    unreadable: read.flatMap(({ unreadable }) => unreadable),
  };
}

async function readMinute(
  deps: OutboxReaderDeps & { readonly directory: Directory; readonly now: number },
  minute: string,
): Promise<RecentSample> {
  const { items, unreadable } = await publishedIn(deps, minute, ROWS_MAX);
  const expected = items.flatMap((event) => {
    const { eventId, publishedAt } = event;
    const common = {
      eventId,
      publishedAt,
      committedAt: eventIdTime(eventId),
      isHeartbeat: isHeartbeat(event),
    };
    return event.consumers.map((consumer) => ({ consumer, ...common }));
  });
  const messages = await deps.stored.inbox.byEvents(expected, (message, row): RecentMessage => {
    const state = inboxState(row, deps.now);
    const isClaimed = state.is === 'leased' || state.is === 'abandoned';
    const crashes = isClaimed ? (state.row.unfinished ?? 0) + (state.is === 'abandoned' ? 1 : 0) : 0;
    const processedAt = state.is === 'processed' ? state.row.processedAt : undefined;
    const isStale = state.is === 'discarded' && state.row.reason === STALE;
    return { ...message, is: state.is, crashes, processedAt, isStale };
  });
  return { messages, unreadable };
}
