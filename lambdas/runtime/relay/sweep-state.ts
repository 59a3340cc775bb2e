import { isTime } from '../base/clock.ts';
import { isMailroomError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/units.ts';
import { SWEEP_STATE_KEY } from '../store/keys.ts';
import { SHARDS_MAX } from '../store/outbox-partition.ts';
import type { SweepState } from '../store/outbox-row.ts';
import { SCHEMA } from '../store/row-schema.ts';
import type { Item, Table } from '../store/table.ts';
import { SWEEP_AGE_MAX_MS } from './minutes-to-sweep.ts';
import type { SweepContext } from './sweep-partition.ts';

/** A stored state further in the future than this comes from a wrong clock, milliseconds. */
const FUTURE_MAX_MS = MINUTE_MS;

/** Dependencies for reading the sweep's state. */
type SweepStateContext = Pick<SweepContext, 'config' | 'table' | 'clock' | 'telemetry'>;

/** The starting point of a pass, from the state row. */
export interface SweepStart {
  /** Epoch milliseconds: the pass reads the minutes that passed an age after this time. */
  readonly since: number;
  /** The highest number of shards ever used. */
  readonly shards: number;
  /** As stored in the state row, epoch milliseconds; absent if it is missing or not a number. */
  readonly sweptTo: number | undefined;
}

/**
 * Reads the sweep's state: the time from which to read (the table's creation if there is no state yet) and the number of shards. A
 * higher number of shards is stored before anything is read with it.
 *
 * @param now - the start of the pass, epoch milliseconds
 */
export async function startSweep(context: SweepStateContext, now: number): Promise<SweepStart> {
  const { table, telemetry } = context;
  const item = await table.get(SWEEP_STATE_KEY, { consistent: true });
  // A state with a value of another type was not written by Mailroom; it is replaced.
  const sweptTo = numberOr(item?.sweptTo, undefined);
  let since = sweptTo ?? (await table.createdAt());
  if (sweptTo !== undefined && sweptTo > now + FUTURE_MAX_MS) {
    const message =
      'The stored sweep state is in the future because a clock was wrong. Reading the last 1024 minutes';
    telemetry.log.warn(message, { sweptTo, now });
    since = now - SWEEP_AGE_MAX_MS;
  }
  const { shards: known = 0 } = sweepStateOf(item);
  const { shards } = context.config;
  return { since, sweptTo, shards: known >= shards ? known : await raiseShards(table, shards) };
}

/** Moves the state forward to the start of the pass or of its step; never backward, unless it was in the future. */
export async function moveSweptTo(
  { table, clock }: Pick<SweepStateContext, 'table' | 'clock'>,
  { sweptTo = 0 }: SweepStart,
  to: number,
): Promise<void> {
  try {
    await table.write({
      Update: {
        Key: { ...SWEEP_STATE_KEY },
        UpdateExpression: 'SET sweptTo = :to, #schema = :schema',
        ConditionExpression:
          'attribute_not_exists(sweptTo) OR NOT attribute_type(sweptTo, :N) OR sweptTo < :to OR ' +
          '(sweptTo = :read AND sweptTo > :future)',
        ExpressionAttributeNames: { '#schema': 'schema' },
        ExpressionAttributeValues: {
          ':to': to,
          ':schema': SCHEMA,
          ':N': 'N',
          ':read': sweptTo,
          ':future': clock.now() + FUTURE_MAX_MS,
        },
      },
    });
  } catch (error) {
    if (!isMailroomError(error, 'CONDITION_FAILED')) throw error; // refused: another pass has come further
  }
}

/**
 * Raises the stored number of shards, which every later pass reads. Invariant: the number is only ever raised, by any relay and
 * in whatever order, because a lower one would leave the rows of the shards above it unread. A value that is not a number of shards
 * was not written by Mailroom; it is replaced.
 *
 * @param atLeast - 1 to 256
 * @returns the stored number
 */
export async function raiseShards(table: Pick<Table, 'write'>, atLeast: number): Promise<number> {
  const kept = await table
    .write({
      Update: {
        Key: { ...SWEEP_STATE_KEY },
        UpdateExpression: 'SET shards = :shards, #schema = :schema',
        ConditionExpression:
          'attribute_not_exists(shards) OR NOT attribute_type(shards, :N) OR shards < :shards OR shards > :max',
        ExpressionAttributeNames: { '#schema': 'schema' },
        ExpressionAttributeValues: { ':shards': atLeast, ':schema': SCHEMA, ':N': 'N', ':max': SHARDS_MAX },
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      },
    })
    .then(() => undefined)
    .catch((error: unknown) => {
      if (!isMailroomError(error, 'CONDITION_FAILED')) throw error;
      return error.item;
    });
  return Math.max(atLeast, sweepStateOf(kept).shards ?? 0);
}

/** Reads the highest number of shards ever used from the sweep's state, without writing. @param atLeast - the current number */
export async function shardsEverUsed(table: Pick<Table, 'get'>, atLeast: number): Promise<number> {
  const item = await table.get(SWEEP_STATE_KEY, { consistent: true });
  return Math.max(sweepStateOf(item).shards ?? 0, atLeast);
}

/** Returns the sweep's stored state to read-only callers; values that are not a valid number of shards or time are omitted. */
export function sweepStateOf(item: Item | undefined): Pick<SweepState, 'shards' | 'sweptTo'> {
  const { shards, sweptTo } = item ?? {};
  return {
    shards: Number.isSafeInteger(shards) && shards >= 1 && shards <= SHARDS_MAX ? shards : undefined,
    sweptTo: isTime(sweptTo) ? sweptTo : undefined,
  };
}

function numberOr<T>(value: unknown, otherwise: T): number | T {
  return typeof value === 'number' ? value : otherwise;
}
