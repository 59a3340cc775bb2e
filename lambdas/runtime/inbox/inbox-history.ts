import { DAY_MS } from '../base/units.ts';
import { eventIdTime, isEventId, unreadableId, unreadableMark } from '../store/event-id.ts';
import { isExternalEventId } from '../store/external-id.ts';
import type { InboxHistory, InboxRow } from '../store/inbox-row.ts';
import { isSuperseded } from '../store/last-sequence.ts';
import type { InboxRules, Message } from './inbox.ts';
import { inboxState, isFinal } from './inbox-state.ts';

/**
 * The time during which a function or process with the previous retention may still write rows under it, counted from the first start of the next
 * one: until it reads the history again, an invocation of at most 15 minutes, and clocks that differ by seconds.
 */
const OVERLAP_MS = DAY_MS;

/**
 * The time after which the history is read again, half of the overlap. Processes live for weeks, and two retentions can be in use side by side, e.g. in a
 * rollout that is stuck: each then records its own again, so that the shorter one counts for as long as rows are written under it.
 */
const READ_AGAIN_MS = OVERLAP_MS / 2;

/** Reads a history, unless it was read half a day ago or later. */
export function openedNow(
  { memory, clock }: Pick<InboxRules, 'memory' | 'clock'>,
  read: () => Promise<void>,
): Promise<void> {
  const now = clock.now();
  if (memory.opened !== undefined && now - memory.opened.at < READ_AGAIN_MS) return memory.opened.ended;
  const opened = {
    at: now,
    ended: read().catch((error: unknown) => {
      memory.opened = undefined; // the next message tries again
      throw error;
    }),
  };
  memory.opened = opened;
  return opened.ended;
}

/** Returns true if an operator has settled a message under the id of its body, which no version could read then. */
export async function wasSettledUnread(
  { memory }: Pick<InboxRules, 'memory'>,
  body: string,
  read: (id: string) => Promise<InboxRow | undefined>,
): Promise<boolean> {
  const { unreadableSettled: marks } = memory.history ?? {};
  if (marks === undefined) return false;
  const id = unreadableId(body);
  if (!marks.has(unreadableMark(id))) return false;
  return isFinal(inboxState(await read(id), 0));
}

/** The part of an inbox that determines which rows may have expired. */
interface InboxMemory extends Pick<InboxRules, 'inboxRetentionDays' | 'inboxSince' | 'memory'> {
  readonly clock: Pick<InboxRules['clock'], 'now'>;
}

/**
 * Returns the reason why an event without a row must not run: its row may have expired. `undefined` if its row cannot have expired.
 *
 *     created          handled                       row expires             replayed
 *       |-----------------|------ 35 days ------| spare day |-------------------|
 *                           raised to 400 days: |-------- too old, by 35 days ---
 *
 * A row expires a day after the retention in force when its message was handled: that was after the event was created, and after the
 * inbox's first start, which is recorded before its first row. So while every retention since the later of both is longer than the time
 * since then, the event would still have its row if it had been handled, and keeps it while its handler runs.
 */
export function forgottenBecause(
  { clock, inboxRetentionDays, inboxSince = 0, memory }: InboxMemory,
  eventId: string,
): string | undefined {
  // The id of an external event has no time: each one may have been processed under an earlier name.
  if (isExternalEventId(eventId)) return inboxSince > 0 ? renamed(inboxSince, 'is external') : undefined;
  if (!isEventId(eventId)) return undefined; // an unreadable message, which never runs
  const mintedAt = eventIdTime(eventId);
  if (mintedAt < inboxSince) return renamed(inboxSince, 'is older');
  const now = clock.now();
  const { handledFrom, days } = rowsOf(memory.history, mintedAt, inboxRetentionDays, now);
  if (now - handledFrom <= days * DAY_MS) return undefined;
  const which = days < inboxRetentionDays ? ', the shortest since it was written,' : '';
  return `The event is older than the inbox retention of ${days} days${which} ${MAY_HAVE_RUN}`;
}

/** As {@link forgottenBecause}. A superseded message never runs its handler, so it needs no row to be absorbed. */
export function mayHaveRunBecause(
  inbox: InboxMemory,
  { eventId, place }: Pick<Message, 'eventId' | 'place'>,
): string | undefined {
  return place !== undefined && isSuperseded(place) ? undefined : forgottenBecause(inbox, eventId);
}

function renamed(inboxSince: number, what: string): string {
  return `The consumer had another name until ${new Date(inboxSince).toISOString()}. The event ${what} ${MAY_HAVE_RUN}`;
}

const MAY_HAVE_RUN =
  'and has no row: it may have been processed before. If you know that it was not, let it run with `npx cdk-mailroom messages allow`.';

/** The times that an inbox's history tells of the rows of an event. */
interface EventRows {
  /** The earliest time at which the event can have been handled, epoch milliseconds. */
  readonly handledFrom: number;
  /** The shortest retention that was in force at any time since then, days. A row cannot have expired before `handledFrom` and these days. */
  readonly days: number;
}

/**
 * Returns the rows that an inbox can have had of an event. An inbox that has not started has handled nothing, however old the event is:
 * a replay to a new consumer runs for one retention after its first start.
 *
 * @param history - absent if the consumer has not started yet
 * @param mintedAt - epoch milliseconds
 * @param currentDays - the current retention
 */
export function rowsOf(
  history: Pick<InboxHistory, 'retentions'> | undefined,
  mintedAt: number,
  currentDays: number,
  now: number,
): EventRows {
  const { retentions = [] } = history ?? {};
  const [first] = retentions;
  const handledFrom = Math.max(mintedAt, first?.since ?? now);
  const since = retentions.filter((_, index) => {
    const next = retentions[index + 1];
    return next === undefined || next.since + OVERLAP_MS > handledFrom;
  });
  return { handledFrom, days: Math.min(currentDays, ...since.map(({ days }) => days)) };
}
