import type { Clock } from '../../../../lambdas/runtime/base/clock.ts';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { eventIdOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { EVENT_PREFIX } from '../../../../lambdas/runtime/store/keys.ts';
import type { OutboxReaderDeps } from '../../../deployment/published-events.ts';
import { eachOf, minutesOf, partitionsOf } from '../../../deployment/rows-reader.ts';
import type { NewRow } from '../../../reports/tail/event-cursor.ts';

/** The search ends this far back: with 8 shards, 2,880 queries of half a read unit. */
const BACK_MS = 6 * 3_600_000;

/** The partitions of this range are probed at once. */
const STEP_MS = 15 * MINUTE_MS;

/** A call returns after about this time, so that a slow search does not delay what is new. */
const CALL_MS = 1_000;

/** The most rows of a partition that are read. */
const ROWS_MAX = 1_000;

/** A search for the newest events before a time. */
export interface EarlierEvents {
  /** The search has come back to here, epoch milliseconds. */
  since(): number;
  isOver(): boolean;
  /**
   * Searches for about a second. A call that fails is repeated by the next one.
   *
   * @param max - the search is over when it has found so many
   * @returns the newest rows that were found, in order of commit
   */
  read(max: number): Promise<readonly NewRow[]>;
}

/**
 * Creates a search. The outbox has one partition for each minute and shard, and no index of those with rows: it probes them for one row
 * each, the newest first, and then reads those that have one.
 *
 * @param before - epoch milliseconds; the rows of its minute are found, too
 */
export function createEarlierEvents(
  { table, shards, clock }: OutboxReaderDeps & { readonly clock: Clock },
  before: number,
): EarlierEvents {
  let from = Math.floor(before / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
  const first = from - BACK_MS;
  let isOver = false;

  async function rowsOf(partitions: readonly string[], limit: number): Promise<(readonly NewRow[])[]> {
    return eachOf(partitions, async (pk) => {
      const { items } = await table.query({ pk, skPrefix: EVENT_PREFIX, limit });
      return items.flatMap((item) => {
        const eventId = eventIdOf(item);
        return eventId === undefined ? [] : [{ eventId, item }];
      });
    });
  }

  /** The newest rows of a range; the minutes are read one after the other until there are enough. */
  async function newestIn(since: number, until: number, max: number): Promise<NewRow[]> {
    const minutes = minutesOf(since, until - 1);
    const partitions = minutes.flatMap((minute) => partitionsOf(minute, shards));
    const probes = await rowsOf(partitions, 1);
    const filled = new Set(partitions.filter((_, index) => probes[index]?.length !== 0));
    const found: NewRow[] = [];
    for (const minute of minutes) {
      if (found.length >= max) break;
      const own = partitionsOf(minute, shards).filter((partition) => filled.has(partition));
      const rows = (await rowsOf(own, ROWS_MAX)).flat();
      found.unshift(...rows.sort((a, b) => (a.eventId < b.eventId ? -1 : 1)));
    }
    return found.slice(-max);
  }

  return {
    since: () => from,
    isOver: () => isOver,
    read: async (max) => {
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
