import { SPLIT_AFTER_SECONDS } from '../assumptions.ts';
import { type CapacityPlan, type CapacityTarget, planCapacity } from './plan.ts';
import { NEW_TABLE, PARTITION } from './quotas.ts';
import { type SimulationResult, type SimulationSettings, simulate } from './simulation.ts';

/** What the simulation says of a plan, in one situation. */
export interface Verdict extends SimulationResult {
  readonly situation: string;
  readonly eventsPerSecond: number;
  readonly shards: number;
  readonly partitionsAtStart: number;
  /** Whether fewer than 1 % of the commits were throttled at their first try. */
  readonly carries: boolean;
  /** What the plan says of it; absent where it makes no claim. */
  readonly planned?: boolean | undefined;
}

/** A plan carries what is throttled less than this. */
const THROTTLED_MAX = 0.01;

/** Ten times the events for ten seconds. */
const BURST = { fromSecond: 65, seconds: 10, times: 10 } as const;
const BURST_SECONDS = 180;

/** What does not hold shows at once. */
const HALF_SECONDS = 120;

/** Long enough for two rounds of splits. */
const COLD_SECONDS = 180;

/**
 * Simulates a plan where it must hold, where it must not, and where nothing is promised. Of several Mailrooms one is
 * simulated: they share nothing but the quotas of the account.
 *
 * @param seconds - how long the plan has to hold; each minute brings another placement
 */
export function verdictsOn(target: CapacityTarget, seconds: number): Verdict[] {
  const plan = planCapacity(target);
  const { mailroom } = plan;
  const bursts = planCapacity({ ...target, peakEventsPerSecond: target.eventsPerSecond * BURST.times });
  const half = {
    shards: Math.floor(mailroom.shards / 2),
    partitions: Math.floor(mailroom.partitions / 2),
  };
  const cold = { partitions: NEW_TABLE.writeUnits / PARTITION.writeUnits };
  return [
    verdict('as planned', plan, { seconds }, true),
    // Where a new table is enough, half of it may be as well.
    ...(mailroom.warmWriteUnits === undefined
      ? []
      : [
          verdict('half of it', plan, { seconds: HALF_SECONDS, ...half }, false),
          verdict(
            'planned shards on a new table, splitting after hot minutes',
            plan,
            { seconds: COLD_SECONDS, ...cold, splitAfterSeconds: SPLIT_AFTER_SECONDS },
            false,
          ),
        ]),
    verdict('as planned, 10 times for 10 s', plan, { seconds: BURST_SECONDS, burst: BURST }),
    verdict('the same, 300 s of unused units kept', plan, {
      seconds: BURST_SECONDS,
      burst: BURST,
      keptSeconds: 300,
    }),
    verdict('planned for it, 10 times for 10 s', bursts, { seconds: BURST_SECONDS, burst: BURST }, true),
  ];
}

function verdict(
  situation: string,
  plan: CapacityPlan,
  change: Pick<SimulationSettings, 'seconds'> & Partial<SimulationSettings>,
  planned?: boolean,
): Verdict {
  const settings: SimulationSettings = {
    demand: plan.demand,
    eventsPerSecond: plan.target.eventsPerSecond / plan.mailrooms,
    shards: plan.mailroom.shards,
    partitions: plan.mailroom.partitions,
    seed: 1,
    ...change,
  };
  const result = simulate(settings);
  return {
    ...result,
    situation,
    eventsPerSecond: settings.eventsPerSecond,
    shards: settings.shards,
    partitionsAtStart: settings.partitions,
    carries: result.throttledShare < THROTTLED_MAX,
    planned,
  };
}
