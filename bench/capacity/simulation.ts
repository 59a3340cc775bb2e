import { CONSUME_AFTER_MS, MARK_AFTER_MS, RETRY_MS } from '../assumptions.ts';
import type { Demand } from './demand.ts';
import { createPartitions, SLOTS } from './partitions.ts';
import { createRandom, poisson, scramble } from './random.ts';

/** A table, and what comes to it. */
export interface SimulationSettings {
  readonly demand: Demand;
  readonly eventsPerSecond: number;
  readonly shards: number;
  readonly partitions: number;
  /** How long it runs. Each minute brings new keys, and so a new placement. */
  readonly seconds: number;
  /** The same seed gives the same run. */
  readonly seed: number;
  /** A time in which more events come. @default none */
  readonly burst?: { readonly fromSecond: number; readonly seconds: number; readonly times: number };
  /** How many seconds of unused units a partition keeps. @default 1 */
  readonly keptSeconds?: number;
  /** A partition that throttled in each of so many seconds on end splits in two. @default none does */
  readonly splitAfterSeconds?: number;
}

/** What became of the commits: `arrived = done + waiting`. */
export interface SimulationResult {
  readonly arrived: number;
  readonly done: number;
  /** Throttled, and still to be tried again at the end. */
  readonly waiting: number;
  /** The share of commits that were throttled at their first try. */
  readonly throttledShare: number;
  /** The same in the worst of the minutes: each has a placement of its own. */
  readonly worstMinuteShare: number;
  /** From the first try to the one that was taken, milliseconds, of what was done. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Partitions at the end. */
  readonly partitions: number;
}

/** A step of the simulation. */
const TICK_MS = 20;
const TICKS_PER_SECOND = 1_000 / TICK_MS;
const MINUTE_TICKS = 60 * TICKS_PER_SECOND;

const MARK_TICKS = MARK_AFTER_MS / TICK_MS;
const CONSUME_TICKS = CONSUME_AFTER_MS / TICK_MS;
const RETRY_BASE_TICKS = RETRY_MS.base / TICK_MS;
const RETRY_CAP_TICKS = RETRY_MS.cap / TICK_MS;

/** More tries than anybody makes: a commit is kept as one number, its time and its tries. */
const TRIES_MAX = 64;

/**
 * Simulates the writes to one table: physical partitions that each take 1,000 write units a second, and keys hashed over
 * them. What it models, and where it leans to the safe side:
 *
 * - A commit puts its outbox row on the key of its minute and shard, and a domain row on a key of its own. Both partitions
 *   must have the units, else it is throttled and takes none. The mark comes later, on the key of the put, and then the
 *   writes of the consumers, on keys of their own; where these are throttled, they come again within a second.
 * - Who was throttled commits again, with a new event id and so perhaps on another shard.
 * - A partition keeps one second of unused units. DynamoDB's burst capacity (up to 300 s) is not promised and does not lift the
 *   limit of a partition (re:Post, "How does DynamoDB handle spiky workloads in short intervals?"); `keptSeconds`
 *   shows what it would do.
 * - Partitions are equal, and split only where `splitAfterSeconds` says so: DynamoDB splits hot ones when it sees fit, and
 *   the keys that made it hot are gone after their minute.
 */
