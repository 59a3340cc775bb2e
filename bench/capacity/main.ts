import { Command, InvalidArgumentError } from 'commander';
import { table } from '../../cli/frame/output.ts';
import { planCapacity } from './plan.ts';
import { planRows } from './plan-rows.ts';

interface Options {
  readonly rate: number;
  readonly peak?: number;
  readonly payload: number;
  readonly consumers: number;
}

/** More than anybody asks for. */
const COUNT_MAX = 100_000_000;

/** A plan for one's own rate, on the terminal. */
new Command('npx tsx bench/capacity/main.ts')
  .description('Plans a Mailroom, or several, for a rate of your own. See docs/scaling.md.')
  .requiredOption('--rate <events>', 'events a second, on average', count)
  .option('--peak <events>', 'events a second in the busiest seconds (default: the average)', count)
  .option('--payload <bytes>', 'size of an event’s payload as JSON', count, 200)
  .option('--consumers <count>', 'how many consumers each event goes to', count, 1)
  .action(({ rate, peak, payload, consumers }: Options) => {
    const plan = planCapacity({
      eventsPerSecond: rate,
      peakEventsPerSecond: peak ?? rate,
      payloadBytes: payload,
      consumers,
    });
    console.log(table(['', `${rate.toLocaleString('en-US')} events/s`], planRows(plan)));
  })
  .parse();

function count(text: string): number {
  const number = Number(text);
  if (number > 0 && number <= COUNT_MAX) return number;
  throw new InvalidArgumentError(
    `It must be a number above 0, at most ${COUNT_MAX.toLocaleString('en-US')}.`,
  );
}
