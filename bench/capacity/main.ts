import { Command, InvalidArgumentError } from 'commander';
import { table } from '../../cli/terminal/output.ts';
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

/** An event above 64 KB counts as several on the bus (EventBridge pricing), which a plan does not model. */
const PAYLOAD_BYTES_MAX = 60_000;

/** One rule per consumer: a bus has at most 300 (EventBridge user guide, "Quotas"). */
const CONSUMERS_MAX = 300;

/** Prints a plan for a given rate. */
new Command('npx tsx bench/capacity/main.ts')
  .description('Plans one or more Mailrooms for a given rate. See docs/scaling.md.')
  .requiredOption('--rate <events>', 'average events per second', rateOf)
  .option('--peak <events>', 'events per second in the busiest seconds (default: the average)', rateOf)
  .option('--payload <bytes>', 'size of an event’s payload as JSON', countUpTo(PAYLOAD_BYTES_MAX), 200)
  .option('--consumers <count>', 'number of consumers of each event', countUpTo(CONSUMERS_MAX), 1)
  .action(({ rate, peak, payload, consumers }: PlanOptions, command: Command) => {
    if (peak !== undefined && peak < rate) {
      command.error(
        `error: --peak is ${peak}, but must be at least --rate, ${rate}. Raise --peak or omit it.`,
      );
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
