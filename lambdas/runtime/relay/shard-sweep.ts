import pMap from 'p-map';
import type { UnsettledPointer } from '../store/rows.ts';
import { createPartitionSweep, type SweepDeps } from './partition-sweep.ts';
import { createRelay, type Relay, type RelayHandlerDeps } from './relay.ts';
import { MINUTE_MS } from './sweep-minutes.ts';
import { goesOn, stepFailed, type Tally } from './sweep-tally.ts';
import { createUnsettledMinutes } from './unsettled-minutes.ts';

/** Sweeps all shards: some of them in parallel, each in order, and each with its own share of the calls. */
export interface ShardSweep {
  /**
   * Sweeps minutes in all shards. One that fails does not hold up those after it.
   *
   * @param minutes - as they stand in keys, in the order in which they are read
   * @param how.pointers - whether a minute that is left unsettled, or could not be read, gets a pointer
   * @returns whether each of them, in every shard, was read whole or has a pointer: only then may the state move past them
   */
  minutes(
    shards: number,
    minutes: readonly string[],
    how: { readonly consistent: boolean; readonly pointers: boolean },
    tally: Tally,
  ): Promise<boolean>;
  /** The pointers to unsettled minutes, by shard; none of a shard whose pointers cannot be read. */
  pointers(shards: number, tally: Tally): Promise<UnsettledPointer[][]>;
  /**
   * Sweeps the minutes that have a pointer, strongly consistently, after the pointer's token was read. A pointer goes only
   * when its minute is clean, and only under that token. True when all of it was done.
   */
  unsettled(pointers: readonly (readonly UnsettledPointer[])[], tally: Tally): Promise<boolean>;
}

/**
 * Begins at another pointer each minute. A pass that has no time for all of them must not always end before the same ones: minutes of
 * rows that cannot be published stay unsettled.
 */
function inTurn<T>(pointers: readonly T[], now: number): T[] {
  const first = Math.floor(now / MINUTE_MS) % Math.max(1, pointers.length);
  return [...pointers.slice(first), ...pointers.slice(0, first)];
}

/** How many shards are read at once, at most: of each one there is a page of up to 1 MB in memory. */
const SHARDS_AT_ONCE = 16;

/** How many calls to the bus, and how many to the table, each of them has under way at once, unless the handler is told. */
const CALLS_OF_SHARD = 8;

/** Makes the sweep of shards. */
export function createShardSweep(
  deps: SweepDeps & Pick<RelayHandlerDeps, 'bus' | 'concurrency'>,
): ShardSweep {
  const { config, clock, telemetry } = deps;
  const [shardsAtOnce, callsOfShard] = shares(config.shards, deps.concurrency);
  // Each has its own share of the calls: a shard full of events that fail must not take the turn of the others.
  const relays = Array.from({ length: shardsAtOnce }, () =>
    createRelay({ ...deps, concurrency: callsOfShard }, 'sweep'),
  );
  const sweepPartition = createPartitionSweep(deps, (shard) => relays[shard % relays.length] as Relay);
  const unsettledMinutes = createUnsettledMinutes(deps);

  /** Does the work of every shard. @param work - true when nothing of it is left to be done again */
  async function eachShard<T>(
    shards: readonly (readonly T[])[],
    tally: Tally,
    work: (item: T) => Promise<boolean>,
  ): Promise<boolean> {
    let done = true;
    await pMap(
      shards,
      async (items) => {
        for (const item of items) {
          if (!goesOn(tally, clock.now())) {
            done = false;
            return;
          }
          if (!(await work(item))) done = false;
        }
      },
      { concurrency: shardsAtOnce },
    );
    return done && goesOn(tally, clock.now());
  }

  /** Does one step. True unless it failed. */
  async function attempt(step: string, tally: Tally, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      stepFailed(telemetry, tally, step, error);
      return false;
    }
  }

  async function sweepUnsettled(pointer: UnsettledPointer, tally: Tally): Promise<void> {
    const shard = Number(pointer.PK.slice('SWEEP#'.length));
    const minute = pointer.SK;
    const left = await sweepPartition(shard, minute, true, tally);
    if (left > 0) await unsettledMinutes.put(shard, minute);
    else await unsettledMinutes.remove(pointer);
  }

  return {
    minutes: (shards, minutes, { consistent, pointers }, tally) => {
      const work = Array.from({ length: shards }, (_, shard) => minutes.map((minute) => ({ shard, minute })));
      return eachShard(work, tally, async ({ shard, minute }) => {
        const at = `${minute} of shard ${shard}`;
        let clean = false;
        const read = await attempt(`sweep ${at}`, tally, async () => {
          clean = (await sweepPartition(shard, minute, consistent, tally)) === 0;
        });
        if (clean || !pointers) return read;
        return attempt(`leave ${at} unsettled`, tally, () => unsettledMinutes.put(shard, minute));
      });
    },
    pointers: (shards, tally) =>
      pMap(
        Array.from({ length: shards }, (_, shard) => shard),
        async (shard) => {
          let pointers: UnsettledPointer[] = [];
          await attempt(`list the unsettled minutes of shard ${shard}`, tally, async () => {
            pointers = inTurn(await unsettledMinutes.list(shard), clock.now());
          });
          return pointers;
        },
        { concurrency: shardsAtOnce },
      ),
    unsettled: (pointers, tally) =>
      eachShard(pointers, tally, (pointer) =>
        attempt(`sweep ${pointer.SK} of ${pointer.PK} again`, tally, () => sweepUnsettled(pointer, tally)),
      ),
  };
}

/** How many shards are read at once, and how many calls each of them has under way. */
function shares(
  shards: number,
  concurrency: number | undefined,
): [shardsAtOnce: number, callsOfShard: number] {
  if (concurrency === undefined) return [SHARDS_AT_ONCE, CALLS_OF_SHARD];
  const shardsAtOnce = Math.min(SHARDS_AT_ONCE, shards, concurrency);
  return [shardsAtOnce, Math.floor(concurrency / shardsAtOnce)];
}
