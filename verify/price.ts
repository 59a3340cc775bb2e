/** Hours in the month that AWS's monthly prices are divided by. */
const HOURS_A_MONTH = 730;

/** Resources that are paid for by the hour: their number, and each one's price a month in USD (us-east-1, list prices without free tiers). */
export const BY_THE_HOUR: Readonly<
  Record<'keys' | 'alarms' | 'compositeAlarms' | 'dashboards' | 'metrics', HourlyPrice>
> = {
  keys: { count: 1, usdAMonth: 1 },
  // More than there are: an alarm on several metrics is paid for each.
  alarms: { count: 130, usdAMonth: 0.1 },
  compositeAlarms: { count: 12, usdAMonth: 0.5 },
  dashboards: { count: 1, usdAMonth: 3 },
  // At most, of all functions together; most of them never report.
  metrics: { count: 100, usdAMonth: 0.3 },
};

/** Things that are paid for by the hour, also for a part of one. */
interface HourlyPrice {
  readonly count: number;
  /** Of each. */
  readonly usdAMonth: number;
}

/** Events of one order: it places, charges, reserves, and repeats a tenth of them. */
const EVENTS_AN_ORDER = 6;

/** USD per event with its consumers: docs/cost.md has 7 to 12 USD per million for one consumer; an event here has two. */
const USD_AN_EVENT = 24 / 1_000_000;

/** Functions that run all the time (empty receives, sweeps, audits), requests to the tables and the CDK's bucket, USD an hour. */
const USD_AN_HOUR_IDLE = 0.02;

/**
 * Estimates the price of a run in AWS, generously: at list prices of us-east-1, without free tiers, for each hour or part of one.
 *
 * @param orders - of the demo
 * @param seconds - from deploying to destroying
 * @returns US dollars
 *
 * @example
 * ```ts
 * estimatedUsd(20, 1_800); // one hour
 * ```
 */
export function estimatedUsd(orders: number, seconds: number): number {
  const hours = Math.max(1, Math.ceil(seconds / 3_600));
  const monthly = Object.values(BY_THE_HOUR).reduce(
    (sum, { count, usdAMonth }) => sum + count * usdAMonth,
    0,
  );
  return hours * (monthly / HOURS_A_MONTH + USD_AN_HOUR_IDLE) + orders * EVENTS_AN_ORDER * USD_AN_EVENT;
}
