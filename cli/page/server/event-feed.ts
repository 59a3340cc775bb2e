import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { eventIdTime } from '../../../lambdas/runtime/store/event-id.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import type { OutboxReaderDeps } from '../../deployment/published-events.ts';
import { minutesOf, readMinutes, readSweepState } from '../../deployment/rows-reader.ts';
import { createEventCursor, type NewRow, newRow } from '../../reports/tail/event-cursor.ts';
import { createFollower, FOLLOWED_MAX, type FollowedEvent } from '../../reports/tail/event-follower.ts';
import type { Flow } from './protocol.ts';

/** The newest events and the states of their messages. */
export type EventFeed = ReturnType<typeof createEventFeed>;

/** The most rows of a minute that the first reading takes: 100 events a second, of shards that are not filled evenly. */
const FIRST_ROWS_MAX = 9_000;

/** Creates a feed that begins a minute ago, and earlier if there are too few events. */
export function createEventFeed({
  directory,
  table,
  stored,
  clock,
}: Pick<Deployment, 'directory' | 'table' | 'stored' | 'clock'>) {
  const follow = createFollower({ directory, stored });
  const committed = createRates();
  const processed = new Map(directory.consumers.map(({ name }) => [name, createRates()]));
  let cursor: ReturnType<typeof createEventCursor> | undefined;
  let earlier: ReturnType<typeof createEarlierEvents> | undefined;
  let isFirst = true;
  let fresh: readonly NewRow[] = [];
  let newest: readonly FollowedEvent[] = [];
  let sampledAt = Number.NEGATIVE_INFINITY;

  return {
    /** Reads the events that were committed since the call before. */
    readNew: async (now: number): Promise<void> => {
      if (cursor === undefined) {
        const { shards } = await readSweepState(directory, table);
        cursor = createEventCursor({ stored, shards }, now - RATES_OF_MS);
        earlier = createEarlierEvents({ stored, shards, clock }, now - RATES_OF_MS);
      }
      const { rows, more } = await cursor(now, isFirst ? FIRST_ROWS_MAX : undefined);
      isFirst = false;
      for (const { eventId } of rows) committed.add(eventIdTime(eventId));
      fresh = [...fresh, ...rows].slice(-FOLLOWED_MAX);
      if (more) sampledAt = now;
    },
    /** Reads the states of the newest events. */
    readStates: async (now: number): Promise<void> => {
      // The follower keeps them if it fails.
      const rows = fresh;
      fresh = [];
      const { events, processed: done } = await follow(rows, now);
      for (const { consumer, at } of done) processed.get(consumer)?.add(at);
      const all = new Map([...newest, ...events].map((event) => [event.eventId, event]));
      newest = [...all.values()].sort((a, b) => (a.eventId < b.eventId ? 1 : -1)).slice(0, FOLLOWED_MAX);
    },
    /** Reads events from before the feed began, unless it has enough. @returns true if it found any */
    readEarlier: async (): Promise<boolean> => {
      const free = FOLLOWED_MAX - newest.length - fresh.length;
      if (isFirst || earlier === undefined || earlier.isOver() || free <= 0) return false;
      // The first minute of the feed is read again from its start.
      const known = new Set([...newest, ...fresh].map(({ eventId }) => eventId));
      const rows = (await earlier.read(FOLLOWED_MAX)).filter(({ eventId }) => !known.has(eventId));
      fresh = [...rows.slice(-free), ...fresh];
      return rows.length > 0;
    },
    show: (
      now: number,
    ): Pick<Flow, 'committedPerS' | 'processedPerS' | 'events' | 'eventsSince' | 'isSample'> => ({
      committedPerS: committed.perS(now),
      processedPerS: Object.fromEntries([...processed].map(([name, rates]) => [name, rates.perS(now)])),
      events: newest,
      eventsSince: isFirst ? null : (earlier?.since() ?? null),
      isSample: now - sampledAt < RATES_OF_MS,
    }),
  };
}

/** The search ends this far back: with 8 shards, 2,880 queries of half a read unit. */
const BACK_MS = 6 * 3_600_000;

/** The partitions of this range are probed at once. */
const STEP_MS = 15 * MINUTE_MS;

/** A call returns after about this time, so that a slow search does not delay what is new. */
const CALL_MS = 1_000;

/** The most rows of a partition that are read. */
const ROWS_MAX = 1_000;

/**
 * Creates a search for the newest events before a time. The outbox has one partition for each minute and shard, and no index of those with rows: it probes them for one row
 * each, and then reads the minutes that have one, the newest first.
 *
 * @param before - epoch milliseconds; the rows of its minute are found, too
 */
export function createEarlierEvents(
  { stored, shards, clock }: OutboxReaderDeps & { readonly clock: Clock },
  before: number,
) {
  let from = Math.floor(before / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
  const first = from - BACK_MS;
  let isOver = false;

  async function rowsOf(minutes: readonly string[], max: number): Promise<NewRow[][]> {
    const read = await readMinutes(stored.outbox, { minutes, shards }, { max }, (row) => newRow(row) ?? []);
    return read.map(({ items }) => items.flat());
  }

  /** The newest rows of a range; the minutes are read one after the other until there are enough. */
  async function newestIn(since: number, until: number, max: number): Promise<NewRow[]> {
    const minutes = minutesOf(since, until - 1);
    const probes = await rowsOf(minutes, 1);
    const filled = minutes.filter((_, index) => probes[index]?.length !== 0);
    const found: NewRow[] = [];
    for (const minute of filled) {
      if (found.length >= max) break;
      const rows = (await rowsOf([minute], ROWS_MAX)).flat();
      found.unshift(...rows.sort((a, b) => (a.eventId < b.eventId ? -1 : 1)));
    }
    return found.slice(-max);
  }

  return {
    /** The search has come back to here, epoch milliseconds. */
    since: () => from,
    isOver: () => isOver,
    /**
     * Searches for about a second. A call that fails is repeated by the next one.
     *
     * @param max - the search is over when it has found this number
     * @returns the newest rows that were found, in order of commit
     */
    read: async (max: number): Promise<readonly NewRow[]> => {
      const endsAt = clock.now() + CALL_MS;
      let found: readonly NewRow[] = [];
      do {
        const since = Math.max(first, from - STEP_MS);
        found = [...(await newestIn(since, from, max - found.length)), ...found];
        from = since;
        isOver = from <= first || found.length >= max;
      } while (!isOver && clock.now() < endsAt);
      return found;
    },
  };
}

/** The length of an interval, milliseconds. */
const INTERVAL_MS = 2_000;

/** The number of intervals that are counted. */
const INTERVALS = 30;

/** The time that rates cover, milliseconds. */
const RATES_OF_MS = INTERVAL_MS * INTERVALS;

/** Counts what happened in each of the last 30 intervals of 2 seconds. */
function createRates() {
  const counts = new Map<number, number>();
  return {
    add: (at: number): void => {
      const interval = Math.floor(at / INTERVAL_MS);
      counts.set(interval, (counts.get(interval) ?? 0) + 1);
    },
    /** The number per second in each whole interval before `now`, oldest first. */
    perS: (now: number): number[] => {
      const current = Math.floor(now / INTERVAL_MS);
      for (const interval of counts.keys()) if (interval < current - INTERVALS) counts.delete(interval);
      return Array.from(
        { length: INTERVALS },
        (_, index) => ((counts.get(current - INTERVALS + index) ?? 0) * 1_000) / INTERVAL_MS,
      );
    },
  };
}
