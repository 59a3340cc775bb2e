import type { Clock } from '../../../../lambdas/runtime/base/clock.ts';
import type { Directory } from '../../../../lambdas/runtime/operations/directory.ts';
import { eventIdTime } from '../../../../lambdas/runtime/store/event-id.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { readSweepState } from '../../../deployment/rows-reader.ts';
import { createEventCursor, type NewRow } from '../../../reports/tail/event-cursor.ts';
import { createFollower, FOLLOWED_MAX, type FollowedEvent } from '../../../reports/tail/event-follower.ts';
import type { Flow } from '../protocol.ts';
import { createEarlierEvents, type EarlierEvents } from './earlier-events.ts';
import { createRates, RATES_OF_MS } from './rates.ts';

/** The newest events and the states of their messages. */
export interface EventFeed {
  /** Reads the events that were committed since the call before. */
  readNew(now: number): Promise<void>;
  /** Reads the states of the newest events. */
  readStates(now: number): Promise<void>;
  /** Reads events from before the feed began, unless it has enough. @returns true if it found any */
  readEarlier(): Promise<boolean>;
  show(now: number): Pick<Flow, 'committedPerS' | 'processedPerS' | 'events' | 'eventsSince' | 'isSample'>;
}

/** The most rows of a minute that the first reading takes: 100 events a second, of shards that are not filled evenly. */
const FIRST_ROWS_MAX = 9_000;

/** Dependencies of {@link createEventFeed}. */
export interface EventFeedDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly clock: Clock;
}

/** Creates a feed that begins a minute ago, and earlier if there are too few events. */
export function createEventFeed({ directory, table, clock }: EventFeedDeps): EventFeed {
  const follow = createFollower({ directory, table });
  const committed = createRates();
  const processed = new Map(directory.consumers.map(({ name }) => [name, createRates()]));
  let cursor: ReturnType<typeof createEventCursor> | undefined;
  let earlier: EarlierEvents | undefined;
  let isFirst = true;
  let fresh: readonly NewRow[] = [];
  let newest: readonly FollowedEvent[] = [];
  let sampledAt = Number.NEGATIVE_INFINITY;

  return {
    readNew: async (now) => {
      if (cursor === undefined) {
        const { shards } = await readSweepState(directory, table);
        cursor = createEventCursor({ table, shards }, now - RATES_OF_MS);
        earlier = createEarlierEvents({ table, shards, clock }, now - RATES_OF_MS);
      }
      const { rows, more } = await cursor(now, isFirst ? FIRST_ROWS_MAX : undefined);
      isFirst = false;
      for (const { eventId } of rows) committed.add(eventIdTime(eventId));
      fresh = [...fresh, ...rows].slice(-FOLLOWED_MAX);
      if (more) sampledAt = now;
    },
    readStates: async (now) => {
      // The follower keeps them if it fails.
      const rows = fresh;
      fresh = [];
      const { events, processed: done } = await follow(rows, now);
      for (const { consumer, at } of done) processed.get(consumer)?.add(at);
      const all = new Map([...newest, ...events].map((event) => [event.eventId, event]));
      newest = [...all.values()].sort((a, b) => (a.eventId < b.eventId ? 1 : -1)).slice(0, FOLLOWED_MAX);
    },
    readEarlier: async () => {
      const free = FOLLOWED_MAX - newest.length - fresh.length;
      if (isFirst || earlier === undefined || earlier.isOver() || free <= 0) return false;
      // The first minute of the feed is read again from its start.
      const known = new Set([...newest, ...fresh].map(({ eventId }) => eventId));
      const rows = (await earlier.read(FOLLOWED_MAX)).filter(({ eventId }) => !known.has(eventId));
      fresh = [...rows.slice(-free), ...fresh];
      return rows.length > 0;
    },
    show: (now) => ({
      committedPerS: committed.perS(now),
      processedPerS: Object.fromEntries([...processed].map(([name, rates]) => [name, rates.perS(now)])),
      events: newest,
      eventsSince: isFirst ? null : (earlier?.since() ?? null),
      isSample: now - sampledAt < RATES_OF_MS,
    }),
  };
}
