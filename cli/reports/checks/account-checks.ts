import { clockError } from '../../terminal/aws-clock.ts';
import { type CheckDeps, type CommandWords, check, type PartCheck } from './check.ts';

/** At this share of its limit, the next peak of the account is throttled. */
const FULL = 0.9;

/** The quota "Concurrent executions" of Lambda. */
const QUOTA_CODE = 'L-B99A9384';

/** The initial limit of an established account. */
const LIMIT = 1_000;

/** Checks that Lambda is not about to throttle the functions of the account. */
export function concurrencyLeftCheck({ directory, resources }: CheckDeps): PartCheck {
  return check('account', 'surroundings', async function* () {
    const [{ limit, unreserved }, peak = 0] = await Promise.all([
      resources.concurrency(),
      resources.concurrencyPeak(),
    ]);
    // Each function, and those of the relay, must be able to run while the others do.
    const functions = directory.consumers.length + 2;
    const request = ['service-quotas', 'request-service-quota-increase', '--service-code', 'lambda'];
    const desired = String(Math.max(LIMIT, 2 * limit));
    const fix: CommandWords = ['aws', ...request, '--quota-code', QUOTA_CODE, '--desired-value', desired];
    if (unreserved < functions) {
      const text = `the account has ${unreserved} concurrent executions for functions without a reservation, and this Mailroom has ${functions} functions: they wait for each other`;
      yield { problem: 'concurrency-low', text, fix };
    } else if (peak >= FULL * unreserved) {
      const text = `the functions of the account used ${peak} of ${unreserved} concurrent executions in the last hour: above that, Lambda throttles them, and events wait`;
      yield { problem: 'concurrency-full', text, fix };
    }
  });
}

/** The command that sets the clock, by platform. */
const SET_CLOCK: Readonly<Partial<Record<NodeJS.Platform, CommandWords>>> = {
  darwin: ['sudo', 'systemsetup', '-setusingnetworktime', 'on'],
  linux: ['sudo', 'timedatectl', 'set-ntp', 'true'],
  win32: ['w32tm', '/resync'],
};

/** Checks the clock of this machine. @param aheadMs - negative if it is behind */
export function clockCheck(aheadMs: number): PartCheck {
  return check('this machine', 'surroundings', async function* () {
    const wrong = clockError(aheadMs);
    if (wrong === undefined) return;
    const text = `this machine's clock is ${wrong}: a producer or consumer that runs here misjudges leases, and AWS refuses requests signed more than 5 minutes off`;
    yield { problem: 'clock', text, fix: SET_CLOCK[process.platform] ?? ['date', '-u'] };
  });
}
