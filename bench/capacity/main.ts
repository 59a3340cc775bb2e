import { Command, InvalidArgumentError } from 'commander';
import { table } from '../../cli/frame/output.ts';
import { planCapacity } from './plan.ts';
import { planDetails, planRows } from './plan-rows.ts';

interface PlanOptions {
  readonly rate: number;
  readonly peak?: number;
  readonly payload: number;
  readonly consumers: number;
}

/** The bounds of `--rate`: outside them a plan makes no sense. */
const RATE_MAX = 100_000_000;
const RATE_MIN = 0.001;

/** An event above 64 KB counts as several on the bus (EventBridge pricing), and a plan does not know that. */
const PAYLOAD_BYTES_MAX = 60_000;

/** A rule for each consumer: a bus has at most 300 (EventBridge user guide, "Quotas"). */
const CONSUMERS_MAX = 300;

/** A plan for one's own rate, on the terminal. */
new Command('npx tsx bench/capacity/main.ts')
  .description('Plans a Mailroom, or several, for a rate of your own. See docs/scaling.md.')
  .requiredOption('--rate <events>', 'events a second, on average', rateOf)
  .option('--peak <events>', 'events a second in the busiest seconds (default: the average)', rateOf)
  .option('--payload <bytes>', 'size of an event’s payload as JSON', countUpTo(PAYLOAD_BYTES_MAX), 200)
  .option('--consumers <count>', 'how many consumers each event goes to', countUpTo(CONSUMERS_MAX), 1)
  .action(({ rate, peak, payload, consumers }: PlanOptions, command: Command) => {
    if (peak !== undefined && peak < rate) {
      command.error(`error: --peak ${peak} is below --rate ${rate}; a peak is at least the average.`);
    }
    const plan = planCapacity({
      eventsPerSecond: rate,
      peakEventsPerSecond: peak ?? rate,
      payloadBytes: payload,
      consumers,
    });
    const rows = [...planRows(plan), ...planDetails(plan)];
    console.log(table(['', `${rate.toLocaleString('en-US')} events/s`], rows));
  })
  .parse();

function rateOf(text: string): number {
  const rate = Number(text);
  if (rate >= RATE_MIN && rate <= RATE_MAX) return rate;
  throw new InvalidArgumentError(
    `It must be a number from ${RATE_MIN} to ${RATE_MAX.toLocaleString('en-US')}.`,
  );
}

function countUpTo(most: number): (text: string) => number {
  return (text) => {
    const count = Number(text);
    if (Number.isInteger(count) && count >= 1 && count <= most) return count;
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${most.toLocaleString('en-US')}.`);
  };
}
