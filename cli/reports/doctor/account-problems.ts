import { duration } from '../../terminal/times.ts';
import type { PartProblem } from '../status/part-checks.ts';
import type { AccountConcurrency } from './deployed-resources.ts';

/** A problem of the account or of this machine. */
export type AccountProblem = PartProblem<'concurrency-low' | 'concurrency-full' | 'clock'>;

/** At this share of its limit, the next peak of the account is throttled. */
const FULL = 0.9;

/** The quota "Concurrent executions" of Lambda. */
const QUOTA_CODE = 'L-B99A9384';

/** The initial limit of an established account. */
const LIMIT = 1_000;

/**
 * An account whose functions are about to be throttled.
 *
 * @param functions - the number of the Mailroom's functions; each must be able to run while the others do
 * @param peak - the most concurrency that the account used in the last hour
 */
export function concurrencyLeftProblems(
  { limit, unreserved }: AccountConcurrency,
  functions: number,
  peak: number | undefined,
): AccountProblem[] {
  const fix = [
    'aws',
    'service-quotas',
    'request-service-quota-increase',
    '--service-code',
    'lambda',
    '--quota-code',
    QUOTA_CODE,
  ];
  const problem = (kind: AccountProblem['problem'], text: string): AccountProblem[] => [
    {
      part: 'account',
      problem: kind,
      text,
      fix: [...fix, '--desired-value', String(Math.max(LIMIT, 2 * limit))],
    },
  ];
  if (unreserved < functions) {
    return problem(
      'concurrency-low',
      `the account has ${unreserved} concurrent executions for functions without a reservation, and this Mailroom has ${functions} functions: ` +
        'they wait for each other',
    );
  }
  if (peak === undefined || peak < FULL * unreserved) return [];
  return problem(
    'concurrency-full',
    `the functions of the account used ${peak} of ${unreserved} concurrent executions in the last hour: above that, Lambda throttles them, ` +
      'and events wait',
  );
}

/** A larger difference is reported: no time that AWS reports is more exact. */
const CLOCK_OFF_MS = 2_000;

/** The command that sets the clock, by platform. */
const SET_CLOCK: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['sudo', 'systemsetup', '-setusingnetworktime', 'on'],
  linux: ['sudo', 'timedatectl', 'set-ntp', 'true'],
  win32: ['w32tm', '/resync'],
};

/** A wrong clock of this machine. @param aheadMs - negative if it is behind */
export function clockProblems(
  aheadMs: number,
  platform: NodeJS.Platform = process.platform,
): AccountProblem[] {
  if (Math.abs(aheadMs) <= CLOCK_OFF_MS) return [];
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  const text =
    `this machine's clock is at least ${duration(Math.abs(aheadMs))} ${side} AWS's: a producer or consumer that runs here misjudges leases, ` +
    'and AWS refuses requests signed more than 5 minutes off';
  return [{ part: 'this machine', problem: 'clock', text, fix: SET_CLOCK[platform] ?? [] }];
}
