import { isTime } from '../clock.ts';
import { isMailroomError } from '../errors.ts';
import { SCHEMA, SWEEP_STATE_KEY, type SweepState } from '../store/rows.ts';
import type { Item, Table } from '../store/table.ts';
import type { SweepContext } from './partition-sweep.ts';
import { MINUTE_MS, SWEEP_AGE_MAX_MS } from './sweep-minutes.ts';

/** A stored state further ahead than this is a wrong clock's. */
const FUTURE_MAX_MS = MINUTE_MS;

/** The parts of a sweep that its state is read with. */
type SweepStateContext = Pick<SweepContext, 'config' | 'table' | 'clock' | 'telemetry'>;

/** From where a pass reads, by the state row. */
export interface SweepStart {
  /** Epoch milliseconds: the pass reads the minutes whose age was passed after this. */
  readonly since: number;
  /** The highest number of shards ever used. */
  readonly shards: number;
  /** As the state row says, epoch milliseconds; absent where it does not, or not as a number. */
  readonly sweptTo: number | undefined;
}

/**
 * Reads the sweep's state: from when on to read, which is the table's creation where there is no state yet, and how
 * many shards there are. A higher number of shards is written down before anything is read under it.
 *
 * @param now - when the pass starts, epoch milliseconds
 */
export async function startSweep(context: SweepStateContext, now: number): Promise<SweepStart> {
  const { table, telemetry } = context;
  const item = await table.get(SWEEP_STATE_KEY, { consistent: true });
  // A state that nobody of ours wrote is no state: it is written anew.
  const sweptTo = numberOr(item?.sweptTo, undefined);
  let since = sweptTo ?? (await table.createdAt());
  if (sweptTo !== undefined && sweptTo > now + FUTURE_MAX_MS) {
    const message =
      'The stored sweep state is in the future: a clock was wrong. Reading the last 1024 minutes';
    telemetry.log.warn(message, { sweptTo, now });
    since = now - SWEEP_AGE_MAX_MS;
  }
  return { since, sweptTo, shards: await highestShards(context, numberOr(item?.shards, 0)) };
}

/** Moves the state forward to the time that the pass, or its step, started with; never back, unless it was in the future. */
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

async function highestShards(
  { config, table }: Pick<SweepStateContext, 'config' | 'table'>,
  known: number,
): Promise<number> {
  if (known >= config.shards) return known;
  const written = await table
    .write({
      Update: {
        Key: { ...SWEEP_STATE_KEY },
        UpdateExpression: 'SET shards = :shards, #schema = :schema',
        ConditionExpression:
          'attribute_not_exists(shards) OR NOT attribute_type(shards, :N) OR shards < :shards',
        ExpressionAttributeNames: { '#schema': 'schema' },
        ExpressionAttributeValues: { ':shards': config.shards, ':schema': SCHEMA, ':N': 'N' },
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      },
    })
    .catch((error: unknown) => {
      if (!isMailroomError(error, 'CONDITION_FAILED')) throw error;
      return error.item;
    });
  return Math.max(config.shards, numberOr(written?.shards, 0));
}

/** The highest number of shards that was ever used, as the sweep's state tells it; it is only read. @param atLeast - today's */
export async function shardsEverUsed(table: Pick<Table, 'get'>, atLeast: number): Promise<number> {
  const item = await table.get(SWEEP_STATE_KEY, { consistent: true });
  return Math.max(sweepStateOf(item).shards ?? 0, atLeast);
}

/** The most shards that an event id can name: its last byte. */
const SHARDS_MAX = 256;

/** The sweep's state as it is stored, for those who only read it; what is not a number of shards, or not a time, is left out. */
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
