import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { isHeartbeat } from '../../../lambdas/runtime/events/heartbeat-event.ts';
import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { QueueDepth } from '../../../lambdas/runtime/operations/queues.ts';
import { eventIdTime, isEventId, minuteOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { readInboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { WaitingMessage } from '../../deployment/message-reader.ts';
import { type OutboxReaderDeps, publishedIn, type SampledEvent } from '../../deployment/published-events.ts';
import { eachOf, minutesOf, once, type PartialList, withItems } from '../../deployment/rows-reader.ts';
import { type Keep, keepNothing } from './kept-readings.ts';

/** A consumer that may be in trouble although none of its messages is rejected. */
export interface Warning {
  readonly consumer: string;
  /** `failing`: no message succeeds; `stalled`: no message is claimed; `behind`: messages wait for longer than the alarm allows. */
  readonly look: 'failing' | 'stalled' | 'behind';
  /** The messages that fail, or that wait in its queue. */
  readonly messages: number;
  /** The age of the oldest sampled event that shows it, milliseconds: since its commit (`failing`) or its publish (otherwise). */
  readonly forMs: number;
}

/** The readings of a consumer that {@link createWarnings} judges. */
export interface ConsumerReading {
  readonly consumer: ConsumerEntry;
  readonly depth: QueueDepth | undefined;
  /** Its failed and unfinished messages. */
  readonly failed: readonly WaitingMessage[];
  /** A problem of its wiring was found, which explains unclaimed messages. */
  readonly isCut: boolean;
}

/** Dependencies of {@link createWarnings}. */
export interface WarningDeps extends OutboxReaderDeps {
  readonly directory: Directory;
  /** Keeps the events of minutes that are over. @default they are read */
  readonly keep?: Keep;
  readonly now: number;
}

/** The number of failed messages beside which none has succeeded: fewer may be chance in a consumer with little to do. */
const FAILING_MIN = 5;

/** Lambda receives an available message within seconds, and SQS's counts lag by a minute. */
const STALLED_MS = 2 * MINUTE_MS;

/** The threshold of the alarm for a stalled consumer. */
const BEHIND_MS = 15 * MINUTE_MS;

/** The age of the oldest events in the sample of a queue. */
const SAMPLED_MS = 20 * MINUTE_MS;

/** The minutes read at once, and at each end of the range in which messages fail. */
const MINUTES_MAX = 3;

/** The events read of each shard of a minute: enough to find one success, or to see that messages are unclaimed. */
const EVENTS_MAX = { failing: 50, unclaimed: 5 };

/** The inbox rows read at each end of a sample. */
const ROWS_MAX = 25;

/**
 * Returns a function that judges a consumer by a sample of its inbox rows: SQS's counts cannot tell a busy consumer from a stopped
 * one, and failed messages cannot tell whether others succeed. It reads nothing unless messages wait or many fail.
 */
export function createWarnings(
  deps: WarningDeps,
): (reading: ConsumerReading) => Promise<Warning | undefined> {
  const sample = createSample(deps);
  const statesOf = ({ name }: ConsumerEntry, events: readonly SampledEvent[]) =>
    withItems(
      deps.table,
      events,
      ({ eventId }) => inboxKey(name, eventId),
      (event, item) => ({ event, state: inboxState(readInboxRow(item), deps.now) }),
    );

  async function failing({ consumer, failed }: ConsumerReading): Promise<Warning | undefined> {
    const births = failed
      .flatMap(({ eventId }) => (isEventId(eventId) ? [eventIdTime(eventId)] : []))
      .sort((a, b) => b - a);
    const since = births[FAILING_MIN - 1];
    if (since === undefined) return undefined;
    const { events, more } = await sample(
      consumer,
      ends(minutesOf(since, deps.now), MINUTES_MAX),
      EVENTS_MAX.failing,
    );
    // Of a busy minute only the beginning is read, so there an earlier success of the minute counts, too.
    const from = more ? Math.floor(since / MINUTE_MS) * MINUTE_MS : since;
    // A heartbeat runs no handler, so its success says nothing about the others.
    const recent = events.filter((event) => !isHeartbeat(event) && eventIdTime(event.eventId) >= from);
    const read = await statesOf(consumer, ends(recent, ROWS_MAX));
    if (read.some(({ state }) => state.is === 'processed' && state.row.resolvedBy === undefined))
      return undefined;
    return { consumer: consumer.name, look: 'failing', messages: failed.length, forMs: deps.now - since };
  }

  async function unclaimed({ consumer, depth, isCut }: ConsumerReading): Promise<Warning | undefined> {
    if (depth === undefined || depth.waiting === 0 || isCut) return undefined;
    const look = depth.inFlight === 0 ? 'stalled' : 'behind';
    const until = deps.now - (look === 'stalled' ? STALLED_MS : BEHIND_MS);
    const due = await newestDue(consumer, until);
    const read = await statesOf(consumer, ends(due, ROWS_MAX));
    const first = read.findIndex(({ state }) => state.is === 'absent');
    const oldest = read[first];
    if (oldest === undefined) return undefined;
    const later = read.slice(first);
    // Between claimed events, an unclaimed one is a lost message, which the audit finds.
    if (later.filter(({ state }) => state.is === 'absent').length * 2 < later.length) return undefined;
    const forMs = deps.now - oldest.event.publishedAt;
    return { consumer: consumer.name, look, messages: depth.waiting, forMs };
  }

  /** The newest events that a consumer must receive and that were published before a time: of the first minutes that have any. */
  async function newestDue(consumer: ConsumerEntry, until: number): Promise<readonly SampledEvent[]> {
    const minutes = minutesOf(deps.now - SAMPLED_MS, until);
    for (let read = 0; read < minutes.length; read += MINUTES_MAX) {
      const step = minutes.slice(read, read + MINUTES_MAX);
      const { events } = await sample(consumer, step, EVENTS_MAX.unclaimed);
      const due = events.filter(
        // Its earlier declaration may not have included older events.
        ({ publishedAt }) => publishedAt <= until && publishedAt >= (consumer.changedAt ?? 0),
      );
      if (due.length > 0) return due;
    }
    return [];
  }

  return async (reading) => (await failing(reading)) ?? unclaimed(reading);
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
      const kept = () => keep(`events ${name}`, read, () => SAMPLE_KEPT_MS);
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
