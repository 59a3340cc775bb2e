import { BEHIND_MS, COUNTS_LAG_MS, DELIVERY_GRACE_MS } from '../../../lambdas/runtime/base/patience.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { isHeartbeat } from '../../../lambdas/runtime/events/heartbeat-event.ts';
import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { RULE_DELAY_MS } from '../../../lambdas/runtime/operations/audit/audit-declaration.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { QueueDepth } from '../../../lambdas/runtime/operations/queues.ts';
import { eventIdTime, isEventId, minuteOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { WaitingMessage } from '../../deployment/message-reader.ts';
import { type OutboxReaderDeps, publishedIn, type SampledEvent } from '../../deployment/published-events.ts';
import type { BacklogHistory } from '../../deployment/resources.ts';
import { eachOf, minutesOf, once, type PartialList } from '../../deployment/rows-reader.ts';
import { isRising, NO_HISTORY, usualAgeMs } from './backlog-trend.ts';
import { type Keep, keepNothing } from './kept-readings.ts';
import type { RecentMessage } from './recent-messages.ts';

/** A consumer that may be in trouble although none of its messages is rejected. */
export interface Warning {
  readonly consumer: string;
  /**
   * `failing`: no message succeeds; `stalled`: no message is claimed; `crashing`: most messages are in flight and none ends; `behind`:
   * messages wait for longer than the alarm allows, or for longer than usual while their number rises; `missing`: events have not reached the consumer.
   */
  readonly look: 'failing' | 'stalled' | 'crashing' | 'behind' | 'missing';
  /** The messages that fail, or that wait in its queue, or that are in flight; or the missing ones of the sample. */
  readonly messages: number;
  /** The age of the oldest sampled event that shows it, milliseconds: since its commit (`failing`) or its publish (otherwise). */
  readonly forMs: number;
  /** `behind`: the age that its oldest message usually does not exceed, milliseconds; absent once it is older than the alarm allows. */
  readonly usualMs?: number;
  /** `failing`: the error of its newest failed message; absent if none is stored. */
  readonly lastError?: string;
  /** `missing`: the time from which an audit is certain, epoch milliseconds; `null` until its queue is empty. */
  readonly conclusiveAt?: number | null;
  /** `missing`: the events of this period that were published before this time and have no row are missing, epoch milliseconds. */
  readonly missingUntil?: number;
}

/** The readings of a consumer that {@link createWarnings} judges. */
export interface ConsumerReading {
  readonly consumer: ConsumerEntry;
  readonly depth: QueueDepth | undefined;
  /** Its failed and unfinished messages. */
  readonly failed: readonly WaitingMessage[];
  /** Its messages in the sample of the last hour, by their publish. */
  readonly recent: readonly RecentMessage[];
  /** A problem of its wiring was found, which explains unclaimed messages. */
  readonly isCut: boolean;
  /** It has dead letters: an event without a row may be one of them. */
  readonly hasDeadLetters: boolean;
}

/** Dependencies of {@link createWarnings}. */
export interface WarningDeps extends OutboxReaderDeps {
  readonly directory: Directory;
  /** Reads the history of a queue. @default none is known */
  readonly backlog?: ((queueUrl: string) => Promise<BacklogHistory>) | undefined;
  /** Keeps the events of minutes that are over. @default they are read */
  readonly keep?: Keep;
  readonly now: number;
}

/** The number of failed messages beside which none has succeeded: fewer may be chance in a consumer with little to do. */
const FAILING_MIN = 5;

/** Lambda receives an available message within seconds, and SQS's counts lag by a minute. */
const STALLED_MS = 2 * MINUTE_MS;

/** The minutes read at once, and at each end of the range in which messages fail. */
const MINUTES_MAX = 3;

/** The period before the newest message that shows whether a consumer claims. */
const NEWEST_MS = 3 * MINUTE_MS;

/** A function that crashed this often at a message is not only slow. */
const CRASHES_MIN = 2;

/** The events read of each shard of a minute: enough to find one success. */
const EVENTS_MAX = 50;

/** The inbox rows read at each end of a sample. */
const ROWS_MAX = 25;

/**
 * Returns a function that judges a consumer by a sample of its inbox rows: SQS's counts cannot tell a busy consumer from a stopped
 * one, and failed messages cannot tell whether others succeed.
 */
export function createWarnings(
  deps: WarningDeps,
): (reading: ConsumerReading) => Promise<Warning | undefined> {
  const { now } = deps;
  const sample = createSample(deps);

  async function failing({ consumer, failed }: ConsumerReading): Promise<Warning | undefined> {
    const births = failed
      .flatMap(({ eventId }) => (isEventId(eventId) ? [eventIdTime(eventId)] : []))
      .sort((a, b) => b - a);
    const since = births[FAILING_MIN - 1];
    if (since === undefined) return undefined;
    const { events, more } = await sample(consumer, ends(minutesOf(since, now), MINUTES_MAX), EVENTS_MAX);
    // Of a busy minute only the beginning is read, so there an earlier success of the minute counts, too.
    const from = more ? Math.floor(since / MINUTE_MS) * MINUTE_MS : since;
    // A heartbeat runs no handler, so its success says nothing about the others.
    const recent = events.filter((event) => !isHeartbeat(event) && eventIdTime(event.eventId) >= from);
    const messages = ends(recent, ROWS_MAX).map(({ eventId }) => ({ consumer: consumer.name, eventId }));
    const states = await deps.stored.inbox.byEvents(messages, (_message, row) => inboxState(row, now));
    if (states.some((state) => state.is === 'processed' && state.row.resolvedBy === undefined))
      return undefined;
    const found = {
      consumer: consumer.name,
      look: 'failing' as const,
      messages: failed.length,
      forMs: now - since,
    };
    const lastError = newestError(failed);
    return lastError === undefined ? found : { ...found, lastError };
  }

  return async (reading) =>
    (await failing(reading)) ?? unclaimed(reading, now) ?? fallingBehind(deps, reading);
}

function newestError(failed: readonly WaitingMessage[]): string | undefined {
  const errors = failed.flatMap(({ failedAt = 0, state }) =>
    state.is === 'failed' && state.row.lastError !== undefined
      ? [{ failedAt, text: state.row.lastError }]
      : [],
  );
  return errors.toSorted((a, b) => b.failedAt - a.failedAt)[0]?.text;
}

/** Judges a backlog that is not yet as old as the alarm allows. The history is read only if messages wait for minutes. */
async function fallingBehind(
  { backlog = async () => NO_HISTORY, now }: WarningDeps,
  { consumer, depth, recent, isCut }: ConsumerReading,
): Promise<Warning | undefined> {
  if (depth === undefined || depth.waiting === 0 || isCut) return undefined;
  const due = recent.filter(({ publishedAt }) => publishedAt >= (consumer.changedAt ?? 0));
  if (unclaimedSince(due, now - STALLED_MS) === undefined) return undefined;
  const history = await backlog(consumer.queue);
  const usualMs = usualAgeMs(history, recent, now);
  if (usualMs === undefined || !isRising(history, depth.waiting, now)) return undefined;
  const first = unclaimedSince(due, now - usualMs);
  const found = { consumer: consumer.name, look: 'behind' as const, messages: depth.waiting, usualMs };
  return first && { ...found, forMs: now - first.publishedAt };
}

/** Judges a consumer by the messages that it has not claimed. */
function unclaimed(reading: ConsumerReading, now: number): Warning | undefined {
  const { consumer, depth, recent, isCut, hasDeadLetters } = reading;
  if (depth === undefined || isCut) return undefined;
  const { waiting, inFlight } = depth;
  // Its earlier declaration may not have included older events.
  const due = recent.filter(({ publishedAt }) => publishedAt >= (consumer.changedAt ?? 0));
  const warning = (look: Warning['look'], messages: number, first: RecentMessage | undefined) =>
    first && { consumer: consumer.name, look, messages, forMs: now - first.publishedAt };
  // Lambda receives at once what a crashed function leaves: few messages wait, those that have just arrived or come back.
  if (inFlight > waiting) {
    const found = warning('crashing', inFlight, crashingSince(due, now));
    if (found !== undefined) return found;
  }
  if (waiting > 0) {
    const look = inFlight === 0 ? 'stalled' : 'behind';
    const found = warning(
      look,
      waiting,
      unclaimedSince(due, now - (look === 'stalled' ? STALLED_MS : BEHIND_MS)),
    );
    if (found !== undefined) return found;
  }
  return hasDeadLetters ? undefined : missing(consumer, due, now, waiting + inFlight > 0);
}

/** The newest messages that were published before a time. */
function newest(due: readonly RecentMessage[], until: number): readonly RecentMessage[] {
  const old = due.filter(({ publishedAt }) => publishedAt <= until);
  const from = (old.at(-1)?.publishedAt ?? 0) - NEWEST_MS;
  return old.filter(({ publishedAt }) => publishedAt >= from);
}

/** The first unclaimed message, if most after it are unclaimed. Between claimed ones, it is missing. */
function unclaimedSince(due: readonly RecentMessage[], until: number): RecentMessage | undefined {
  const last = newest(due, until);
  const later = last.slice(last.findIndex(({ is }) => is === 'absent'));
  const isClaiming = later.filter(({ is }) => is === 'absent').length * 2 < later.length;
  return isClaiming || later[0]?.is !== 'absent' ? undefined : later[0];
}

/** The first message that no attempt finishes, if there is no sign of work: a slow batch has a fresh lease or result. */
function crashingSince(due: readonly RecentMessage[], now: number): RecentMessage | undefined {
  const isStuck = ({ is, crashes }: RecentMessage) => is === 'absent' || crashes >= CRASHES_MIN;
  const works = due.some(
    ({ is, crashes, processedAt = 0 }) =>
      (is === 'leased' && crashes === 0) || processedAt > now - STALLED_MS,
  );
  const last = newest(due, now - STALLED_MS);
  return !works && last.every(isStuck) ? last[0] : undefined;
}

/** Events without a row that cannot be in the queue any more; late heartbeats are reported as such. @param isHeld - the queue is not empty: only a later claim proves it */
function missing(consumer: ConsumerEntry, due: readonly RecentMessage[], now: number, isHeld: boolean) {
  const claimedTo = due.findLast(({ is }) => is !== 'absent')?.publishedAt ?? 0;
  const until = isHeld ? Math.min(claimedTo, now - BEHIND_MS) : now - COUNTS_LAG_MS;
  const from = (consumer.changedAt ?? 0) + RULE_DELAY_MS;
  const lost = due.filter(
    ({ is, isHeartbeat, publishedAt }) =>
      is === 'absent' && !isHeartbeat && publishedAt >= from && publishedAt < until,
  );
  const [first] = lost;
  const last = lost.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const conclusiveAt = isHeld ? null : last.publishedAt + DELIVERY_GRACE_MS;
  const found = { consumer: consumer.name, look: 'missing' as const, messages: lost.length };
  return { ...found, forMs: now - first.publishedAt, conclusiveAt, missingUntil: until };
}

/** The events of a minute are kept for this long, milliseconds. */
const SAMPLE_KEPT_MS = MINUTE_MS;

/** Younger minutes are read each time: an event that is missing from an old sample would make a working consumer look as if it failed. */
const SETTLED_MS = 2 * MINUTE_MS;

/** Returns a function that reads the published events of minutes that a consumer must receive, each minute once. */
function createSample(deps: WarningDeps) {
  const { keep = keepNothing, now } = deps;
  const known = new Map<string, Promise<PartialList<SampledEvent>>>();
  const settled = minuteOf(now - SETTLED_MS);
  return async (consumer: ConsumerEntry, minutes: readonly string[], max: number) => {
    const pages = await eachOf(minutes, (minute) => {
      const read = () => publishedIn(deps, minute, max);
      const name = `${minute} ${max}`;
      const kept = () => keep(`events ${name}`, SAMPLE_KEPT_MS, read);
      return once(known, name, minute < settled ? kept : read);
    });
    const events = pages
      .flatMap(({ items }) => items)
      .filter((event) => event.consumers.includes(consumer.name))
      .sort((a, b) => a.publishedAt - b.publishedAt);
    return { events, more: pages.some(({ more }) => more) };
  };
}

/** The first and the last items of a list. */
function ends<T>(items: readonly T[], count: number): readonly T[] {
  return items.length <= 2 * count ? items : [...items.slice(0, count), ...items.slice(-count)];
}