export function simulate(settings: SimulationSettings): SimulationResult {
  const { demand, shards, seed, keptSeconds = 1 } = settings;
  const random = createRandom(seed);
  const partitions = createPartitions(settings.partitions, keptSeconds, settings.splitAfterSeconds);
  const commits = createSchedule();
  const marks = createSchedule();
  const consumptions = createSchedule();
  const delays: number[] = [];
  const minutes = Array.from({ length: Math.ceil(settings.seconds / 60) }, () => ({
    arrived: 0,
    throttled: 0,
  }));
  let done = 0;
  const anySlot = () => Math.floor(random() * SLOTS);

  const tryCommit = (arrivedAt: number, tries: number, tick: number) => {
    const key = Math.floor(tick / MINUTE_TICKS) * shards + Math.floor(random() * shards);
    const slot = scramble(key, seed) >>> 16;
    const minute = minutes[Math.floor(tick / MINUTE_TICKS)];
    if (tries === 0 && minute !== undefined) minute.arrived += 1;
    if (!partitions.takeBoth(slot, demand.putUnits, anySlot(), demand.domainUnits)) {
      if (tries === 0 && minute !== undefined) minute.throttled += 1;
      const pause = Math.min(RETRY_CAP_TICKS, RETRY_BASE_TICKS * 2 ** tries) * random();
      commits.add(tick + Math.ceil(pause), arrivedAt * TRIES_MAX + Math.min(tries + 1, TRIES_MAX - 1));
      return;
    }
    done += 1;
    delays[tick - arrivedAt] = (delays[tick - arrivedAt] ?? 0) + 1;
    marks.add(tick + MARK_TICKS, slot);
    for (let i = 0; i < demand.consumers; i += 1) consumptions.add(tick + CONSUME_TICKS, anySlot());
  };

  const seconds = TICK_MS / 1_000;
  for (let tick = 0; tick < settings.seconds * TICKS_PER_SECOND; tick += 1) {
    partitions.fill(seconds);
    for (const [writes, units] of [
      [marks, demand.markUnits],
      [consumptions, demand.consumerUnits],
    ] as const) {
      for (const slot of writes.take(tick))
        if (!partitions.take(slot, units)) writes.add(tick + Math.ceil(random() * TICKS_PER_SECOND), slot);
    }
    for (const commit of commits.take(tick))
      tryCommit(Math.floor(commit / TRIES_MAX), commit % TRIES_MAX, tick);
    const arriving = poisson(rateAt(settings, tick * seconds) * seconds, random);
    for (let i = 0; i < arriving; i += 1) tryCommit(tick, 0, tick);
  }
  const arrived = minutes.reduce((sum, minute) => sum + minute.arrived, 0);
  const throttled = minutes.reduce((sum, minute) => sum + minute.throttled, 0);
  return {
    arrived,
    done,
    waiting: commits.size(),
    throttledShare: throttled / Math.max(1, arrived),
    worstMinuteShare: Math.max(...minutes.map((minute) => minute.throttled / Math.max(1, minute.arrived))),
    p50Ms: quantile(delays, done * 0.5) * TICK_MS,
    p99Ms: quantile(delays, done * 0.99) * TICK_MS,
    partitions: partitions.count(),
  };
}

function rateAt({ eventsPerSecond, burst }: SimulationSettings, second: number): number {
  const bursting =
    burst !== undefined && second >= burst.fromSecond && second < burst.fromSecond + burst.seconds;
  return bursting ? eventsPerSecond * burst.times : eventsPerSecond;
}

/** What is to be done at which tick. Nothing is put further ahead than the longest pause. */
function createSchedule() {
  const ahead = RETRY_CAP_TICKS + 1;
  const ring: number[][] = Array.from({ length: ahead }, () => []);
  return {
    /** @param tick - after the one that was taken last, whose place is free again */
    add: (tick: number, item: number) => {
      ring[tick % ahead]?.push(item);
    },
    /** What is due now; it is gone then. */
    take: (tick: number): readonly number[] => {
      const due = ring[tick % ahead] ?? [];
      if (due.length > 0) ring[tick % ahead] = [];
      return due;
    },
    size: () => ring.reduce((sum, items) => sum + items.length, 0),
  };
}

/** The index below which so many of the counted lie. */
function quantile(counts: readonly number[], rank: number): number {
  let seen = 0;
  for (let index = 0; index < counts.length; index += 1) {
    seen += counts[index] ?? 0;
    if (seen >= rank && seen > 0) return index;
  }
  return 0;
}
