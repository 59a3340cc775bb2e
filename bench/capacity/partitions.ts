import { PARTITION } from './quotas.ts';

/** How finely the key space is cut: a partition owns a run of slots, and a key falls into one. */
export const SLOTS = 65_536;

/** The physical partitions of a table, each with its own bucket of write units. */
export interface Partitions {
  /** Fills every bucket for this much time, and lets those split that have been too hot for too long. */
  fill(seconds: number): void;
  /** Takes the units of one write, if its partition has them. */
  take(slot: number, units: number): boolean;
  /** Takes the units of two writes of one transaction: of both or of none. */
  takeBoth(slot: number, units: number, otherSlot: number, otherUnits: number): boolean;
  count(): number;
}

interface Partition {
  first: number;
  end: number;
  units: number;
  /** Whether it throttled since the last whole second. */
  throttled: boolean;
  /** In how many seconds on end it throttled. */
  hotSeconds: number;
}

/**
 * Makes equal partitions with full buckets.
 *
 * @param keptSeconds - how many seconds of unused units a bucket holds
 * @param splitAfterSeconds - a partition that throttled in each of so many seconds on end splits in two
 */
export function createPartitions(
  count: number,
  keptSeconds: number,
  splitAfterSeconds = Number.POSITIVE_INFINITY,
): Partitions {
  const unitsMax = PARTITION.writeUnits * keptSeconds;
  const partitions: Partition[] = [];
  const owners: Partition[] = new Array(SLOTS);
  let elapsed = 0;

  const own = (first: number, end: number) => {
    const partition = { first, end, units: unitsMax, throttled: false, hotSeconds: 0 };
    partitions.push(partition);
    owners.fill(partition, first, end);
  };
  const edge = (index: number) => Math.round((index * SLOTS) / count);
  for (let index = 0; index < count; index += 1) own(edge(index), edge(index + 1));

  const ownerOf = (slot: number) => owners[slot] as Partition;

  function splitHot(): void {
    for (const partition of [...partitions]) {
      partition.hotSeconds = partition.throttled ? partition.hotSeconds + 1 : 0;
      partition.throttled = false;
      if (partition.hotSeconds < splitAfterSeconds || partition.end - partition.first < 2) continue;
      const middle = (partition.first + partition.end) >> 1;
      own(middle, partition.end);
      partition.end = middle;
      partition.hotSeconds = 0;
    }
  }

  return {
    fill: (seconds) => {
      for (const partition of partitions)
        partition.units = Math.min(unitsMax, partition.units + PARTITION.writeUnits * seconds);
      const before = Math.floor(elapsed);
      elapsed += seconds;
      if (Math.floor(elapsed) > before) splitHot();
    },
    take: (slot, units) => {
      const partition = ownerOf(slot);
      if (partition.units < units) {
        partition.throttled = true;
        return false;
      }
      partition.units -= units;
      return true;
    },
    takeBoth: (slot, units, otherSlot, otherUnits) => {
      const [one, other] = [ownerOf(slot), ownerOf(otherSlot)];
      const needed = one === other ? units + otherUnits : units;
      if (one.units < needed) one.throttled = true;
      if (other.units < otherUnits) other.throttled = true;
      if (one.units < needed || other.units < otherUnits) return false;
      one.units -= units;
      other.units -= otherUnits;
      return true;
    },
    count: () => partitions.length,
  };
}
