import pMap from 'p-map';
import { MINUTE_MS } from '../base/units.ts';
import {
  listUnsettled,
  removeUnsettled,
  storeWalk,
  unsettledPointer,
  walkedPart,
} from '../store/dynamo/unsettled-minutes.ts';
import { unsettledMinuteOf } from '../store/keys.ts';
import type { UnsettledPointer } from '../store/outbox-row.ts';
import { declaredSources } from './declared-sources.ts';
import { type RelayHandlerDeps, relayContext } from './relay-context.ts';
import { type SweepContext, type SweepPartition, sweepPartition } from './sweep-partition.ts';
import { attemptStep, hasTimeLeft, type Tally } from './sweep-tally.ts';

/** The maximum number of shards read concurrently: each has a page of up to 1 MB in memory. */
const SHARDS_AT_ONCE = 16;

/** The maximum number of concurrent calls per shard to the bus, and to the table, unless `concurrency` is set. */
const CALLS_OF_SHARD = 8;

/** Creates the context of the sweep relay. */
export function sweepContext(deps: RelayHandlerDeps): SweepContext {
  const { config, concurrency } = deps;
  const shardsAtOnce =
    concurrency === undefined ? SHARDS_AT_ONCE : Math.min(SHARDS_AT_ONCE, config.shards, concurrency);
  const calls = concurrency === undefined ? CALLS_OF_SHARD : Math.floor(concurrency / shardsAtOnce);
  const shared = relayContext(deps, 'sweep', calls);
  const { telemetry } = shared;
  const relays = Array.from({ length: shardsAtOnce }, () =>
    relayContext({ ...deps, telemetry }, 'sweep', calls),
  );
  return { ...shared, relays, declared: declaredSources(config, telemetry) };
}

/** Options for sweeping minutes. */
interface MinuteSweep {
  readonly consistent: boolean;
  /** Write a pointer for each minute that is left unsettled or could not be read. */
  readonly pointers: boolean;
  /** The pointers that this pass will sweep afterwards, by shard. @default none */
  readonly known?: UnsettledPointer[][] | undefined;
}

/**
 * Sweeps minutes in all shards: several shards in parallel, each in order. A minute that fails does not hold up the later ones.
 *
 * A minute whose walk has begun takes more than one pass, and is not read here: no pass would come to what follows it. Its
 * pointer is put again instead, so that its walk starts over and reads the commits up to now.
 *
 * @param minutes - in the format of the keys, in reading order
 * @returns true if each minute, in every shard, was read completely or has a pointer: only then may the state move past them
 */
export function sweepMinutes(
  context: SweepContext,
  shards: number,
  minutes: readonly string[],
  how: MinuteSweep,
  tally: Tally,
): Promise<boolean> {
  const { telemetry } = context;
  const work = shardsOf(shards).map((shard) => minutes.map((minute) => ({ shard, minute })));
  return eachShard(context, work, tally, async (partition) => {
    const at = `${partition.minute} of shard ${partition.shard}`;
    const known = how.known?.[partition.shard] ?? [];
    const index = known.findIndex(({ SK }) => SK === partition.minute);
    const leave = () =>
      attemptStep(telemetry, tally, `leave ${at} unsettled`, async () => {
        const pointer = await putPointer(context, partition);
        if (index >= 0) known[index] = pointer;
      });
    if (known[index]?.after !== undefined) return leave();
    let clean = false;
    const read = await attemptStep(telemetry, tally, `sweep ${at}`, async () => {
      ({ clean } = await sweepPartition(context, partition, how, tally));
    });
    return clean || !how.pointers ? read : leave();
  });
}

/** Reads the pointers to unsettled minutes, by shard; the list is empty for a shard whose pointers cannot be read. */
export function readPointers(
  context: SweepContext,
  shards: number,
  tally: Tally,
): Promise<UnsettledPointer[][]> {
  const { table, clock, telemetry, relays } = context;
  return pMap(
    shardsOf(shards),
    async (shard) => {
      let pointers: UnsettledPointer[] = [];
      await attemptStep(telemetry, tally, `list the unsettled minutes of shard ${shard}`, async () => {
        pointers = inTurn(await listUnsettled(table, shard), clock.now());
      });
      return pointers;
    },
    { concurrency: relays.length },
  );
}

/**
 * Sweeps the minutes that have a pointer, with strongly consistent reads, after reading the pointer's token. A minute that the
 * pass cannot finish is continued by the next one. A pointer is removed only if its minute is clean, and only under that token.
 * Returns true if all of this succeeded.
 */
export function sweepUnsettled(
  context: SweepContext,
  pointers: readonly (readonly UnsettledPointer[])[],
  tally: Tally,
): Promise<boolean> {
  return eachShard(context, pointers, tally, (pointer) =>
    attemptStep(context.telemetry, tally, `sweep ${pointer.SK} of ${pointer.PK} again`, async () => {
      const { table, random } = context;
      const partition = unsettledMinuteOf(pointer);
      const how = { consistent: true, from: walkedPart(pointer) };
      const { clean, stopped } = await sweepPartition(context, partition, how, tally);
      if (clean) await removeUnsettled(table, pointer);
      else if (stopped?.after === undefined || !(await storeWalk(table, pointer, stopped, random)))
        await putPointer(context, partition);
    }),
  );
}

/** Processes the work of every shard. @param work - returns true if nothing is left to repeat */
async function eachShard<T>(
  { clock, relays }: SweepContext,
  shards: readonly (readonly T[])[],
  tally: Tally,
  work: (item: T) => Promise<boolean>,
): Promise<boolean> {
  let done = true;
  await pMap(
    shards,
    async (items) => {
      for (const item of items) {
        if (!hasTimeLeft(tally, clock.now())) {
          done = false;
          return;
        }
        if (!(await work(item))) done = false;
      }
    },
    { concurrency: relays.length },
  );
  return done && hasTimeLeft(tally, clock.now());
}

async function putPointer(
  { table, random }: SweepContext,
  { shard, minute }: SweepPartition,
): Promise<UnsettledPointer> {
  const pointer = unsettledPointer(shard, minute, random);
  await table.write({ Put: { Item: { ...pointer } } });
  return pointer;
}

/**
 * Starts at a different pointer each minute. Otherwise, passes that run out of time would always skip the same pointers: minutes
 * with rows that cannot be published stay unsettled.
 */
function inTurn<T>(pointers: readonly T[], now: number): T[] {
  const first = Math.floor(now / MINUTE_MS) % Math.max(1, pointers.length);
  return [...pointers.slice(first), ...pointers.slice(0, first)];
}

function shardsOf(shards: number): number[] {
  return Array.from({ length: shards }, (_, shard) => shard);
}
